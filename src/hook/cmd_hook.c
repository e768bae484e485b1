/*
 * toolgate hook: one event of a coding assistant on stdin, its answer on stdout. The assistant's own tools
 * (Bash, Edit, WebFetch, …) get policies, loops, budgets and a decision log.
 *
 *   UserPromptSubmit ─▶ toolgate/turn      PreToolUse ─▶ toolgate/check      PostToolUse… ─▶ toolgate/report
 */
#include "base/arena.h"
#include "base/buf.h"
#include "cli/daemon_client.h"
#include "cli/json_input.h"
#include "cli/options.h"
#include "cli/term.h"
#include "hook/hook_answer.h"
#include "hook/hook_calls.h"
#include "json/write.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GOAL_KEPT_BYTES 8192u /* of a prompt: what a goal may have */
#define BLOCKS          2     /* the exit code that makes an assistant stop, with stderr as the reason */

struct hook {
    const struct command *command;
    struct arena *arena;
    const char *socket;
    enum hook_decision unavailable; /* what a daemon that is not there means */
    bool denies_unknown;            /* events that this version does not know */
    struct hook_event event;
};

/* ---- requests ---- */

static void put_meta(struct json_out *out, const struct hook_event *e)
{
    struct buf client = {0};
    buf_printf(&client, "hook:%s", hook_client_name(e->client));
    json_field_open(out, "_meta", '{');
    json_field_str(out, "dev.toolgate/session", e->session);
    if (e->tool_use.len)
        json_field_str(out, "dev.toolgate/call", e->tool_use);
    json_field_str(out, "dev.toolgate/ext", buf_view(&client));
    json_close(out, '}');
    buf_clear(&client);
}

/* A tool without a policy is known by its hook. The daemon keeps what its files say of one that has a policy.
 */
static void declare(struct hook *h, struct daemon_client *client)
{
    struct buf text = buf_in(h->arena);
    struct json_out out = json_out(&text);
    struct json ignored;
    struct why why;
    json_open(&out, '{');
    json_field_open(&out, "tools", '[');
    json_open(&out, '{');
    json_field_str(&out, "name", h->event.tool);
    json_field_raw(&out, "inputSchema", STR_LIT("{\"type\":\"object\"}"));
    json_close(&out, '}');
    json_close(&out, ']');
    json_close(&out, '}');
    (void)daemon_client_call(client, h->arena, "toolgate/register", buf_view(&text), &ignored, &why);
}

static enum err check(struct hook *h, struct daemon_client *client, struct json *verdict, struct why *why)
{
    struct buf text = buf_in(h->arena);
    struct json_out out = json_out(&text);
    json_open(&out, '{');
    json_field_str(&out, "name", h->event.tool);
    json_field(&out, "arguments", h->event.input);
    if (h->event.client != HOOK_CLIENT_CODEX) /* the assistant puts the question to its user itself */
        json_field_bool(&out, "asks", true);
    put_meta(&out, &h->event);
    json_close(&out, '}');
    return daemon_client_call(client, h->arena, "toolgate/check", buf_view(&text), verdict, why);
}

static enum err report(struct hook *h, struct daemon_client *client, struct str call_id, struct json *verdict,
                       struct why *why)
{
    struct buf text = buf_in(h->arena);
    struct json_out out = json_out(&text);
    json_open(&out, '{');
    json_field_str(&out, "callId", call_id);
    if (h->event.kind == HOOK_FAILED) {
        json_field_open(&out, "error", '{');
        json_field_str(&out, "message",
                       h->event.error.len ? h->event.error : STR_LIT("it failed without a message"));
        json_close(&out, '}');
    } else {
        json_field(&out, "result", h->event.response);
    }
    json_close(&out, '}');
    return daemon_client_call(client, h->arena, "toolgate/report", buf_view(&text), verdict, why);
}

static enum err begin_turn(struct hook *h, struct daemon_client *client, struct why *why)
{
    struct buf text = buf_in(h->arena);
    struct json_out out = json_out(&text);
    struct json ignored;
    json_open(&out, '{');
    if (h->event.prompt.len)
        json_field_str(&out, "goal", str_cut(h->event.prompt, GOAL_KEPT_BYTES));
    put_meta(&out, &h->event);
    json_close(&out, '}');
    return daemon_client_call(client, h->arena, "toolgate/turn", buf_view(&text), &ignored, why);
}

