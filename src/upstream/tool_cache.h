/*
 * What lazy upstreams offered the last time, in a folder: their tools can be
 * listed before anybody has started them. One file an upstream; one that was
 * written for another configuration of it, or cannot be read, is none.
 */
#ifndef TOOLGATE_UPSTREAM_TOOL_CACHE_H
#define TOOLGATE_UPSTREAM_TOOL_CACHE_H

#include "upstream/upstream_spec.h"

struct tool_list;

/* `state` NULL: nothing is kept. Held by the caller; NULL: nothing is known. */
struct tool_list *tool_cache_read(const char *state, const struct upstream_spec *spec);

/* What cannot be written is logged once it is tried. */
void tool_cache_write(const char *state, const struct upstream_spec *spec, const struct tool_list *offer);

#endif
