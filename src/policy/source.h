/* The text of a policy's or configuration's file, bounded. Only files of this room include this header. */
#ifndef TOOLGATE_POLICY_SOURCE_H
#define TOOLGATE_POLICY_SOURCE_H

#include "base/err.h"
#include "base/str.h"

struct arena;

enum err source_read(struct arena *arena, const char *path, struct str *out, struct why *why);

#endif
