/*
 * Every method and notification that the daemon understands: the only place
 * to add one.
 */
#ifndef TOOLGATE_SERVER_METHOD_TABLE_H
#define TOOLGATE_SERVER_METHOD_TABLE_H

#include "policy/policy_set.h"
#include "server/request.h"

enum method_flags {
    ERA_LEGACY = 1,
    ERA_MODERN = 2,
    ERA_BOTH = ERA_LEGACY | ERA_MODERN,
    MAY_WAIT = 4,      /* counts against limits.in_flight and limits.memory */
    TAKES_FAULT = 8,   /* a fault in the JSON of its arguments is a verdict, not an error */
    FOR_OPERATORS = 16 /* an error for any other user (policy/peer.h) */
};

typedef enum request_status method_handler(struct request *request);

struct method {
    const char *name;
    unsigned flags; /* enum method_flags */
    method_handler *handle;
};

const struct method *method_find(struct str name);

/* The closest name, or STR_NONE. */
struct str method_suggest(struct str name);

/* False: there is no such notification. */
bool notification_handle(struct request *request);

method_handler call_methods_call, call_methods_check, call_methods_report;
method_handler mcp_tools_list, tool_methods_register, tool_methods_servers, tool_methods_tools,
    tool_methods_schemas;
method_handler session_methods_turn, session_methods_session, session_methods_sessions;
method_handler passing_list, passing_prompts_get, passing_resources_read, passing_subscribe,
    passing_unsubscribe, passing_complete;
method_handler approvals_method, approval_answer_method, pins_method;
method_handler reload_method, status_method, subscriptions_listen;

/* ---- method_table.c ---- */

/* Of the client's capabilities: it can put a form to its user. */
bool mcp_has_form_elicitation(const struct json *capabilities);
/* A request of the modern era asks for log messages from this level on. Servers hear of it once for a
 * connection: one of the legacy era has a level for all requests. */
void mcp_wants_level(struct client *client, int level);
/* Whether the request's client wants a log message of that level. */
bool mcp_wants_log(const struct request *request, struct str level);

/* ---- tool_methods.c ---- */

/* The tools that the client registered and that a request of this session sees; NULL: none. */
struct client_tools *client_tools_seen(struct request *request, struct str session, bool open);

/* ---- call_methods.c ---- */

/* The client has cancelled the call: its user need not answer any more. No effect on any other request. */
void elicitation_take_back(struct request *request);
/* A message without a method: true if it answers a question that was put to this client's user. */
bool elicitation_answer(struct client *client, const struct json *message);
/* The client sends no more, and so no answer: its questions are given up in the next turn. */
void elicitation_end(struct client *client);

/* ---- passing_methods.c ---- */

#define PASSING_SETTLE_MS 20u /* from a server's list to the one for clients */

/* A server has listed, or the configuration is another: clients hear of what has changed, soon. */
void passing_lists_changed(struct server *server);
void passing_lists_renew(struct server *server); /* at once */
/* "lists":{"prompts","resources","templates","warnings"}. */
void passing_write_status(struct json_out *out, struct server *server);
/* subscriptions/listen with resourceSubscriptions: watches those that exist and names them to the client. */
void passing_watch_all(struct request *request, struct subscription *by, const struct json *uris);
void passing_free(struct server *server);

/* ---- subscriptions.c: subscriptions/listen of the modern era, and who is notified of a changed list or
 * resource. Clients of the legacy era are notified of lists once they have sent initialize or asked for one
 * ---- */

#define SUBSCRIPTIONS_MAX     16u  /* of one connection */
#define WATCHED_RESOURCES_MAX 256u /* of one connection */

/* Notifies every client that wants it, or this one, in the way of its era. */
void subscriptions_changed(struct server *server, enum list_changed list);
void subscriptions_client_changed(struct client *client, enum list_changed list);

/* A resource of this upstream has changed: notifies the clients that watch it. */
void subscriptions_resource_updated(struct server *server, struct str upstream, struct str uri);

/* Watches a resource. `by`: the subscription that wants it; NULL: resources/subscribe. NULL, or why not, as
 * the end of "the server 'x' …". */
const char *subscriptions_watch(struct client *client, struct subscription *by, struct str upstream,
                                struct str uri);
void subscriptions_unwatch(struct client *client, const struct subscription *by, struct str uri);
/* Ends what a server that is no longer configured was asked to watch: one of the same name that comes later
 * knows nothing of it, and would take its end for that of another client's. */
void subscriptions_apply_config(struct client *client);

/* Ends the subscription with this id, if there is one, without a message. */
void subscriptions_cancel(struct client *client, const struct json *id);

/* The daemon stops: each subscription gets the result that its request waits for. */
void subscriptions_end(struct client *client);

/* Frees the client's subscriptions. */
void subscriptions_clear(struct client *client);

/* ---- session_methods.c ---- */

/* The sessions that this daemon served last, as one JSON object: toolgate/sessions, `toolgate top` and the
 * page write the same. Names of sessions are what clients sent: readers escape them. */
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

/* ---- status_method.c ---- */

/* Writes the members of an object that is open: what this client may see. `brief`: for the page, without the
 * lists that grow with tools and policies, and at most STATUS_BRIEF_MAX warnings. */
#define STATUS_BRIEF_MAX 100u
void status_write(struct json_out *out, struct arena *arena, const struct client *client, bool brief);
/* "enforce", "shadow" or "off". */
const char *status_mode_name(enum policy_mode mode);

/* ---- approval_methods.c: the pins of the generation that serves ---- */

#define PINS_SHOWN_MAX_BYTES 6291456u /* of the definitions in one answer; further entries come without */

/* For the builds of a configuration; NULL: it keeps no pins. */
struct pins *pin_methods_pins(struct server *server, const struct config *config);

/* "pins":{…} of toolgate/status. */
void pin_methods_write_status(struct json_out *out, struct server *server);

#endif
