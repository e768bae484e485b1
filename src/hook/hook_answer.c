/* Writes answers in the form of the hook protocol, one line of JSON. */
#include "hook/hook_answer.h"

#include "base/buf.h"
#include "json/write.h"

#include <stdio.h>

#define EVENTS "PreToolUse PostToolUse PostToolUseFailure UserPromptSubmit"

static void print(struct buf *text)
{
    buf_byte(text, '\n');
    fwrite(text->at, 1, text->len, stdout);
    buf_clear(text);
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
    print(out->buf);
}

/* Codex: "ask" would run the call, and `updatedInput` needs "allow". */
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
    json_field_str(out, "permissionDecisionReason", buf_view(&words));
    buf_clear(&words);
}

void hook_answer_decision(const struct hook_event *e, enum hook_decision decision, struct str reason,
                          const struct json *updated)
{
    static const char *const names[] = {"ask", "allow", "deny"};
    struct buf text = {0};
    struct json_out out = begin(&text, e);
    if (decision == HOOK_ASK && e->client == HOOK_CLIENT_CODEX) {
        put_reason_in_words(&out, reason, updated);
    } else {
        json_field_text(&out, "permissionDecision", names[decision]);
        json_field_str(&out, "permissionDecisionReason", reason);
        if (updated)
            json_field(&out, "updatedInput", updated);
    }
    end(&out);
}

void hook_answer_note(const struct hook_event *e, struct str note)
{
    struct buf text = {0};
    struct json_out out = begin(&text, e);
    json_field_str(&out, "additionalContext", note);
    end(&out);
}

void hook_answer_block(struct str reason)
{
    struct buf text = {0};
    struct json_out out = json_out(&text);
    json_open(&out, '{');
    json_field_text(&out, "decision", "block");
    json_field_str(&out, "reason", reason);
    json_close(&out, '}');
    print(&text);
}

void hook_answer_install(const char *program, const char *socket)
{
    struct buf command = {0}, quoted = {0};
    buf_printf(&command, "%s hook%s%s", program, socket ? " --socket " : "", socket ? socket : "");
    json_write_string(&quoted, buf_view(&command));
    printf("{\n  \"hooks\": {\n");
    struct str names = STR_LIT(EVENTS);
    while (names.len) {
        const char *space = memchr(names.at, ' ', names.len);
        struct str name = {names.at, space ? (size_t)(space - names.at) : names.len};
        names = str_from(names, name.len + (space != NULL));
        bool about_tools = !str_starts(name, "User");
        printf("    \"" STR_FMT "\": [{ %s\"hooks\": [{ \"type\": \"command\", \"command\": " STR_FMT
               ", \"timeout\": 10 }] }]%s\n",
               STR_ARG(name), about_tools ? "\"matcher\": \"*\", " : "", STR_ARG(buf_view(&quoted)),
               names.len ? "," : "");
    }
    printf("  }\n}\n");
    buf_clear(&command);
    buf_clear(&quoted);
}
