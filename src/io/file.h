/* Reads a whole file with a limit on its size. */
#ifndef TOOLGATE_IO_FILE_H
#define TOOLGATE_IO_FILE_H

#include "base/err.h"
#include "base/str.h"

struct arena;

/* Reads at most `max_bytes` into the arena, with a NUL after them. Only regular files, so it never waits.
 * ERR_IO or ERR_LIMIT with a message that begins with the path. */
enum err file_read(struct arena *arena, const char *path, size_t max_bytes, struct str *out, struct why *why);

/* Replaces a file: whoever reads it, also after a kill or a power failure, finds the old text or the new one.
 * Mode 0600; a symbolic link is replaced, not followed. ERR_IO with a message that begins with the path. */
enum err file_replace(const char *path, struct str text, struct why *why);

/* For commands: also reads a pipe, such as <(…), and waits for its writer. */
enum err file_read_input(struct arena *arena, const char *path, size_t max_bytes, struct str *out,
                         struct why *why);

#endif
