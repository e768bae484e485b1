/* Fair shares of what all users have together: connections, queues, memory. */
#ifndef TOOLGATE_BASE_SHARE_H
#define TOOLGATE_BASE_SHARE_H

#include <stdbool.h>
#include <stdint.h>

/* Below half of it there is room for everybody, and nobody has to be counted. */
static inline bool share_is_plenty(uint64_t used, uint64_t max)
{
    return used < max / 2;
}

/* A user who holds `held` of the `used` may have as much as is free: one alone gets half, and the next user
 * still finds room. */
static inline bool share_leaves_room(uint64_t used, uint64_t held, uint64_t wanted, uint64_t max)
{
    return used + wanted <= max && (share_is_plenty(used, max) || held + wanted <= max - used);
}

#endif