/* ---- events ---- */

static struct str text_of(const struct json *verdict, const char *key)
{
    return json_str(json_get_text(verdict, key));
}

static bool is(const struct json *verdict, const char *what)
{
    return str_is(text_of(verdict, "verdict"), what);
}

/* A daemon that is not there, or does not check the call. On `ask` the user reads why; a model would try to
 * mend it. */
static int answer_unavailable(struct hook *h, const struct why *why)
{
    struct str reason = STR_LIT("toolgate, which checks every call here, has not checked this one. Tell the "
                                "user; do not repeat the call.");
    term_error(h->command->name, "%s", why->text);
    if (h->event.kind != HOOK_BEFORE || h->unavailable == HOOK_ALLOW)
        return CLI_OK;
    if (h->unavailable == HOOK_ASK)
        reason = arena_printf(
            h->arena, "toolgate, which checks every call here, has not checked this one: %s", why->text);
    hook_answer_decision(&h->event, h->unavailable, reason, NULL);
    return CLI_OK;
}

static void answer_pass(struct hook *h, const struct json *verdict)
{
    const struct json *rewrites = json_get_text(verdict, "rewrites");
    struct str advice = text_of(verdict, "advice");
    if (json_is(rewrites, JSON_ARRAY) && rewrites->len)
        hook_answer_decision(&h->event, HOOK_ASK,
                             advice.len ? advice : STR_LIT("The arguments were corrected."),
                             json_get_text(verdict, "arguments"));
    else if (advice.len)
        hook_answer_note(&h->event, advice);
}

static int on_before(struct hook *h, struct daemon_client *client)
{
    struct json verdict;
    struct why why;
    declare(h, client);
    if (check(h, client, &verdict, &why) != OK)
        return answer_unavailable(h, &why);
    struct str text = text_of(&verdict, "text"), call_id = text_of(&verdict, "callId");
    bool passes = is(&verdict, "pass");
    bool is_for_user = h->event.client != HOOK_CLIENT_CODEX; /* what Codex is told to ask, its model reads */
    if (passes && call_id.len && !hook_call_keep(&h->event, call_id))
        term_error(h->command->name, "the result of this call cannot be reported: %s", strerror(errno));
    if (passes)
        answer_pass(h, &verdict);
    else if (is(&verdict, "ask"))
        hook_answer_decision(&h->event, HOOK_ASK, is_for_user ? text_of(&verdict, "detail") : text, NULL);
    else
        hook_answer_decision(&h->event, HOOK_DENY, text.len ? text : text_of(&verdict, "detail"), NULL);
    return CLI_OK;
}

static int on_after(struct hook *h, struct daemon_client *client, struct str call_id)
{
    struct json verdict;
    struct why why;
    declare(h, client);
    if (report(h, client, call_id, &verdict, &why) != OK)
        return answer_unavailable(h, &why);
    struct str text = text_of(&verdict, "text"), advice = text_of(&verdict, "advice");
    if (!is(&verdict, "pass") && text.len && h->event.kind == HOOK_AFTER)
        hook_answer_block(text);
    else if (text.len || advice.len)
        hook_answer_note(&h->event, text.len ? text : advice);
    return CLI_OK;
}

static int on_event(struct hook *h)
{
    struct daemon_client *client = NULL;
    char id[HOOK_CALL_ID_MAX_BYTES];
    struct str call_id = STR_NONE;
    struct why why;
    int status;
    bool reports = h->event.kind == HOOK_AFTER || h->event.kind == HOOK_FAILED;
    if (reports && !(call_id = hook_call_take(&h->event, id)).len)
        return CLI_OK; /* no check was made, or it refused */
    if (daemon_client_connect(h->socket, &client, &why) != OK)
        return answer_unavailable(h, &why);
    if (h->event.kind == HOOK_BEFORE) {
        status = on_before(h, client);
    } else if (reports) {
        status = on_after(h, client, call_id);
    } else {
        hook_calls_sweep();
        status = begin_turn(h, client, &why) == OK ? CLI_OK : answer_unavailable(h, &why);
    }
    daemon_client_close(client);
    return status;
}

