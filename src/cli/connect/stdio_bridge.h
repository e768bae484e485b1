/* Adds the session to a client's request; all other bytes stay the same. */
#ifndef TOOLGATE_CLI_CONNECT_STDIO_BRIDGE_H
#define TOOLGATE_CLI_CONNECT_STDIO_BRIDGE_H

#include "base/buf.h"

/* Appends `line` (no newline) to `out`. A request without a session in its _meta gets
 * `"dev.toolgate/session":SESSION` (`session` is a JSON string). Other lines pass unchanged; the daemon
 * reports what is wrong with them. */
void stdio_bridge_line(struct buf *out, struct str line, struct str session);

#endif
