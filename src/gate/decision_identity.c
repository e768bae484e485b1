/* Two small tables, with one row for each slot. */
#include "gate/decision_identity.h"

#include "gate/call_state.h"
#include "json/write.h"

#define MODE_NONE (-1) /* the tool is not known */

void decision_name_put(struct buf *out, struct str name)
{
    if (name.len > DECISION_NAME_MAX_BYTES)
        name = str_cut(name, DECISION_NAME_MAX_BYTES);
    json_write_string(out, name);
}

/* ---- the caller ---- */

static const char *mode_name(int mode)
{
    static const char *const names[] = {
        [POLICY_ENFORCE] = "enforce", [POLICY_SHADOW] = "shadow", [POLICY_OFF] = "off"};
    return names[mode];
}

static bool is_caller(const struct decision_caller *row, const struct call *c, int mode)
{
    const struct peer *peer = c->request.peer;
    return row->len && row->generation == c->generation->number && row->mode == mode &&
           row->has_peer == (peer != NULL) &&
           (!peer || (row->uid == peer->uid && strcmp(row->user, peer->user) == 0));
}

static void write_caller(struct buf *out, const struct call *c, int mode)
{
    const struct peer *peer = c->request.peer;
    buf_text(out, ",\"generation\":");
    json_write_plain(out, c->generation->hash);
    if (mode != MODE_NONE) {
        buf_text(out, ",\"policy_mode\":");
        json_write_plain(out, str_of(mode_name(mode)));
    }
    if (!peer)
        return;
    if (peer->user[0]) {
        buf_text(out, ",\"user\":");
        decision_name_put(out, str_of(peer->user));
    }
    buf_text(out, ",\"uid\":");
    buf_int(out, peer->uid);
}

void decision_identity_put_caller(struct decision_identity *identity, struct buf *out, const struct call *c)
{
    const struct peer *peer = c->request.peer;
    int mode = c->tool ? (int)c->tool->mode : MODE_NONE;
    size_t slot = ((peer ? peer->uid : 0) * 4u + (unsigned)(mode + 1)) % DECISION_CALLERS_CACHED;
    struct decision_caller *row = &identity->callers[slot];
    if (is_caller(row, c, mode)) {
        buf_add(out, row->bytes, row->len);
        return;
    }
    size_t start = out->len;
    write_caller(out, c, mode);
    row->len = 0;
    if (out->len - start > DECISION_CACHED_MAX_BYTES)
        return;
    *row = (struct decision_caller){.len = out->len - start,
                                    .generation = c->generation->number,
                                    .mode = mode,
                                    .has_peer = peer != NULL,
                                    .uid = peer ? peer->uid : 0};
    if (peer)
        memcpy(row->user, peer->user, sizeof(row->user));
    memcpy(row->bytes, out->at + start, row->len);
}

/* ---- the tool ---- */

static struct str upstream_of(const struct call *c)
{
    return c->tool && c->tool->runner == RUNNER_UPSTREAM ? c->tool->target.upstream : STR_NONE;
}

static bool is_tool(const struct decision_tool *row, struct str name, struct str upstream, int method)
{
    return row->len && row->method == method && str_eq((struct str){row->name, row->name_len}, name) &&
           str_eq((struct str){row->upstream, row->upstream_len}, upstream);
}

static void write_tool(struct buf *out, struct str name, struct str upstream, int method)
{
    static const char *const methods[] = {
        [CALL_RUN] = "tools/call", [CALL_CHECK] = "toolgate/check", [CALL_REPORT] = "toolgate/report"};
    buf_text(out, ",\"tool\":");
    decision_name_put(out, name);
    if (upstream.len) {
        buf_text(out, ",\"upstream\":");
        decision_name_put(out, upstream);
    }
    buf_text(out, ",\"method\":");
    json_write_plain(out, str_of(methods[method]));
}

void decision_identity_put_tool(struct decision_identity *identity, struct buf *out, const struct call *c)
{
    struct str name = c->request.tool, upstream = upstream_of(c);
    int method = (int)c->request.mode;
    struct decision_tool *row =
        &identity->tools[str_ends_slot(str_ends(name), name.len) % DECISION_TOOLS_CACHED];
    if (is_tool(row, name, upstream, method)) {
        buf_add(out, row->bytes, row->len);
        return;
    }
    size_t start = out->len;
    write_tool(out, name, upstream, method);
    row->len = 0;
    if (out->len - start > DECISION_CACHED_MAX_BYTES || name.len > DECISION_CACHED_NAME_MAX_BYTES ||
        upstream.len > DECISION_CACHED_NAME_MAX_BYTES)
        return;
    *row = (struct decision_tool){.len = out->len - start,
                                  .method = method,
                                  .name_len = (uint8_t)name.len,
                                  .upstream_len = (uint8_t)upstream.len};
    if (name.len)
        memcpy(row->name, name.at, name.len);
    if (upstream.len)
        memcpy(row->upstream, upstream.at, upstream.len);
    memcpy(row->bytes, out->at + start, row->len);
}
