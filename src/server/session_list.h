/*
 * The sessions that this daemon served last, as one JSON object: toolgate/sessions, `toolgate top` and the
 * page write the same. Names of sessions are what clients sent: readers escape them.
 */
#ifndef TOOLGATE_SERVER_SESSION_LIST_H
#define TOOLGATE_SERVER_SESSION_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct json_out;
struct server;

#define SESSION_LIST_DEFAULT 50u
#define SESSION_LIST_MAX     1000u

enum session_list_order { SESSION_LIST_RECENT, SESSION_LIST_REFUSALS, SESSION_LIST_CALLS };

struct session_list_query {
    enum session_list_order order; /* the first is the latest, or the one with most */
    bool loops;                    /* only those whose last call is in a loop */
    size_t limit;                  /* 0: SESSION_LIST_DEFAULT */
};

/* Writes the members of an object that is open: `sessions`, and the sums over all that are known. */
void session_list_write(struct json_out *out, const struct server *server,
                        const struct session_list_query *query);

#endif
