/*
 * Every method and notification that the daemon understands: the only place
 * to add one.
 */
#ifndef TOOLGATE_SERVER_METHOD_TABLE_H
#define TOOLGATE_SERVER_METHOD_TABLE_H

#include "policy/policy_set.h"
#include "server/request.h"

struct pins_review;
struct subscription;

enum method_era { ERA_LEGACY = 1, ERA_MODERN = 2, ERA_BOTH = 3 };

struct method {
    const char *name;
    enum method_era eras;
    bool may_wait;    /* counts against limits.in_flight and limits.memory */
    bool takes_fault; /* a fault in the JSON of its arguments is a verdict, not an error */
    enum request_status (*handle)(struct request *request);
};

struct notification {
    const char *name;
    void (*handle)(struct request *request);
};

const struct method *method_find(struct str name);
const struct notification *method_find_notification(struct str name);

/* The closest name, or STR_NONE. */
struct str method_suggest(struct str name);

/* Appends the names that begin with "toolgate/" as items of a JSON array. */
void method_write_extensions(struct json_out *out);

/* Of the client's capabilities: it can put a form to its user. */
bool mcp_has_form_elicitation(const struct json *capabilities);

/* mcp_methods.c */
enum request_status mcp_initialize(struct request *request);
enum request_status mcp_ping(struct request *request);
enum request_status mcp_set_level(struct request *request);
enum request_status mcp_discover(struct request *request);
void mcp_initialized(struct request *request);
void mcp_cancelled(struct request *request);
/* A request of the modern era asks for log messages from this level on. Servers hear of it once for a
 * connection: one of the legacy era has a level for all requests. */
void mcp_wants_level(struct client *client, int level);
bool mcp_wants_log(const struct request *request,
                   struct str level); /* is a log message of that level wanted */

/* subscriptions.c */
enum request_status subscriptions_listen(struct request *request);

/* passing_methods.c */
enum request_status passing_prompts_list(struct request *request);
enum request_status passing_prompts_get(struct request *request);
enum request_status passing_resources_list(struct request *request);
enum request_status passing_templates_list(struct request *request);
enum request_status passing_resources_read(struct request *request);
enum request_status passing_subscribe(struct request *request);
enum request_status passing_unsubscribe(struct request *request);
enum request_status passing_complete(struct request *request);
#define PASSING_SETTLE_MS 20u /* from a server's list to the one for clients */

/* A server has listed, or the configuration is another: clients are told what has changed, soon. */
void passing_lists_changed(struct server *server);

/* "lists":{"prompts","resources","templates","warnings"}. */
void passing_write_status(struct json_out *out, struct server *server);

/* subscriptions/listen with resourceSubscriptions: those that exist are watched; the client is told which. */
void passing_watch_all(struct request *request, struct subscription *by, const struct json *uris);

void passing_free(struct server *server);

/* call_methods.c */
enum request_status call_methods_call(struct request *request);
/* tools/call once more, after its user has answered; REQUEST_DONE: the reply is written. */
enum request_status call_methods_call_again(struct request *request, const struct call_request *call);
enum request_status call_methods_check(struct request *request);
enum request_status call_methods_report(struct request *request);

/* tool_methods.c */
enum request_status mcp_tools_list(struct request *request);
enum request_status tool_methods_register(struct request *request);
enum request_status tool_methods_tools(struct request *request);
enum request_status schema_methods_schemas(struct request *request);

/* session_methods.c */
enum request_status session_methods_turn(struct request *request);
enum request_status session_methods_session(struct request *request);
enum request_status session_list_method(struct request *request);

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

/* status_method.c */
enum request_status status_method(struct request *request);
/* Writes the members of an object that is open: what this client may see. `brief`: for the page, without the
 * lists that grow with tools and policies, and at most STATUS_BRIEF_MAX warnings. */
#define STATUS_BRIEF_MAX 100u
void status_write(struct json_out *out, struct arena *arena, const struct client *client, bool brief);

/* "enforce", "shadow" or "off". */
const char *status_mode_name(enum policy_mode mode);

/* approval_methods.c */
enum request_status approval_methods_list(struct request *request);
enum request_status approval_methods_approve(struct request *request);
enum request_status approval_methods_deny(struct request *request);

/* reload.c */
enum request_status reload_method(struct request *request);

/* pin_methods.c: what waits for acceptance, and accepting it. It keeps the pins with the generation that
 * serves. */
enum request_status pin_methods_pins_method(struct request *request);
#define PINS_SHOWN_MAX_BYTES 6291456u /* of the definitions in one answer; further entries come without */

/* For the builds of a configuration; NULL: it keeps no pins. */
struct pins *pin_methods_pins(struct server *server, const struct config *config);

/* A generation went live; `before`: the review of the one that it replaces, NULL: none. */
void pin_methods_commit(struct server *server, const struct pins_review *before);

void pin_methods_free(struct server *server);

/* "pins":{…} of toolgate/status. */
void pin_methods_write_status(struct json_out *out, const struct server *server);

#endif
