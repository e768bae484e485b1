/* One row for each kind; a peer can cause as many as it likes and changes no more than its row. */
#include "server/problems.h"

#include "base/arena.h"
#include "base/log.h"
#include "base/suggest.h"
#include "base/trace_context.h"
#include "json/write.h"
#include "server/request.h"

#include <stdio.h>

static const char *const codes[] = {
    [PROBLEM_UNKNOWN_KEY] = "unknown_key",
    [PROBLEM_MISPLACED_KEY] = "misplaced_key",
    [PROBLEM_EMPTY_SESSION] = "empty_session",
    [PROBLEM_WRONG_TYPE] = "wrong_type",
    [PROBLEM_TRACE_CONTEXT] = "invalid_trace_context",
    [PROBLEM_SHARE] = "share_used_up",
    [PROBLEM_META_TOO_LONG] = "meta_too_long",
    [PROBLEM_CHECKS_UNREPORTED] = "checks_unreported",
    [PROBLEM_REPORT_UNPLACED] = "report_unplaced",
};

void problems_note(struct client *client, enum problem_kind kind, struct str text)
{
    struct problem_notes *notes = &client->server->problems;
    struct problem_note *note = &notes->kinds[kind];
    struct str shown = str_cut(text, sizeof(note->text) - 1);
    uint64_t held;
    note->count++;
    note->last_ms = clock_wall_ms();
    memcpy(note->text, shown.at, shown.len);
    note->text[shown.len] = '\0';
    snprintf(note->client, sizeof(note->client), "pid %d, user %s", (int)client->peer.pid, client->peer.user);
    if (rate_limit_allow(&notes->lines, PROBLEM_LINES_PER_SECOND, &held))
        log_event(LOG_WARN, "request_warning", LOG_TEXT("code", codes[kind]), LOG_TEXT("why", note->text),
                  LOG_NUM("pid", client->peer.pid), LOG_TEXT("user", client->peer.user),
                  LOG_NUM("not_logged", held));
}

void problems_write(struct json_out *out, const struct server *server)
{
    json_field_open(out, "problems", '[');
    for (size_t i = 0; i < PROBLEM_KINDS; i++) {
        const struct problem_note *note = &server->problems.kinds[i];
        if (!note->count)
            continue;
        json_put_object(out, FIELD_TEXT("code", codes[i]), FIELD_NUM("count", note->count),
                        FIELD_TEXT("last", note->text), FIELD_TEXT("client", note->client),
                        FIELD_NUM("last_ms", note->last_ms));
    }
    json_close(out, ']');
}

/* ---- checks without a report ------------------------------------------------
 * Counted per connection: a program that opens one for each call is not seen. */

uint32_t unreported_add(struct client *client, struct str step)
{
    struct unreported *checks = &client->unreported;
    uint64_t hash = step.len ? hash_stable(step).low | 1 : 0;
    char text[PROBLEM_TEXT_BYTES];
    if (!hash || hash != checks->step)
        checks->count++;
    checks->step = hash;
    if (checks->count <= UNREPORTED_MAX)
        return 0;
    if (checks->count >= checks->next_noted) {
        checks->next_noted = 2 * checks->count;
        snprintf(text, sizeof(text),
                 "%u checks in a row without a report: nothing is counted and no loop is found; the program "
                 "must send "
                 "toolgate/report after each tool that it ran",
                 checks->count);
        problems_note(client, PROBLEM_CHECKS_UNREPORTED, str_of(text));
    }
    return checks->count;
}

void unreported_clear(struct client *client)
{
    client->unreported = (struct unreported){0};
}

/* ---- toolgate's own keys of params._meta, as they are spelled; the closest known one is named ---- */

#define KEY_SHOWN_BYTES           64u
#define META_FOR_SERVER_MAX_BYTES 16384u

/* null is as good as no key: nothing that was meant gets lost. */
#define LABEL (1u << JSON_STRING | 1u << JSON_NUMBER | 1u << JSON_NULL)
#define FLAG  (1u << JSON_BOOL | 1u << JSON_NULL)

