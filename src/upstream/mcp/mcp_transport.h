/*
 * How MCP messages travel: over the pipes of a process (mcp_stdio.c) or over
 * HTTP (mcp_http.c). What they mean is the business of mcp_client.c.
 */
#ifndef TOOLGATE_UPSTREAM_MCP_MCP_TRANSPORT_H
#define TOOLGATE_UPSTREAM_MCP_MCP_TRANSPORT_H

#include "base/err.h"
#include "upstream/upstream.h"

struct arena;
struct mcp_client;
struct mcp_transport;

/* Why a request gets no response. */
struct mcp_failure {
    enum upstream_outcome outcome;
    const char *code, *why; /* `why`: our words */
    struct str quoted;      /* the server's words: data; may be empty */
    int64_t after_s;        /* when to retry; -1: unknown */
};

/* What a transport reports to its client (mcp_client.c): each from the loop's turn, never inside a function
 * of the table below. */
void mcp_client_opened(struct mcp_client *client); /* messages may be sent */
/* One message, valid during the call. `about`: the request in whose stream it came; 0: unknown. */
void mcp_client_message(struct mcp_client *client, uint64_t about, struct str message);
/* The request with this id gets no response; the others may. An unknown id is fine; 0: the transport does
 * not know which request failed, which is clear if only one is pending. */
void mcp_client_failed(struct mcp_client *client, uint64_t id, const struct mcp_failure *failure);
/* The last one: the process ended, or could not be started. `why` in our words; `quoted`: the server's
 * last words, data, may be empty. The transport may be freed afterwards, not inside. */
void mcp_client_closed(struct mcp_client *client, const char *why, struct str quoted);

/* Borrowed during `send`. What stands before the message goes into headers where the transport has them and
 * the protocol version wants it there. */
struct mcp_outgoing {
    uint64_t id;                           /* of a request; 0: a notification or a response */
    const char *method;                    /* NULL: a response */
    struct str name;                       /* of the tool; may be empty */
    const struct json *schema, *arguments; /* of a tool and its call; NULL: not known, or none */
    const struct trace_context *trace;     /* of a call; NULL: none */
    struct str meta;                       /* of a call: members of its _meta, as JSON; may be empty */
    struct str message;
};

struct mcp_transport_kind {
    /* mcp_client_opened or mcp_client_closed follows in any case. */
    struct mcp_transport *(*open)(struct loop *loop, const struct upstream_spec *spec,
                                  struct mcp_client *client);
    void (*send)(struct mcp_transport *transport, const struct mcp_outgoing *outgoing);
    /* Why no request is accepted now, as the end of "the server … "; NULL: requests are accepted. This and
     * the members below it may be NULL. */
    const char *(*blocked)(struct mcp_transport *transport);
    void (*forget)(struct mcp_transport *transport, uint64_t id); /* the request was cancelled */
    bool (*listens)(const struct mcp_transport *transport);       /* what the server sends unasked arrives */
    void (*set_version)(struct mcp_transport *transport, const char *version, bool modern);
    /* `text` with its secrets redacted, perhaps in the arena; NULL: messages are redacted already. */
    struct str (*redact)(const struct mcp_transport *transport, struct arena *arena, struct str text);
    int64_t (*pid)(const struct mcp_transport *transport); /* 0: no process runs */
    /* What the process wrote last, redacted: data, valid until it writes more. Of HTTP there is none. */
    struct str (*last_stderr)(const struct mcp_transport *transport);
    /* Never NULL: */
    void (*close)(struct mcp_transport *transport); /* in order; mcp_client_closed follows */
    void (*free)(struct mcp_transport *transport);  /* at once; reports nothing any more */
};

extern const struct mcp_transport_kind mcp_transport_stdio, mcp_transport_http;

#endif
