/* Reads events; a member that is missing or of another type makes the event HOOK_BROKEN, never a guess. */
#include "hook/hook_event.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/suggest.h"
#include "json/write.h"

static const struct {
    struct str name;
    enum hook_kind kind;
} kinds[] = {{STR("PreToolUse"), HOOK_BEFORE},         {STR("PostToolUse"), HOOK_AFTER},
             {STR("PostToolUseFailure"), HOOK_FAILED}, {STR("PostToolBatch"), HOOK_BATCH},
             {STR("UserPromptSubmit"), HOOK_PROMPT},   {STR("PreCompact"), HOOK_COMPACTED},
             {STR("SessionStart"), HOOK_NOTHING}};

#define KINDS (sizeof(kinds) / sizeof(*kinds))

const char *hook_client_name(enum hook_client client)
{
    static const char *const names[] = {"unknown", "claude", "codex"};
    return names[client];
}

static struct str text_of(const struct json *event, const char *key)
{
    return json_str(json_get_text(event, key));
}

/* Codex names its turn in every event, Claude Code its prompt. Anthropic's ids of calls begin with "toolu_",
 * OpenAI's with "call_" or "fc_"; but a model of another provider runs in both. */
static enum hook_client client_of(const struct json *event, struct str tool_use)
{
    if (json_get_text(event, "turn_id") || str_starts(tool_use, "call_") || str_starts(tool_use, "fc_"))
        return HOOK_CLIENT_CODEX;
    return json_get_text(event, "prompt_id") || str_starts(tool_use, "toolu_") ? HOOK_CLIENT_CLAUDE
                                                                               : HOOK_CLIENT_AUTO;
}

static enum hook_kind kind_of(const struct json *event, struct str name)
{
    struct str source = text_of(event, "source");
    for (size_t i = 0; i < KINDS; i++)
        if (str_eq(name, kinds[i].name)) {
            bool compacted =
                kinds[i].kind == HOOK_NOTHING && (str_is(source, "compact") || str_is(source, "clear"));
            return compacted ? HOOK_COMPACTED : kinds[i].kind;
        }
    return HOOK_UNKNOWN;
}

/* Assistants have events that toolgate does not need, and get new ones. But one that is about a tool's call
 * nobody else would check, and one that is ours but for its spelling would do nothing for ever. */
static const char *find_fault_of_unknown(const struct hook_event *e)
{
    struct str names[KINDS];
    for (size_t i = 0; i < KINDS; i++)
        names[i] = kinds[i].name;
    if (str_is(e->name, "PermissionRequest") || str_is(e->name, "PermissionDenied"))
        return NULL;
    if (e->tool.len)
        return "hook_event_name: expected PreToolUse, PostToolUse or PostToolUseFailure for a tool's call";
    for (size_t i = 0; i < KINDS; i++)
        if (suggest_score(e->name, names[i]) >= SUGGEST_SAME)
            return "hook_event_name: misspelt";
    return suggest_misspelled(e->name, names, KINDS).len ? "hook_event_name: misspelt" : NULL;
}

static const char *find_fault(const struct hook_event *e)
{
    if (!e->session.len)
        return "session_id: expected a string";
    if (e->kind == HOOK_UNKNOWN)
        return find_fault_of_unknown(e);
    if (e->kind > HOOK_FAILED)
        return NULL;
    if (!e->tool.len)
        return "tool_name: expected a string";
    return e->kind == HOOK_BEFORE && !json_is(e->input, JSON_OBJECT) ? "tool_input: expected an object"
                                                                     : NULL;
}

struct hook_event hook_event_read(const struct json *event, enum hook_client client)
{
    struct hook_event e = {.name = text_of(event, "hook_event_name"),
                           .session = text_of(event, "session_id"),
                           .tool = text_of(event, "tool_name"),
                           .tool_use = text_of(event, "tool_use_id"),
                           .agent = str_cut(text_of(event, "agent_id"), HOOK_AGENT_MAX_BYTES),
                           .prompt = text_of(event, "prompt"),
                           .error = text_of(event, "error"),
                           .input = json_get_text(event, "tool_input"),
                           .response = json_get_text(event, "tool_response")};
    e.client = client == HOOK_CLIENT_AUTO ? client_of(event, e.tool_use) : client;
    e.kind = e.name.len ? kind_of(event, e.name) : HOOK_BROKEN;
    e.why = e.name.len ? find_fault(&e) : "hook_event_name: expected a string";
    if (e.why)
        e.kind = HOOK_BROKEN;
    else if (e.kind == HOOK_PROMPT && e.agent.len)
        e.kind = HOOK_NOTHING; /* no person's */
    return e;
}

struct str hook_event_unread(struct arena *arena, struct str bytes)
{
    struct hash128 hash = hash_stable(bytes);
    return arena_printf(arena, "[toolgate has not read this result: %zu bytes, hash %016llx]", bytes.len,
                        (unsigned long long)hash.low);
}

/* Behind the string that begins at `at`. */
static size_t skip_string(struct str text, size_t at)
{
    for (at++; at < text.len && text.at[at] != '"'; at++)
        at += text.at[at] == '\\';
    return at + 1;
}

struct str hook_event_without_results(struct arena *arena, struct str text)
{
    struct str key = STR_NONE;
    size_t depth = 0, from = 0;
    for (size_t at = 0; at < text.len; at++) {
        char c = text.at[at];
        if (c == '"') {
            size_t end = skip_string(text, at);
            if (depth == 1 && !from && end <= text.len)
                key = (struct str){text.at + at, end - at};
            at = end - 1;
        } else if (c == ':' && depth == 1 && !from) {
            from = str_is(key, "\"tool_response\"") || str_is(key, "\"tool_calls\"") ? at + 1 : 0;
        } else if (from && depth == 1 && (c == ',' || c == '}')) {
            struct buf out = buf_in(arena);
            buf_str(&out, (struct str){text.at, from});
            json_write_string(&out, hook_event_unread(arena, (struct str){text.at + from, at - from}));
            buf_str(&out, str_from(text, at));
            return buf_view(&out);
        } else {
            depth += (c == '{' || c == '[') - (c == '}' || c == ']');
        }
    }
    return STR_NONE;
}