/* `param_of`: the method that takes it as a parameter of its own, beside _meta. */
static const struct gate_key {
    struct str key; /* without the prefix */
    const char *param_of;
    bool anywhere;  /* a parameter of this name has another meaning */
    unsigned types; /* bits of enum json_type; 0: its reader refuses the others */
} keys[] = {
    {STR("session"), "toolgate/session", false, 0},
    {STR("turn"), "toolgate/turn", false, 0},
    {STR("turn_by"), NULL, false, 0},
    {STR("agent"), NULL, true, 0},
    {STR("step"), NULL, false, LABEL},
    {STR("call"), NULL, false, LABEL},
    {STR("goal"), "toolgate/turn", false, 0},
    {STR("context"), NULL, false, 0},
    {STR("ext"), NULL, true, LABEL},
    {STR("trace"), NULL, true, FLAG},
};
#define KEY_COUNT (sizeof(keys) / sizeof(keys[0]))

static const struct gate_key *find(struct str name)
{
    for (size_t i = 0; i < KEY_COUNT; i++)
        if (str_eq(keys[i].key, name))
            return &keys[i];
    return NULL;
}

/* Of any method; the text lives in the request's arena. */
static void add_notice(struct request *r, enum problem_kind kind, struct str text)
{
    problems_note(r->client, kind, text);
    if (!r->notices)
        r->notices = ARENA_ARRAY(r->arena, struct str, GATE_NOTICES_MAX);
    if (r->notice_count < GATE_NOTICES_MAX)
        r->notices[r->notice_count++] = text;
}

static enum err note(struct request *r, enum problem_kind kind, struct str text)
{
    if (!str_starts(r->method_name, "toolgate/")) {
        add_notice(r, kind, text);
        return OK;
    }
    problems_note(r->client, kind, text);
    return reply_refuse(r, RPC_INVALID_PARAMS, STR_FMT, STR_ARG(text));
}

/* ---- traceparent, tracestate and baggage, which MCP reserves for OpenTelemetry (SEP-414) ---- */

/* A trace is never a reason to refuse a request: what cannot be passed on is dropped and named. */
static void note_dropped(struct request *r, size_t key, const char *why)
{
    add_notice(r, PROBLEM_TRACE_CONTEXT,
               arena_printf(r->arena, "params._meta." STR_FMT " %s: it is not passed on",
                            STR_ARG(trace_key_names[key]), why));
}

/* False: the member is another key. */
static bool take_trace_key(struct request *r, const struct json_member *member)
{
    size_t key = 0;
    while (key < TRACE_KEYS && !str_eq(trace_key_names[key], member->key))
        key++;
    if (key == TRACE_KEYS)
        return false;
    if (json_is(&member->value, JSON_NULL)) /* as good as no key */
        return true;
    struct str value = json_str(&member->value);
    const char *fault = json_is(&member->value, JSON_STRING) ? trace_context_fault((enum trace_key)key, value)
                                                             : "is no string";
    if (fault) {
        note_dropped(r, key, fault);
        return true;
    }
    if (!r->trace_context)
        r->trace_context = ARENA_NEW(r->arena, struct trace_context);
    r->trace_context->values[key] = value;
    return true;
}

/* ---- toolgate's own keys ---- */

/* The part of a key behind its prefix: "dev.toolgate/turn", "toolgate/turn" and "dev.toolgate.turn" mean
 * turn. */
static struct str last_word(struct str key)
{
    for (size_t i = key.len; i > 0; i--)
        if (key.at[i - 1] == '/' || key.at[i - 1] == '.')
            return str_from(key, i);
    return key;
}

/* A key under a prefix of somebody's own ("com.example/tenant") is for the server that answers. Any prefix
 * with the label mcp or modelcontextprotocol is MCP's, whose keys hold for one connection. */
static void keep_for_server(struct request *r, const struct json_member *member)
{
    static const char *const reserved[] = {"mcp", "modelcontextprotocol"};
    struct str rest = member->key, prefix = str_split(&rest, '/');
    struct buf *kept = &r->meta_for_server;
    bool has_prefix = prefix.len && prefix.len < member->key.len;
    if (!has_prefix || kept->len > META_FOR_SERVER_MAX_BYTES)
        return;
    while (prefix.len)
        if (STR_IS_ONE_OF(str_split(&prefix, '.'), reserved))
            return;
    if (!kept->arena)
        *kept = buf_in(r->arena);
    buf_text(kept, kept->len ? "," : "");
    json_write_string(kept, member->key);
    buf_byte(kept, ':');
    json_write(kept, &member->value);
}

