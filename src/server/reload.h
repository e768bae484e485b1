/*
 * A new generation: built aside with its examples run, a slice at each turn
 * of the loop while calls go on, then swapped in by one pointer; or the old
 * one stays, and every reason is said.
 *
 *   SIGHUP, toolgate/reload, changed files ─▶ reload_request ─▶ slice, slice, … ─▶ swap or keep ─▶ answers
 *        while one is under way: one more ────────┘ afterwards, for all who asked meanwhile
 */
#ifndef TOOLGATE_SERVER_RELOAD_H
#define TOOLGATE_SERVER_RELOAD_H

#include "server/server_internal.h"

struct client;
struct json_out;

#define RELOAD_SLICE_US 1000u /* of loading, then it is the connections' turn */

struct reloader *reloader_new(struct server *server);
void reloader_free(struct reloader *reloader); /* NULL is fine; what is under way is given up */

/* The first one, to its end: `why` has the first error, the log all others. */
enum err reload_initial(struct server *server, struct why *why);

#define RELOAD_CAUSE_UPSTREAM "upstream" /* the cause that leaves upstreams alone which are down */

/* One that begins after this. `cause`: a word for the log. */
void reload_request(struct server *server, const char *cause);
bool reload_is_running(const struct server *server);

/* A slice. False: there was nothing to do, the loop may wait. */
bool reload_turn(struct server *server);

/* "reload":{…}, how the last one went; nothing where there was none. What names files is for whoever may
 * reload. */
void reload_write_status(const struct client *client, struct json_out *out);

#endif
