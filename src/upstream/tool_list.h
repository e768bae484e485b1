/*
 * An upstream's list of tools, prompts, resources or templates: the array as it
 * was sent, immutable, reference-counted. And the cache of the lists, one file
 * for each upstream: those of lazy upstreams are served before they are
 * started, and a replay knows the tools.
 */
#ifndef TOOLGATE_UPSTREAM_TOOL_LIST_H
#define TOOLGATE_UPSTREAM_TOOL_LIST_H

#include "upstream/upstream.h"

/* Copies the array with its bytes. The caller owns the first reference. */
struct tool_list *tool_list_new(const struct json *tools);

/* Whose files are read: a daemon serves only what it has written itself; a replay by root reads those of the
 * daemon's user, and runs nothing. */
enum tool_cache_owner { TOOL_CACHE_OWN, TOOL_CACHE_ANY };

/* A new reference. NULL: `state` is NULL, or there is no readable file for this configuration of it. */
struct tool_list *tool_cache_read(const char *state, const struct upstream_spec *spec,
                                  enum upstream_list list, enum tool_cache_owner owner);

/* Does nothing if `state` is NULL; logs what cannot be written. An entry is NULL where there is no list. */
void tool_cache_write(const char *state, const struct upstream_spec *spec,
                      struct tool_list *const lists[UPSTREAM_LISTS]);

#endif
