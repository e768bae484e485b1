/* A client's line with the session it belongs to; every other byte stays as it was. */
#ifndef TOOLGATE_CLI_BRIDGE_H
#define TOOLGATE_CLI_BRIDGE_H

#include "base/buf.h"

/*
 * Appends `line` (no newline) to `out`. Where it is a request whose _meta
 * names no session, `"dev.toolgate/session":SESSION` is put in (`session` is
 * the JSON text of a string). Whatever is no request passes unchanged: the
 * daemon says what is wrong with it.
 */
void bridge_line(struct buf *out, struct str line, struct str session);

#endif
