/* Reads members of params, and refuses those of a wrong type. */
#include "server/request.h"

#include "server/mcp_keys.h"

#include <inttypes.h>
#include <unistd.h>

#define SESSION_MAX_BYTES 1024u
#define CONTEXT_MAX_BYTES 16384u /* written without spaces */
#define GOT_MAX_BYTES     80u
#define COUNT_MAX         INT32_MAX /* the ledger continues from a given turn, in 32 bits */

const char *param_kind(const struct json *value)
{
    static const char *const kinds[] = {
        [JSON_NULL] = "null",       [JSON_BOOL] = "a boolean", [JSON_NUMBER] = "a number",
        [JSON_STRING] = "a string", [JSON_ARRAY] = "an array", [JSON_OBJECT] = "an object",
    };
    return value ? kinds[value->type] : "nothing";
}

/* Shows a scalar itself, anything else by its kind. */
static enum err refuse(struct request *r, const char *path, const char *key, const char *expected,
                       const struct json *got)
{
    struct buf text = buf_in(r->arena);
    if (got->type == JSON_ARRAY || got->type == JSON_OBJECT)
        buf_text(&text, param_kind(got));
    else
        json_write(&text, got);
    reply_error(r, RPC_INVALID_PARAMS, "%s%s: expected %s, got " STR_FMT, path, key, expected,
                STR_ARG(str_cut(buf_view(&text), GOT_MAX_BYTES)));
    return ERR_PARSE;
}

enum err param_string(struct request *request, const struct json *object, const char *path, const char *key,
                      struct str *out)
{
    const struct json *value = json_get_text(object, key);
    *out = json_str(value);
    return !value || json_is(value, JSON_STRING) ? OK : refuse(request, path, key, "a string", value);
}

enum err param_flag(struct request *request, const char *key, bool *out)
{
    const struct json *value = json_get_text(request->params, key);
    *out = json_is_true(value);
    return !value || json_is(value, JSON_BOOL) ? OK : refuse(request, "params.", key, "true or false", value);
}

enum err param_count(struct request *request, const struct json *object, const char *path, const char *key,
                     uint32_t *out)
{
    const struct json *value = json_get_text(object, key);
    int64_t n = 0;
    *out = 0;
    if (value && (!json_int(value, &n) || n < 0 || n > COUNT_MAX))
        return refuse(request, path, key, "a whole number from 1 to 2147483647", value);
    *out = (uint32_t)n;
    return OK;
}

enum err param_turn(struct request *request, const struct json *object, const char *path, const char *key,
                    uint32_t *number, uint32_t *text)
{
    const struct json *value = json_get_text(object, key);
    struct str name = json_str(value);
    int64_t n = 0;
    *number = *text = 0;
    if (json_is(value, JSON_STRING) && name.len && name.len <= TURN_TEXT_MAX_BYTES)
        *text = ledger_turn_text(name);
    else if (value && (!json_int(value, &n) || n < 0 || n > COUNT_MAX))
        return refuse(request, path, key,
                      "a whole number from 1 to 2147483647, or a text of 1 to 128 bytes that names the turn",
                      value);
    *number = (uint32_t)n;
    return OK;
}

struct str param_label(const struct json *object, const char *key)
{
    const struct json *value = json_get_text(object, key);
    return json_is(value, JSON_NUMBER) ? (struct str){value->text, value->len} : json_str(value);
}

enum err param_by(struct request *request, const struct json *object, const char *path, const char *key,
                  bool *by_person)
{
    const struct json *value = json_get_text(object, key);
    struct str name = json_str(value);
    *by_person = str_is(name, "person");
    return !value || *by_person || str_is(name, "program")
               ? OK
               : refuse(request, path, key, "\"person\" or \"program\"", value);
}

enum err param_agent(struct request *request, struct str *out)
{
    enum err err = param_string(request, request->meta, "params._meta.", GATE_AGENT_KEY, out);
    if (!err && out->len > AGENT_MAX_BYTES) {
        reply_error(request, RPC_INVALID_PARAMS,
                    "params._meta." GATE_AGENT_KEY ": expected at most %u bytes, got %zu", AGENT_MAX_BYTES,
                    out->len);
        return ERR_PARSE;
    }
    return err;
}

enum err param_session(struct request *request, struct str *out)
{
    enum err err = param_string(request, request->meta, "params._meta.", GATE_SESSION_KEY, out);
    if (!err && out->len > SESSION_MAX_BYTES) {
        reply_error(request, RPC_INVALID_PARAMS,
                    "params._meta." GATE_SESSION_KEY ": expected at most %u bytes, got %zu",
                    SESSION_MAX_BYTES, out->len);
        return ERR_PARSE;
    }
    return err;
}

enum err param_goal(struct request *request, const struct json *object, const char *path, const char *key,
                    struct str *out)
{
    enum err err = param_string(request, object, path, key, out);
    if (!err && out->len > GOAL_MAX_BYTES) {
        reply_error(
            request, RPC_INVALID_PARAMS,
            "%s%s: expected at most %u bytes, got %zu: send the user's request without the long texts that "
            "belong to it",
            path, key, GOAL_MAX_BYTES, out->len);
        return ERR_PARSE;
    }
    return err;
}

enum err param_context(struct request *request, const struct json **out)
{
    const struct json *context = json_get_text(request->meta, GATE_CONTEXT_KEY);
    *out = context;
    if (!context)
        return OK;
    if (!json_is(context, JSON_OBJECT))
        return refuse(request, "params._meta.", GATE_CONTEXT_KEY, "an object", context);
    size_t bytes = json_to_str(request->arena, context).len;
    if (bytes <= CONTEXT_MAX_BYTES)
        return OK;
    reply_error(request, RPC_INVALID_PARAMS,
                "params._meta." GATE_CONTEXT_KEY ": expected at most %u bytes of JSON, got %zu",
                CONTEXT_MAX_BYTES, bytes);
    return ERR_PARSE;
}

int param_log_level(struct str name)
{
    static const char *const levels[] = {"debug", "info",     "notice", "warning",
                                         "error", "critical", "alert",  "emergency"};
    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
        if (str_is(name, levels[i]))
            return (int)i;
    return -1;
}

enum err param_require_operator(struct request *request, const char *what)
{
    const struct peer *peer = &request->client->peer;
    if (client_is_operator(request->client))
        return OK;
    if (server_config(request->client->server)->operators)
        reply_error(
            request, RPC_FORBIDDEN,
            "%s is for the users and groups that `operators` of the configuration names and for root; "
            "you are %s (uid %u)",
            what, peer->user, (unsigned)peer->uid);
    else
        reply_error(request, RPC_FORBIDDEN,
                    "%s is for the user that runs the daemon (uid %u) and for root; you are %s (uid %u)",
                    what, (unsigned)geteuid(), peer->user, (unsigned)peer->uid);
    return ERR_PARSE;
}
