/* Reads events; a member that is missing or of another type makes the event HOOK_BROKEN, never a guess. */
#include "hook/hook_event.h"

static const struct {
    const char *name;
    enum hook_kind kind;
} kinds[] = {{"PreToolUse", HOOK_BEFORE},
             {"PostToolUse", HOOK_AFTER},
             {"PostToolUseFailure", HOOK_FAILED},
             {"UserPromptSubmit", HOOK_PROMPT}};

const char *hook_client_name(enum hook_client client)
{
    return client == HOOK_CLIENT_CODEX ? "codex" : "claude";
}

/* OpenAI's ids of calls begin with "call_" or "fc_", Anthropic's with "toolu_". */
static enum hook_client client_of(struct str tool_use)
{
    return str_starts(tool_use, "call_") || str_starts(tool_use, "fc_") ? HOOK_CLIENT_CODEX
                                                                        : HOOK_CLIENT_CLAUDE;
}

static enum hook_kind kind_of(struct str name)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (str_is(name, kinds[i].name))
            return kinds[i].kind;
    return HOOK_UNKNOWN;
}

static struct str text_of(const struct json *event, const char *key)
{
    return json_str(json_get_text(event, key));
}

static const char *find_fault(const struct hook_event *e)
{
    if (!e->session.len)
        return "session_id: expected a string";
    if (e->kind == HOOK_PROMPT || e->kind == HOOK_UNKNOWN)
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
                           .prompt = text_of(event, "prompt"),
                           .error = text_of(event, "error"),
                           .input = json_get_text(event, "tool_input"),
                           .response = json_get_text(event, "tool_response")};
    e.client = client == HOOK_CLIENT_AUTO ? client_of(e.tool_use) : client;
    e.kind = e.name.len ? kind_of(e.name) : HOOK_BROKEN;
    e.why = e.name.len ? find_fault(&e) : "hook_event_name: expected a string";
    if (e.why)
        e.kind = HOOK_BROKEN;
    return e;
}
