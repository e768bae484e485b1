/*
 * Loads a new generation: builds it and runs its examples, a slice at each
 * turn of the loop while calls go on, then swaps one pointer. If anything is
 * wrong, the old generation stays and every reason is reported.
 *
 *   SIGHUP, toolgate/reload, changed files ─▶ reload_request ─▶ slice, slice, … ─▶ swap or keep ─▶ replies
 *        while a reload runs: one more ──────────┘ afterwards, for all requests of that time
 *
 * It watches the files of the configuration that it read last, unless that says watch = false. An upstream
 * whose tools have changed causes a reload, too.
 */
#ifndef TOOLGATE_SERVER_RELOAD_H
#define TOOLGATE_SERVER_RELOAD_H

#include "server/server_internal.h"

struct reloader *reloader_new(struct server *server);
/* Drops a running reload, and needs the loop. After the clients: their requests may wait for it. NULL is
 * allowed. */
void reloader_free(struct reloader *reloader);

/* The first generation, built at once. `why` gets the first error, the log all others. */
enum err reload_initial(struct server *server, struct why *why);

#define RELOAD_CAUSE_PINS     "pins"     /* a definition was accepted */
#define RELOAD_CAUSE_UPSTREAM "upstream" /* with this cause, upstreams that are down are not retried */

/* Requests a reload that begins after this. `cause`: for the log; not copied. */
void reload_request(struct server *server, const char *cause);

/* Works for a slice. False: nothing to do, the loop may wait. */
bool reload_turn(struct server *server);

enum reload_result { RELOAD_OK, RELOAD_UNCHANGED, RELOAD_FAILED, RELOAD_RESULTS };
struct reload_figures {
    uint64_t counts[RELOAD_RESULTS];
    enum reload_result last; /* as the two below */
    int64_t at_ms, took_ms;  /* at_ms 0: there was none */
};
const struct reload_figures *reload_figures(const struct reloader *reloader);

/* "reload":{…}, the result of the last reload, if there was one. Errors, which name files, are for the
 * operator. */
void reload_write_status(const struct client *client, struct json_out *out);

/* Replies with the outcome of the next reload, which this begins: the caller has checked the request. */
enum request_status reload_wait(struct request *request, const char *cause);

/* ---- the upstreams, which start with the first configuration ---- */

/* Stops all upstreams once their calls have ended, turning the loop for at most UPSTREAMS_STOP_MS. */
void reload_stop_upstreams(struct server *server);
/* Ends every process. */
void reload_free_upstreams(struct server *server);

/* Logs which modes "shadow" are past their date: now, when the next date comes, and once a day from then on.
 * After every change of the generation. */
void shadow_watch_begin(struct server *server);

/* How many have come. */
size_t shadow_watch_count(const struct server *server);

#endif
