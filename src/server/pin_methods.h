/* toolgate/pins: what waits for acceptance, and accepting it. Keeps the pins with the generation that serves.
 */
#ifndef TOOLGATE_SERVER_PIN_METHODS_H
#define TOOLGATE_SERVER_PIN_METHODS_H

#include "server/request.h"

struct pins_review;

#define PINS_SHOWN_MAX_BYTES 6291456u /* of the definitions in one answer; further entries come without */

/* For the builds of a configuration; NULL: it keeps no pins. */
struct pins *pin_methods_pins(struct server *server, const struct config *config);

/* A generation went live; `before`: the review of the one that it replaces, NULL: none. */
void pin_methods_commit(struct server *server, const struct pins_review *before);

void pin_methods_free(struct server *server);

/* "pins":{…} of toolgate/status. */
void pin_methods_write_status(struct json_out *out, const struct server *server);

#endif
