/* The Lua files under lua/, compiled in as text so that program and scripts can't skew. */
#ifndef TOOLGATE_BASE_EMBEDDED_H
#define TOOLGATE_BASE_EMBEDDED_H

#include "base/str.h"

/* `name` as in the tree, e.g. "ledger/admit.lua". Aborts on a name that isn't there: a build mistake. */
struct str embedded_text(const char *name);

#endif
