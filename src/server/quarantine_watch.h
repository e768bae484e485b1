/* Loads again when a quarantine ends, and says in toolgate/status what is quarantined or suspected. */
#ifndef TOOLGATE_SERVER_QUARANTINE_WATCH_H
#define TOOLGATE_SERVER_QUARANTINE_WATCH_H

struct client;
struct json_out;
struct server;

/* Sets the timer for the next end. After every change of the generation. */
void quarantine_watch_begin(struct server *server);
void quarantine_watch_end(struct server *server);

/* "quarantined": the files that do not run; "suspected": those with too few faults. Both have file names, so
 * only the operator sees them; others find the tool among the failures. */
void quarantine_watch_write_status(struct json_out *out, const struct client *client);

#endif
