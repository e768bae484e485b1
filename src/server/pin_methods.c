/* Only operators: whoever may accept a definition decides what agents are told. */
#include "server/method_table.h"

#include "base/arena.h"
#include "base/log.h"
#include "catalog/pins.h"
#include "server/reload.h"
#include "server/state_dir.h"

static const char *const mode_names[] = {
    [PINS_WARN] = "warn", [PINS_OFF] = "off", [PINS_CHANGES] = "changes", [PINS_ALL] = "all"};

struct pins *pin_methods_pins(struct server *server, const struct config *config)
{
    if (config->pins == PINS_OFF)
        return NULL;
    if (!server->pins) {
        server->pins_arena = arena_new();
        server->pins = pins_new(state_dir_path(server->pins_arena, config, "pins.json"),
                                state_dir_beside_socket(server->pins_arena, config, "pinned"));
    }
    return server->pins;
}

void pin_methods_commit(struct server *server, const struct pins_review *before)
{
    pins_commit(server->pins, server->gate.generation->pins, before);
}

void pin_methods_free(struct server *server)
{
    pins_free(server->pins);
    arena_free(server->pins_arena);
}

void pin_methods_write_status(struct json_out *out, const struct server *server)
{
    const struct pins_review *review = server->gate.generation->pins;
    json_field_open(out, "pins", '{');
    json_field_text(out, "mode", mode_names[server_config(server)->pins]);
    if (review) {
        json_fields(out, FIELD_TEXT("file", pins_path(server->pins)), FIELD_NUM("pending", review->pending),
                    FIELD_NUM("held", review->held));
        json_field_strs(out, "lost", review->lost, review->lost_count);
    }
    json_close(out, '}');
}

static void put_side(struct json_out *out, const char *key, const char *digest, struct str tool,
                     struct str text)
{
    json_field_open(out, key, '{');
    json_fields(out, FIELD_TEXT("digest", digest), FIELD_STR("tool", tool));
    if (text.len)
        json_field_raw(out, "definition", text);
    json_close(out, '}');
}

/* False: the texts have no room any more. */
static bool put_entry(struct json_out *out, const struct pin_entry *entry, size_t *left)
{
    struct arena *arena = arena_new();
    struct str text = pin_definition_text(arena, entry->definition);
    bool fits = text.len + entry->was_text.len <= *left;
    *left -= fits ? text.len + entry->was_text.len : *left;
    json_open(out, '{');
    json_fields(out, FIELD_STR("upstream", entry->upstream), FIELD_STR("tool", entry->tool),
                FIELD_OPTIONAL("name", entry->published), FIELD_TEXT("state", pin_state_name(entry->state)),
                FIELD_BOOL("held", entry->held));
    if (entry->was_tool.len)
        put_side(out, "was", entry->was_digest.hex, entry->was_tool, fits ? entry->was_text : STR_NONE);
    put_side(out, "now", entry->digest.hex, entry->tool, fits ? text : STR_NONE);
    json_close(out, '}');
    arena_free(arena);
    return fits;
}

static void put_pending(struct json_out *out, const struct pins_review *review)
{
    size_t left = PINS_SHOWN_MAX_BYTES;
    bool complete = true;
    json_field_open(out, "waiting", '[');
    for (size_t i = 0; i < review->count; i++)
        if (pin_is_pending(&review->entries[i]))
            complete &= put_entry(out, &review->entries[i], &left);
    json_close(out, ']');
    json_fields(out, FIELD_BOOL("complete", complete), FIELD_TEXT("digest", pins_review_digest(review).hex));
}

static enum request_status show(struct request *r)
{
    const struct pins_review *review = r->client->server->gate.generation->pins;
    struct json_out *out = reply_open(r);
    json_field_text(out, "mode", mode_names[server_config(r->client->server)->pins]);
    if (review) {
        json_fields(out, FIELD_TEXT("file", pins_path(r->client->server->pins)),
                    FIELD_NUM("tools", review->count));
        json_field_strs(out, "lost", review->lost, review->lost_count);
        put_pending(out, review);
    }
    return reply_close(r);
}

/* In the form of a reload that failed. */
static enum request_status refuse(struct request *r, const char *why)
{
    struct json_out *out = reply_open(r);
    struct str error = str_of(why);
    json_field_bool(out, "ok", false);
    json_field_strs(out, "errors", &error, 1);
    return reply_close(r);
}

static enum request_status accept_pin(struct request *r, const struct json *accept)
{
    struct server *server = r->client->server;
    const struct pins_review *review = server->gate.generation->pins;
    struct str tool, digest;
    struct why why = {0};
    size_t count;
    if (!json_is(accept, JSON_OBJECT))
        return reply_error(r, RPC_INVALID_PARAMS, "params.accept: expected {\"tool\",\"digest\"}, got %s",
                           param_kind(accept));
    if (param_string(r, accept, "params.accept.", "tool", &tool) ||
        param_string(r, accept, "params.accept.", "digest", &digest))
        return REQUEST_DONE;
    if (!review)
        return reply_error(r, RPC_UNAVAILABLE, "pins are off: set pins = \"warn\", \"changes\" or \"all\"");
    enum err err = pins_accept(server->pins, review, tool, digest, &count, &why);
    if (err)
        return refuse(r, why.text);
    log_event(LOG_INFO, "pins_accepted", LOG_NUM("tools", count), LOG_TEXT("user", r->client->peer.user),
              LOG_NUM("uid", r->client->peer.uid));
    return reload_wait(r, RELOAD_CAUSE_PINS);
}

enum request_status pin_methods_pins_method(struct request *r)
{
    const struct json *accept = json_get_text(r->params, "accept");
    if (param_require_operator(r, "toolgate/pins"))
        return REQUEST_DONE;
    return accept ? accept_pin(r, accept) : show(r);
}
