/* Says in the log which modes "shadow" are past their date: when a generation goes live, when a date comes,
 * and once a day from then on. */
#ifndef TOOLGATE_SERVER_SHADOW_WATCH_H
#define TOOLGATE_SERVER_SHADOW_WATCH_H

#include <stddef.h>

struct json_out;
struct server;

/* Writes the log, and sets the timer for the next day. After every change of the generation. */
void shadow_watch_begin(struct server *server);

/* How many have come. */
size_t shadow_watch_count(const struct server *server);

/* "shadow_expired": [{"file":…,"why":…}]. */
void shadow_watch_write_status(struct json_out *out, const struct server *server);

#endif
