/*
 * One JSON-RPC request under way: read from a line, given to the method that
 * the table names, answered at once or later. It lives in its own arena and
 * is freed whole with everything the call made.
 */
#ifndef TOOLGATE_SERVER_REQUEST_H
#define TOOLGATE_SERVER_REQUEST_H

#include "json/write.h"
#include "server/server_internal.h"
#include "server/jsonrpc.h"

#define REQUEST_ID_MAX_BYTES 1024u

struct method;

enum handled { REQUEST_DONE, REQUEST_PENDING };

struct request {
    struct client *client;
    struct arena *arena;
    struct request *next, *previous; /* of the client's pending ones */
    const struct method *method;
    struct json message;
    struct str id; /* its JSON text as sent; empty: a notification */
    const struct json *id_value;
    struct str method_name;
    const struct json *params; /* an object; NULL: none */
    const struct json *meta;   /* params._meta, an object; NULL: none */
    bool modern;
    struct str fault; /* duplicate keys, lone surrogates: readable, but not as it was meant; empty: none */
    size_t pending_bytes;
    void (*cancel)(struct request *request); /* stops what is pending; set before a handler returns PENDING */
    struct call *call;                       /* call_methods.c */
    enum handled (*answer)(struct request *request);
    uint32_t log_count;  /* notifications/message sent for it */
    double progress;     /* the last one sent: they must increase */
    void *work;          /* session_methods.c: the answer being waited for */
    struct json_out out; /* the reply being written */
    size_t unread;       /* bytes of earlier answers, where they keep this one from being sent */
    size_t reply_at;     /* where it begins in the connection's output */
    bool has_meta;
};

/* Serves one line. Answers and frees the request, or keeps it pending. */
void request_serve(struct client *client, struct str line);

/* The pending request has been answered (or must not be any more): unlinked and freed. */
void request_done(struct request *request);

/* Cancels without an answer. */
void request_cancel(struct request *request);

/* The pending one with this id, or NULL. */
struct request *request_find(struct client *client, const struct json *id);

/* ---- replying: exactly one of reply_error, or reply_open … reply_close ---- */

enum handled reply_error(struct request *request, enum rpc_error error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
enum handled reply_error_data(struct request *request, enum rpc_error error, struct str message,
                              struct str data);

/* {"jsonrpc":"2.0","id":…,"result":{ and in the modern era "resultType":"complete". */
struct json_out *reply_open(struct request *request);
/* The same with another type of result. */
struct json_out *reply_open_as(struct request *request, const char *result_type);

/* "_meta":{ with what the era wants in it; close the object with json_close. At most once a reply. */
struct json_out *reply_meta(struct request *request);

/* The members of a JSON object's text, without its braces. */
void reply_members(struct request *request, struct str object);

/* False: the line was over SERVER_LINE_MAX_BYTES, or (`unread`: so many bytes are) the client does not read
 * what it was sent, and has been taken back; reply something smaller. */
bool reply_fits(struct request *request);

/* reply_fits, and where it does not an error that says so. */
enum handled reply_close(struct request *request);

/* A notification's line. `params` is the text of an object. */
void client_notify(struct client *client, const char *method, struct str params);

/* ---- reading params ---- */

/* A string member; absent is OK and gives STR_NONE. ERR_PARSE: answered with -32602 already. */
enum err param_string(struct request *request, const struct json *object, const char *path, const char *key,
                      struct str *out);
enum err param_flag(struct request *request, const char *key, bool *out);
/* 0 where absent. */
enum err param_count(struct request *request, const struct json *object, const char *path, const char *key,
                     uint32_t *out);

/* Which conversation; empty: anonymous. */
enum err param_session(struct request *request, struct str *out);

/* "an array", "nothing": for expected …, got …. */
const char *param_kind(const struct json *value);

#endif
