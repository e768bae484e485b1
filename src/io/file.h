/* Reads a whole file with a limit on its size. */
#ifndef TOOLGATE_IO_FILE_H
#define TOOLGATE_IO_FILE_H

#include "base/err.h"
#include "base/str.h"

#include <sys/types.h>

#include <stdbool.h>

struct arena;

/* Reads at most `max_bytes` into the arena, with a NUL after them. Only regular files, so it never waits.
 * ERR_IO or ERR_LIMIT with a message that begins with the path. */
enum err file_read(struct arena *arena, const char *path, size_t max_bytes, struct str *out, struct why *why);

/* OK: the file or folder is missing, or root or this user owns it and a symbolic link to it, and no
 * other user may write into it. Otherwise another user could have put it there: ERR_IO, with what to do. */
enum err file_check_private(const char *path, struct why *why);
/* The same of a descriptor that was opened with O_NOFOLLOW; `path` is for the message. */
enum err file_check_private_fd(int fd, const char *path, struct why *why);

/* OK: every folder above `path` (absolute, without symbolic links) belongs to root, this user or `also`, and
 * not everybody may write into it unless it is sticky. Otherwise another user could put another file in its
 * place: ERR_CONFIG, with what to do. */
enum err file_check_above(const char *path, uid_t also, struct why *why);

/* Replaces a file: a reader, also after a kill, finds the old text or the new one; `sync`: also after a power
 * failure, for which it waits for the disk. Mode 0600; a symbolic link is replaced, not followed.
 * ERR_IO with a message that begins with the path. */
enum err file_replace(const char *path, struct str text, bool sync, struct why *why);

/* For commands: also reads a pipe, such as <(…), and waits for its writer. */
enum err file_read_input(struct arena *arena, const char *path, size_t max_bytes, struct str *out,
                         struct why *why);

#endif