/* An event that is none blocks: nobody knows what it would have asked. */
static int on_other(struct hook *h)
{
    if (h->event.kind == HOOK_BROKEN) {
        term_error(h->command->name, "stdin is no event of a hook: %s", h->event.why);
        return BLOCKS;
    }
    term_error(h->command->name,
               "the event " STR_FMT " is not known: it is %s (--on-unknown); hook PreToolUse, PostToolUse, "
               "PostToolUseFailure and UserPromptSubmit",
               STR_ARG(str_cut(h->event.name, 100)), h->denies_unknown ? "refused" : "allowed");
    return h->denies_unknown ? BLOCKS : CLI_OK;
}

/* ---- the command ---- */

/* False, after an error: no such word. */
static bool choose(const struct command *command, const char *option, const char *given,
                   const char *const *words, int *out)
{
    for (int i = 0; words[i]; i++)
        if (strcmp(given, words[i]) == 0) {
            *out = i;
            return true;
        }
    term_error(command->name, "%s: expected %s or %s, got '%s'", option, words[0], words[1], given);
    return false;
}

static int install(const char *socket)
{
    char program[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
    program[n > 0 ? n : 0] = '\0';
    hook_answer_install(n > 0 ? program : "toolgate", socket);
    return CLI_OK;
}

static int run(const struct command *command, int argc, char **argv)
{
    static const char *const decisions[] = {"ask", "allow", "deny", NULL};  /* enum hook_decision */
    static const char *const clients[] = {"auto", "claude", "codex", NULL}; /* enum hook_client */
    static const char *const unknowns[] = {"allow", "deny", NULL};
    const char *socket = NULL, *unavailable = "ask", *unknown = "allow", *client = "auto";
    bool only_install = false;
    int status, decision, client_kind, denies;
    const struct cli_option table[] = {
        SOCKET_OPTION(&socket),
        {"on-unavailable", "ask|allow|deny", "what a call means while no daemon answers (default ask)", 0,
         OPTION_STRING, &unavailable},
        {"on-unknown", "allow|deny", "what an event of another kind means (default allow)", 0, OPTION_STRING,
         &unknown},
        {"client", "auto|claude|codex", "whose hooks these are (default: by the event)", 0, OPTION_STRING,
         &client},
        {"install", NULL, "print what belongs into the assistant's settings, and end", 0, OPTION_FLAG,
         &only_install},
        {0},
    };
    struct json event;
    if (!options_read(command, table, &argc, &argv, &status))
        return status;
    if (!choose(command, "--on-unavailable", unavailable, decisions, &decision) ||
        !choose(command, "--client", client, clients, &client_kind) ||
        !choose(command, "--on-unknown", unknown, unknowns, &denies))
        return CLI_ERROR;
    if (only_install)
        return install(socket);
    struct hook h = {.command = command,
                     .arena = arena_new(),
                     .socket = socket,
                     .unavailable = (enum hook_decision)decision,
                     .denies_unknown = denies == 1};
    status = BLOCKS;
    if (json_input_stdin(command, h.arena, &event)) {
        h.event = hook_event_read(&event, (enum hook_client)client_kind);
        status = h.event.kind < HOOK_UNKNOWN ? on_event(&h) : on_other(&h);
    }
    arena_free(h.arena);
    return status;
}

const struct command command_hook = {
    .name = "hook",
    .operands = "",
    .summary = "check the own tools of a coding assistant (Claude Code, Codex CLI)",
    .about = "Reads one event of the assistant's hooks on stdin and answers on stdout as its hook protocol "
             "says: a\n"
             "prompt begins a turn, a call is checked before it runs and reported after. A call that passes "
             "prints\n"
             "nothing, so that the assistant's own permission prompt stays. Arguments that were corrected, "
             "and calls\n"
             "that a policy wants to be asked about, become a question to the user; refusals are read by the "
             "model.\n"
             "Codex runs what it is told to ask about, so there it is a refusal in words.",
    .exits = "  0  answered, also with a refusal\n"
             "  2  usage, or no event of a hook on stdin: the assistant blocks the call and shows stderr",
    .example = "  toolgate hook --install --socket /run/toolgate/toolgate.sock",
    .run = run,
};
