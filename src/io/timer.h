/*
 * A one-shot timer on the event loop. It is embedded in its owner, zeroed at
 * first, and must not move while it is set. A timer that is not set owns
 * nothing; one that is set must be cleared before its loop is freed.
 */
#ifndef TOOLGATE_IO_TIMER_H
#define TOOLGATE_IO_TIMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event;
struct loop;

struct timer {
    struct event *event; /* NULL: not set */
    void (*fires)(void *owner);
    void *owner;
};

/* Fires once, in a turn of the loop, at least `ms` after the beginning of this turn; never inside this call.
 * Setting a timer again moves its time. It is no longer set when it fires, and its owner may free it then. */
void timer_set(struct timer *timer, struct loop *loop, uint32_t ms, void (*fires)(void *owner), void *owner);
static inline bool timer_is_set(const struct timer *timer)
{
    return timer->event != NULL;
}

/* It no longer fires; it may be set again. Clearing a timer that is not set does nothing. */
void timer_clear(struct timer *timer);

#endif
