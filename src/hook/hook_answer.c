/* Writes answers in the form of the hook protocol, one line of JSON. */
#include "hook/hook_answer.h"

#include "base/buf.h"
#include "json/write.h"

static void put_reason(struct json_out *out, const char *key, struct str reason)
{
    json_field_str(out, key, str_trim(reason).len ? reason : STR_LIT("toolgate refuses this call."));
}

static struct json_out begin(struct buf *text, const struct hook_event *e)
{
    struct json_out out = json_out(text);
    json_open(&out, '{');
    json_field_open(&out, "hookSpecificOutput", '{');
    json_field_str(&out, "hookEventName", e->name);
    return out;
}

static void end(struct json_out *out)
{
    json_close(out, '}');
    json_close(out, '}');
    buf_byte(out->buf, '\n');
}

/* "ask" would run the call there, and `updatedInput` needs "allow". */
static void put_reason_in_words(struct json_out *out, struct str reason, const struct json *updated)
{
    struct buf words = {0};
    buf_str(&words, reason);
    if (updated) {
        buf_text(&words, "\nCall it again with these arguments: ");
        json_write(&words, updated);
    } else {
        buf_text(&words, "\nAsk the user first, and call it again only after the user has said yes.");
    }
    json_field_text(out, "permissionDecision", "deny");
    put_reason(out, "permissionDecisionReason", buf_view(&words));
    buf_clear(&words);
}

void hook_answer_decision(struct buf *text, const struct hook_event *e, enum hook_decision decision,
                          struct str reason, const struct json *updated)
{
    if (decision == HOOK_ALLOW)
        return;
    struct json_out out = begin(text, e);
    if (decision == HOOK_ASK && e->client != HOOK_CLIENT_CLAUDE) {
        put_reason_in_words(&out, reason, updated);
    } else {
        json_field_text(&out, "permissionDecision", decision == HOOK_ASK ? "ask" : "deny");
        put_reason(&out, "permissionDecisionReason", reason);
        if (updated)
            json_field(&out, "updatedInput", updated);
    }
    end(&out);
}

void hook_answer_note(struct buf *text, const struct hook_event *e, struct str note)
{
    if (e->kind == HOOK_BEFORE && e->client != HOOK_CLIENT_CLAUDE)
        return;
    struct json_out out = begin(text, e);
    json_field_str(&out, "additionalContext", note);
    end(&out);
}

void hook_answer_block(struct buf *text, const struct hook_event *e, struct str reason)
{
    struct json_out out = json_out(text);
    if (e->kind == HOOK_BEFORE) {
        hook_answer_decision(text, e, HOOK_DENY, reason, NULL);
    } else if (e->kind == HOOK_AFTER) {
        json_open(&out, '{');
        json_field_text(&out, "decision", "block");
        put_reason(&out, "reason", reason);
        json_close(&out, '}');
        buf_byte(text, '\n');
    } else { /* it failed already */
        hook_answer_note(text, e, reason);
    }
}

void hook_answer_halt(struct buf *text, const struct hook_event *e, struct str reason)
{
    struct buf block = {0}, stop = {0};
    struct json_out out = json_out(&stop);
    hook_answer_block(&block, e, reason);
    if (e->client == HOOK_CLIENT_CLAUDE) {
        json_open(&out, '{');
        json_field_bool(&out, "continue", false);
        put_reason(&out, "stopReason", reason);
        buf_byte(&stop, ',');
    }
    buf_str(text, buf_view(&stop)); /* the same object has both */
    buf_str(text, str_from(buf_view(&block), stop.len ? 1 : 0));
    buf_clear(&block);
    buf_clear(&stop);
}

/* Claude Code blocks a call whose hook failed only where it is told to; Codex knows neither that key nor the
 * events of failures and of batches. */
static const struct {
    const char *event;
    bool about_tools, claude_only, blocks;
} installed[] = {{"PreToolUse", true, false, true},         {"PostToolUse", true, false, false},
                 {"PostToolUseFailure", true, true, false}, {"PostToolBatch", false, true, false},
                 {"UserPromptSubmit", false, false, false}, {"PreCompact", false, false, false},
                 {"SessionStart", false, false, false}};

void hook_answer_install(struct buf *out, enum hook_client client, struct str command)
{
    const char *comma = "";
    buf_text(out, "{\n  \"hooks\": {\n");
    for (size_t i = 0; i < sizeof(installed) / sizeof(*installed); i++) {
        if (installed[i].claude_only && client == HOOK_CLIENT_CODEX)
            continue;
        buf_printf(out, "%s    \"%s\": [{ %s\"hooks\": [{ \"type\": \"command\", \"command\": ", comma,
                   installed[i].event, installed[i].about_tools ? "\"matcher\": \"*\", " : "");
        json_write_string(out, command);
        buf_printf(out, ", \"timeout\": 10%s }] }]",
                   installed[i].blocks && client != HOOK_CLIENT_CODEX ? ", \"onFailure\": \"block\"" : "");
        comma = ",\n";
    }
    buf_text(out, "\n  }\n}\n");
}
