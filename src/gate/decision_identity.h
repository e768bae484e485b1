/*
 * What a record says of its caller and its tool: bytes that are the same from call to call. They are written
 * once for each combination that is in use, and then copied. A row is compared by its contents, as pointers
 * are used again after a reload or a disconnect.
 */
#ifndef TOOLGATE_GATE_DECISION_IDENTITY_H
#define TOOLGATE_GATE_DECISION_IDENTITY_H

#include "base/buf.h"
#include "config/peer.h"

struct call;

#define DECISION_NAME_MAX_BYTES        256u /* of a tool's name, a session, a label: clients choose them */
#define DECISION_CALLERS_CACHED        16u  /* a power of two */
#define DECISION_TOOLS_CACHED          64u  /* likewise */
#define DECISION_CACHED_MAX_BYTES      256u /* of a row; a longer one is written each time */
#define DECISION_CACHED_NAME_MAX_BYTES 64u  /* of a tool or an upstream in a row */

struct decision_caller {
    size_t len; /* 0: empty */
    uint64_t generation;
    int mode;
    bool has_peer;
    uid_t uid;
    char user[sizeof(((struct peer *)0)->user)];
    char bytes[DECISION_CACHED_MAX_BYTES];
};

struct decision_tool {
    size_t len; /* 0: empty */
    int method;
    uint8_t name_len, upstream_len;
    char name[DECISION_CACHED_NAME_MAX_BYTES], upstream[DECISION_CACHED_NAME_MAX_BYTES];
    char bytes[DECISION_CACHED_MAX_BYTES];
};

struct decision_identity {
    struct decision_caller callers[DECISION_CALLERS_CACHED];
    struct decision_tool tools[DECISION_TOOLS_CACHED];
};

/* ,"generation":…,"policy_mode":…,"user":…,"uid":… */
void decision_identity_put_caller(struct decision_identity *identity, struct buf *out,
                                  const struct call *call);

/* ,"tool":…,"upstream":…,"method":… */
void decision_identity_put_tool(struct decision_identity *identity, struct buf *out, const struct call *call);

/* A name that a client or an operator chose, with its quotes. */
void decision_name_put(struct buf *out, struct str name);

#endif
