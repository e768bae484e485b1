/* The text of a policy's or configuration's file, bounded. Only files of this room include this header. */
#ifndef TOOLGATE_SANDBOX_SOURCE_FILE_H
#define TOOLGATE_SANDBOX_SOURCE_FILE_H

#include "base/err.h"
#include "base/str.h"

struct arena;

#define SOURCE_FILE_MAX_BYTES 1048576u

enum err source_file_read(struct arena *arena, const char *path, struct str *out, struct why *why);

#endif
