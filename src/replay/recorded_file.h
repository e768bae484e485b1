/*
 * Files of recordings that are more than their bytes: a log that its writer rotates while it is read, and a
 * file that zstd packed.
 */
#ifndef TOOLGATE_REPLAY_RECORDED_FILE_H
#define TOOLGATE_REPLAY_RECORDED_FILE_H

#include "base/str.h"

#include <sys/types.h>

/* ---- rotated: the writer renames PATH to PATH.1, PATH.1 to PATH.2 and so on, and begins PATH again ---- */

/* Whether PATH is no longer the open file. */
bool rotated_file_is_away(const char *path, int fd);

/* Opens the file that was written after the open one: PATH or a rotated one. -1: none yet. `*gap`: the open
 * one is no longer among the rotated files, so others may have been rotated away unread. */
int rotated_file_next(const char *path, int fd, bool *gap);

/* ---- packed ---- */

struct unpacker;

#define UNPACKER_MAX_BYTES 1048576u /* that it is given, and reads at once */

#define PACKED_BY_ZSTD "\x28\xb5\x2f\xfd" /* the first bytes of such a file */

/* Begins with bytes that were read already. NULL: there is no libzstd on this machine. */
struct unpacker *unpacker_new(struct str bytes);
void unpacker_free(struct unpacker *unpacker); /* may be NULL */

/* As read(2). -1: `*why` says what is wrong. */
ssize_t unpacker_read(struct unpacker *unpacker, int fd, char *to, size_t room, const char **why);

#endif