static enum err check_meta_key(struct request *r, const struct json_member *member)
{
    struct str name = member->key;
    bool ours = str_starts(name, GATE_KEY_PREFIX);
    if (!ours && take_trace_key(r, member))
        return OK;
    if (!ours && !str_contains_nocase(name, STR_LIT("toolgate"))) {
        keep_for_server(r, member);
        return OK;
    }
    const struct gate_key *key = ours ? find(str_from(name, sizeof(GATE_KEY_PREFIX) - 1)) : NULL;
    if (!key && r->notice_count == GATE_NOTICES_MAX) { /* of 50,000 the client is told the first */
        r->client->server->problems.kinds[PROBLEM_UNKNOWN_KEY].count++;
        return OK;
    }
    if (!key) {
        struct str names[KEY_COUNT], word = last_word(name);
        for (size_t i = 0; i < KEY_COUNT; i++)
            names[i] = keys[i].key;
        struct str close = find(word) ? word : suggest_closest(word, names, KEY_COUNT);
        struct str text =
            arena_printf(r->arena, "params._meta: '" STR_FMT "' is no key of toolgate and has no effect",
                         STR_ARG(str_cut(name, KEY_SHOWN_BYTES)));
        if (close.len)
            text = arena_printf(r->arena, STR_FMT ": did you mean '" GATE_KEY_PREFIX STR_FMT "'?",
                                STR_ARG(text), STR_ARG(close));
        return note(r, PROBLEM_UNKNOWN_KEY, text);
    }
    if (key->types && !(key->types & 1u << member->value.type))
        return note(r, PROBLEM_WRONG_TYPE,
                    arena_printf(r->arena, "params._meta." STR_FMT " has no effect: expected %s, got %s",
                                 STR_ARG(name),
                                 key->types == LABEL ? "a string or a number" : "true or false",
                                 param_kind(&member->value)));
    if (json_is(&member->value, JSON_STRING) && !member->value.len && str_is(name, GATE_SESSION_KEY))
        return note(
            r, PROBLEM_EMPTY_SESSION,
            STR_LIT("params._meta." GATE_SESSION_KEY
                    ": is empty, so the call has no session; name the conversation, or leave the key out"));
    return OK;
}

enum err gate_keys_check(struct request *r)
{
    enum err err = OK;
    for (uint32_t i = 0; r->meta && i < r->meta->len && !err; i++)
        err = check_meta_key(r, &r->meta->members[i]);
    if (r->meta_for_server.len > META_FOR_SERVER_MAX_BYTES) {
        r->meta_for_server.len = 0;
        add_notice(r, PROBLEM_META_TOO_LONG,
                   arena_printf(r->arena,
                                "params._meta: keys of your own are longer than %u bytes: none is passed on",
                                META_FOR_SERVER_MAX_BYTES));
    }
    struct trace_context *context = r->trace_context;
    if (!err && context && context->values[TRACE_STATE].len && !context->values[TRACE_PARENT].len) {
        context->values[TRACE_STATE] = STR_NONE;
        note_dropped(r, TRACE_STATE, "has no valid traceparent beside it");
    }
    /* "session" or "dev.toolgate/session" among the parameters, where nothing reads it. */
    for (uint32_t i = 0; r->params && i < r->params->len && !err && r->notice_count < GATE_NOTICES_MAX; i++) {
        struct str name = r->params->members[i].key;
        bool prefixed = str_starts(name, GATE_KEY_PREFIX);
        const struct gate_key *key = find(prefixed ? last_word(name) : name);
        bool takes_it =
            key && !prefixed && (key->anywhere || (key->param_of && str_is(r->method_name, key->param_of)));
        if (key && !takes_it)
            err =
                note(r, PROBLEM_MISPLACED_KEY,
                     arena_printf(r->arena,
                                  "params." STR_FMT
                                  " has no effect: send it in params._meta as '" GATE_KEY_PREFIX STR_FMT "'",
                                  STR_ARG(name), STR_ARG(key->key)));
    }
    return err;
}
