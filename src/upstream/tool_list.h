/* What one offers: its `tools` array as it sent it, held by count, never changed. Only this room makes one.
 */
#ifndef TOOLGATE_UPSTREAM_TOOL_LIST_H
#define TOOLGATE_UPSTREAM_TOOL_LIST_H

#include "upstream/upstream.h"

/* `tools`: an array, copied with its bytes. Held once, by the caller. */
struct tool_list *tool_list_new(const struct json *tools);

#endif
