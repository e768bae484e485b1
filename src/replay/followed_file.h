/*
 * A file that its writer rotates: the open one is renamed to PATH.1, PATH.1 to PATH.2 and so on, and PATH
 * begins anew. A reader that has come to the end of its file asks what became of it, and which file comes
 * next.
 */
#ifndef TOOLGATE_REPLAY_FOLLOWED_FILE_H
#define TOOLGATE_REPLAY_FOLLOWED_FILE_H

#include <stdbool.h>
#include <sys/types.h>

#define FOLLOWED_ROTATED_MAX 1000u /* PATH.1000 is the oldest that is looked for */

enum followed_state {
    FOLLOWED_SAME,      /* it is still the one that is written, or its successor is not there yet */
    FOLLOWED_TRUNCATED, /* it is, and is shorter than what was read of it */
    FOLLOWED_ROTATED    /* PATH is another file */
};

/* `fd`: the open one; `position`: bytes read of it. */
enum followed_state followed_file_state(const char *path, int fd, off_t position);

/* Opens the file that was written after `fd`, PATH or a rotated one. -1: none yet. `*gap`: `fd` is no longer
 * among the rotated files, so others may have been rotated away unread. */
int followed_file_next(const char *path, int fd, bool *gap);

#endif
