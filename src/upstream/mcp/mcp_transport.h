/*
 * How MCP's messages get to a server and back: a process's pipes
 * (upstream/mcp/mcp_stdio.c), or HTTP (upstream/mcp/mcp_http.c). What they mean is
 * upstream/mcp/mcp_client.c's business.
 */
#ifndef TOOLGATE_UPSTREAM_MCP_MCP_TRANSPORT_H
#define TOOLGATE_UPSTREAM_MCP_MCP_TRANSPORT_H

#include "base/err.h"
#include "upstream/upstream.h"

struct arena;
struct mcp_transport;

/* Each fires from the loop's turn, never inside a function below. */
struct mcp_transport_hooks {
    void (*opened)(void *owner); /* messages may be sent */
    /* One text that should be JSON, valid during the call. `about`: the request in whose stream it came,
     * where the transport knows (a question, a notice belongs to that call then); 0: it doesn't. */
    void (*message)(void *owner, uint64_t about, struct str message);
    /* The request with this id will get no answer; the others may. Unknown ids are fine;
     * 0: it cannot tell whose it was, which is known where only one waits. `why` in our words; `quoted`: its
     * own, data, perhaps none. */
    void (*failed)(void *owner, uint64_t id, enum upstream_outcome how, const char *code, const char *why,
                   struct str quoted, int64_t after_s);
    /* It is over (the process ended, could not be started): nothing more comes. `why` in our words; `quoted`:
     * its own last ones, data, perhaps none. The transport may be freed or opened again afterwards, not
     * inside. */
    void (*closed)(void *owner, const char *why, struct str quoted);
};

struct mcp_transport_kind {
    struct mcp_transport *(*make)(struct loop *loop, const struct upstream_spec *spec,
                                  const struct mcp_transport_hooks *hooks, void *owner);
    void (*open)(struct mcp_transport *transport);
    /* `id`: of a request; 0: a notification or an answer. `method` and `name` go into headers where the era
     * wants them. */
    void (*send)(struct mcp_transport *transport, uint64_t id, const char *method, struct str name,
                 struct str message);
    /* Why no more requests are taken for now, in words that follow "the server … "; NULL: they are. The
     * member may be NULL, too. */
    const char *(*full)(struct mcp_transport *transport);
    void (*forget)(struct mcp_transport *transport, uint64_t id); /* nobody waits for it any more */
    void (*version)(struct mcp_transport *transport, const char *version,
                    bool modern); /* what was agreed upon */
    /* `text` without what its settings hold that is secret, perhaps in the arena; NULL: messages come without
     * it. */
    struct str (*mask)(const struct mcp_transport *transport, struct arena *arena, struct str text);
    int64_t (*pid)(
        const struct mcp_transport *transport); /* of its process, 0: it runs none; the member may be NULL */
    void (*close)(struct mcp_transport *transport); /* in order; `closed` fires when it is done */
    void (*free)(struct mcp_transport *transport);  /* at once; no hook fires any more */
};

extern const struct mcp_transport_kind mcp_transport_stdio, mcp_transport_http;

#endif
