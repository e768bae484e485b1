/*
 * One JSON-RPC request: read from a line, passed to the method that the table
 * names, answered at once or later. It lives in its own arena, which is freed
 * as a whole.
 */
#ifndef TOOLGATE_SERVER_REQUEST_H
#define TOOLGATE_SERVER_REQUEST_H

#include "json/write.h"
#include "server/server_internal.h"
#include "server/protocol.h"

#define REQUEST_ID_MAX_BYTES 1024u

enum request_status { REQUEST_DONE, REQUEST_PENDING };

struct request {
    LIST_ENTRY(request) link; /* of the client's pending ones */
    struct client *client;
    struct arena *arena;
    const struct method *method;
    struct json message;
    struct str id; /* JSON as it was sent; empty: a notification */
    const struct json *id_value;
    struct str method_name;
    const struct json *params; /* an object; NULL: none */
    const struct json *meta;   /* params._meta, an object; NULL: none */
    bool modern;
    struct str *notices; /* what the client sent without effect (problems.h); NULL: nothing */
    size_t notice_count;
    struct trace_context *trace_context; /* what can be passed on of it; NULL: none was sent */
    struct buf meta_for_server; /* the members of _meta that are neither toolgate's nor MCP's, as JSON */
    struct str fault;           /* duplicate keys, lone surrogates: readable, but ambiguous; empty: none */
    size_t pending_bytes;
    uint64_t tools_seen; /* client_tools_now; 0: it uses none that the client registered */

    /* Of a pending request. */
    void (*cancel)(struct request *request); /* set before a handler returns REQUEST_PENDING */
    enum request_status (*answer)(struct request *request);
    struct call *call;  /* call_methods.c */
    void *work;         /* of its method */
    uint32_t log_count; /* notifications/message that were sent */
    double progress;    /* the last one that was sent; progress must increase */

    /* The reply. */
    struct json_out out;
    size_t reply_at; /* its first byte in the connection's output */
    size_t unread;   /* bytes of earlier replies that keep it from being sent; 0: none */
    bool has_meta;
};

/* The version of MCP that its client speaks; empty: it has not said. */
struct str request_protocol(const struct request *request);

/* Serves one line: replies and frees the request, or keeps it pending. */
void request_serve(struct client *client, struct str line);

/* Frees a pending request after its reply. */
void request_done(struct request *request);

/* The callback of what a pending request waits for: answers by request->answer, and frees the request unless
 * it waits again. */
void request_answer(void *request);

/* What a handler returns after it has begun what request_answer ends: if that is done already, answers now.
 */
static inline enum request_status request_wait(struct request *request, bool is_pending)
{
    return is_pending ? REQUEST_PENDING : request->answer(request);
}

/* Stops a pending request without a reply, and frees it. */
void request_cancel(struct request *request);
void request_cancel_ledger(struct request *request); /* the `cancel` of one that the ledger answers */

/* ---- reply.c: one reply_error, or reply_open … reply_close ---- */

/* These return REQUEST_DONE. `data`: JSON, or empty. */
enum request_status reply_error(struct request *request, enum rpc_error error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
enum request_status reply_error_data(struct request *request, enum rpc_error error, struct str message,
                                     struct str data);

/* For a step that reads a request: ERR_PARSE. */
#define reply_refuse(...) (reply_error(__VA_ARGS__), ERR_PARSE)

/* An upstream's own error, for a request that was passed on to it; `data` may be NULL. What would not fit one
 * line is cut, or left out. */
enum request_status reply_upstream_error(struct request *request, int64_t code, struct str message,
                                         const struct json *data);

/* {"jsonrpc":"2.0","id":…,"result":{ and, for a modern request, "resultType". */
struct json_out *reply_open(struct request *request);
struct json_out *reply_open_as(struct request *request, const char *result_type);

/* "_meta":{ and, for a modern request, the server's name. Close it with json_close. At most once. */
struct json_out *reply_meta(struct request *request);

/* The members of a tool's or a server's `_meta`, but for those that only toolgate or this hop may write. */
void reply_meta_of_tool(struct request *request, const struct json *meta);

/* Ends the reply. False: it was longer than SERVER_LINE_MAX_BYTES, or the client leaves too much unread
 * (`unread` is set). The reply is then taken back; send a smaller one. */
bool reply_fits(struct request *request);

/* Ends the reply, or replaces it with an error if it does not fit. */
enum request_status reply_close(struct request *request);

/* A whole reply: of these members, and of none. */
#define reply_fields(request, ...) (json_fields(reply_open(request), __VA_ARGS__), reply_close(request))
enum request_status reply_empty(struct request *request);

/* Appends a request to the client, or a notification. `params`: an object as JSON, or empty. */
void reply_ask(struct client *client, struct str id, const char *method, struct str params);
#define reply_notification(client, method, params) reply_ask(client, STR_NONE, method, params)

/* For a call of an upstream, whose listener is the request: relays its progress as notifications/progress.
 * NULL: the client has not asked for it. */
upstream_progress *reply_progress_begin(struct request *request);

/* ---- members of params: these reply with -32602 and return ERR_PARSE if a value has the wrong type ---- */

/* `object`: params, params._meta, or the object params.accept. Absent: STR_NONE. */
enum err param_string(struct request *request, const struct json *object, const char *key, struct str *out);
/* Absent: false. */
enum err param_flag(struct request *request, const char *key, bool *out);
/* Absent: 0. */
enum err param_count(struct request *request, const struct json *object, const char *key, uint32_t *out);
/* A name that may also be a number, as models count their steps; empty: none. */
struct str param_label(const struct json *object, const char *key);
/* A user's turn: its number, or the hash of the text that names it (ledger_turn_text). Absent: both 0. */
#define TURN_TEXT_MAX_BYTES 128u
enum err param_turn(struct request *request, const struct json *object, const char *key, uint32_t *number,
                    uint32_t *text);
/* Who began a turn: "person" or "program"; absent: a program. */
enum err param_by(struct request *request, const struct json *object, const char *key, bool *by_person);
/* _meta's dev.toolgate/agent; empty: the session's main agent. */
#define AGENT_MAX_BYTES 128u
enum err param_agent(struct request *request, struct str *out);
/* The user's goal, under this key of `object`. Hooks read it and ids are looked for in it, in each call. */
#define GOAL_MAX_BYTES 8192u
enum err param_goal(struct request *request, const struct json *object, const char *key, struct str *out);
/* The session's name from params._meta; empty: anonymous. */
enum err param_session(struct request *request, struct str *out);

/* What the agent says of the request to the policies, an object; absent: NULL. */
enum err param_context(struct request *request, const struct json **out);

/* 0 debug … 7 emergency; -1: no level of MCP. */
int param_log_level(struct str name);

/* OK, or ERR_PARSE after an error reply: `what` is only for operators (policy/peer.h). */
enum err param_require_operator(struct request *request, const char *what);

/* "an array", "nothing": for `expected …, got …`. */
const char *param_kind(const struct json *value);

#endif
