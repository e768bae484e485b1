/*
 * toolgate hook: one event of a coding assistant on stdin, its answer on stdout. The assistant's own tools
 * (Bash, Edit, WebFetch, …) get policies, loops, budgets and a decision log.
 *
 *   UserPromptSubmit, PreCompact, SessionStart ─▶ toolgate/turn      PostToolBatch: the step ends
 *   PreToolUse ─▶ toolgate/check                                     PostToolUse… ─▶ toolgate/report
 */
#include "base/arena.h"
#include "base/buf.h"
#include "cli/daemon_client.h"
#include "cli/json_input.h"
#include "cli/options.h"
#include "cli/term.h"
#include "hook/hook_answer.h"
#include "hook/hook_calls.h"
#include "hook/hook_guard.h"
#include "json/parse.h"
#include "json/write.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#define GOAL_KEPT_BYTES 8192u /* of a prompt: what a goal may have */

#define PLAIN "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+,:@%=" /* for sh */

#define UNREADABLE_FIRST                                                                                     \
    1001 /* codes of the daemon's errors: limits of a message, its depth and its values */
#define UNREADABLE_LAST 1003

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
    char step[HOOK_CALL_ID_MAX_BYTES];
    buf_printf(&client, "hook:%s", hook_client_name(e->client));
    json_field_open(out, "_meta", '{');
    json_field_str(out, "dev.toolgate/session", e->session);
    json_field_optional_str(out, "dev.toolgate/agent", e->agent);
    json_field_optional_str(out, "dev.toolgate/call", e->tool_use);
    if (e->kind == HOOK_BEFORE)
        json_field_optional_str(out, "dev.toolgate/step", hook_step(e, step));
    json_field_str(out, "dev.toolgate/ext", buf_view(&client));
    json_close(out, '}');
    buf_clear(&client);
}

/* A tool without a policy is known by its hook. The daemon keeps what its files say of one that has a policy.
 */
static enum err declare(struct hook *h, struct daemon_client *client, struct why *why)
{
    struct buf text = buf_in(h->arena);
    struct json_out out = json_out(&text);
    struct json ignored;
    json_open(&out, '{');
    json_field_open(&out, "tools", '[');
    json_open(&out, '{');
    json_field_str(&out, "name", h->event.tool);
    json_field_raw(&out, "inputSchema", STR_LIT("{\"type\":\"object\"}"));
    json_close(&out, '}');
    json_close(&out, ']');
    json_close(&out, '}');
    enum err err = daemon_client_call(client, h->arena, "toolgate/register", buf_view(&text), &ignored, why);
    return err == ERR_PARSE ? OK : err; /* what a daemon refuses here, it refuses to check, too */
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

/* `unread`: words in place of the result; STR_NONE: the result itself. */
static enum err report(struct hook *h, struct daemon_client *client, struct str call_id, struct str unread,
                       struct json *verdict, struct why *why)
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
    } else if (unread.len) {
        json_field_str(&out, "result", unread);
    } else {
        json_field(&out, "result", h->event.response);
    }
    json_close(&out, '}');
    return daemon_client_call(client, h->arena, "toolgate/report", buf_view(&text), verdict, why);
}

/* A person's words begin a turn. A compaction begins none: the model has forgotten what it had read. */
static enum err tell_turn(struct hook *h, struct daemon_client *client, struct why *why)
{
    struct buf text = buf_in(h->arena);
    struct json_out out = json_out(&text);
    struct json ignored;
    json_open(&out, '{');
    if (h->event.kind == HOOK_COMPACTED)
        json_field_bool(&out, "compacted", true);
    else
        json_field_text(&out, "by", "person");
    json_field_optional_str(&out, "goal", str_cut(h->event.prompt, GOAL_KEPT_BYTES));
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

/* Says what the assistant hears. Nobody reads it: the call must not run. */
static int say(const struct hook *h, struct buf *answer)
{
    bool said = hook_guard_say(buf_view(answer));
    if (!said)
        term_error(h->command->name, "the answer could not be written: %s", strerror(errno));
    buf_clear(answer);
    return said ? CLI_OK : HOOK_BLOCKS;
}

/* On `ask` the user reads why; a model would try to mend it. */
static void write_unavailable(const struct hook *h, const char *why, struct buf *answer)
{
    struct str reason = STR_LIT("toolgate, which checks every call here, has not checked this one. Tell the "
                                "user; do not repeat the call.");
    if (h->unavailable == HOOK_ASK)
        reason = arena_printf(h->arena,
                              "toolgate, which checks every call here, has not checked this one: %s", why);
    if (h->event.kind == HOOK_BEFORE)
        hook_answer_decision(answer, &h->event, h->unavailable, reason, NULL);
}

/* The daemon did not read it: it is too large or too deep, and the model made it so. */
static bool is_unreadable(const struct daemon_client *client)
{
    int64_t code = daemon_client_error_code(client);
    return code >= UNREADABLE_FIRST && code <= UNREADABLE_LAST;
}

/* The daemon is not there, or has not judged the event. Never for --on-unavailable: what listens there is no
 * daemon, or takes no call of a hook; and a call that the model made too large to be checked is not allowed.
 */
static int answer_failure(struct hook *h, const struct daemon_client *client, enum err err, const char *why)
{
    struct buf answer = {0};
    bool refused = err == ERR_PARSE && client;
    term_error(h->command->name, "%s", why);
    if (err == ERR_CONFIG ||
        (refused && daemon_client_error_code(client) < 0 && h->event.kind == HOOK_BEFORE))
        return HOOK_BLOCKS;
    if (refused && is_unreadable(client) && h->unavailable == HOOK_ALLOW)
        h->unavailable = HOOK_DENY;
    write_unavailable(h, why, &answer);
    return say(h, &answer);
}

static void write_pass(const struct hook *h, const struct json *verdict, struct buf *answer)
{
    const struct json *rewrites = json_get_text(verdict, "rewrites");
    struct str advice = text_of(verdict, "advice");
    if (json_is(rewrites, JSON_ARRAY) && rewrites->len)
        hook_answer_decision(answer, &h->event, HOOK_ASK,
                             advice.len ? advice : STR_LIT("The arguments were corrected."),
                             json_get_text(verdict, "arguments"));
    else if (advice.len)
        hook_answer_note(answer, &h->event, advice);
}

static int on_before(struct hook *h, struct daemon_client *client)
{
    struct json verdict;
    struct buf answer = {0};
    struct why why;
    enum err err = declare(h, client, &why);
    if (err == OK)
        err = check(h, client, &verdict, &why);
    if (err != OK)
        return answer_failure(h, client, err, why.text);
    struct str text = text_of(&verdict, "text"), call_id = text_of(&verdict, "callId");
    bool is_for_user = h->event.client == HOOK_CLIENT_CLAUDE; /* elsewhere the model reads it */
    if (!text_of(&verdict, "verdict").len)
        return answer_failure(h, client, ERR_CONFIG, "the daemon's answer has no verdict");
    text = text.len ? text : text_of(&verdict, "detail");
    if (is(&verdict, "pass")) {
        if (call_id.len && !hook_call_keep(&h->event, call_id))
            term_error(h->command->name, "the result of this call cannot be reported: %s", strerror(errno));
        write_pass(h, &verdict, &answer);
    } else if (is(&verdict, "ask")) {
        hook_answer_decision(&answer, &h->event, HOOK_ASK, is_for_user ? text_of(&verdict, "detail") : text,
                             NULL);
    } else if (is(&verdict, "halt")) {
        hook_answer_halt(&answer, &h->event, text);
    } else {
        hook_answer_block(&answer, &h->event, text);
    }
    return say(h, &answer);
}

static int on_after(struct hook *h, struct daemon_client *client, struct str call_id)
{
    struct json verdict;
    struct buf answer = {0};
    struct why why;
    enum err err = declare(h, client, &why);
    if (err == OK)
        err = report(h, client, call_id, STR_NONE, &verdict, &why);
    if (err == ERR_PARSE && is_unreadable(client) && h->event.kind == HOOK_AFTER) {
        term_error(h->command->name, "the result is reported as unread: %s", why.text);
        struct str unread = hook_event_unread(h->arena, json_to_str(h->arena, h->event.response));
        err = report(h, client, call_id, unread, &verdict, &why);
    }
    if (err != OK)
        return answer_failure(h, client, err, why.text);
    struct str text = text_of(&verdict, "text"), advice = text_of(&verdict, "advice");
    if (is(&verdict, "halt"))
        hook_answer_halt(&answer, &h->event, text);
    else if (!is(&verdict, "pass") && text.len)
        hook_answer_block(&answer, &h->event, text);
    else if (text.len || advice.len)
        hook_answer_note(&answer, &h->event, text.len ? text : advice);
    return say(h, &answer);
}

static int on_turn(struct hook *h, struct daemon_client *client)
{
    struct why why;
    enum err err = tell_turn(h, client, &why);
    return err == OK ? CLI_OK : answer_failure(h, client, err, why.text);
}

static int on_event(struct hook *h)
{
    struct daemon_client *client = NULL;
    char id[HOOK_CALL_ID_MAX_BYTES];
    struct str call_id = STR_NONE;
    struct buf late = {0};
    struct why why;
    enum hook_kind kind = h->event.kind;
    bool reports = kind == HOOK_AFTER || kind == HOOK_FAILED;
    if (kind == HOOK_BATCH || kind == HOOK_PROMPT)
        hook_step_end(&h->event, kind == HOOK_BATCH);
    if (kind == HOOK_PROMPT)
        hook_calls_sweep();
    if (kind == HOOK_BATCH || kind == HOOK_NOTHING ||
        (reports && !(call_id = hook_call_take(&h->event, id)).len))
        return CLI_OK; /* no check was made, or it refused */
    write_unavailable(h, "no answer within 1.5 s: the daemon hangs or is stopped", &late);
    hook_guard_answer(buf_view(&late));
    buf_clear(&late);
    enum err err = daemon_client_connect(h->socket, &client, &why);
    int status = err != OK             ? answer_failure(h, NULL, err, why.text)
                 : kind == HOOK_BEFORE ? on_before(h, client)
                 : reports             ? on_after(h, client, call_id)
                                       : on_turn(h, client);
    daemon_client_close(client);
    return status;
}

/* An event that is none blocks: nobody knows what it would have asked. */
static int on_other(const struct hook *h)
{
    struct str name = str_cut(h->event.name, 100);
    if (h->event.kind == HOOK_BROKEN) {
        term_error(h->command->name, "stdin is no event of a hook: %s (event '" STR_FMT "')", h->event.why,
                   STR_ARG(name));
        return HOOK_BLOCKS;
    }
    term_error(
        h->command->name,
        "the event " STR_FMT " is not known: it is %s (--on-unknown); `%s %s --install` has those that "
        "are",
        STR_ARG(name), h->denies_unknown ? "refused" : "allowed", term_program_name(), h->command->name);
    return h->denies_unknown ? HOOK_BLOCKS : CLI_OK;
}

/* A result may be larger or deeper than JSON that is read here; the call has run, and that can be said. */
static bool read_event(const struct command *command, struct arena *arena, struct json *out)
{
    struct str text, rest;
    struct json_error fault, ignored;
    if (!json_input_text(command, arena, &text))
        return false;
    if (json_parse(arena, text, NULL, out, &fault) == OK || fault.soft)
        return true;
    rest = hook_event_without_results(arena, text);
    if (rest.len && (json_parse(arena, rest, NULL, out, &ignored) == OK || ignored.soft))
        return true;
    term_error(command->name, "stdin: %s", fault.text);
    return false;
}

/* ---- the command ---- */

/* NULL is the first. False, after an error: no such word. */
static bool choose(const struct command *command, const char *option, const char *given,
                   const char *const *words, int *out)
{
    for (int i = 0; words[i]; i++)
        if (strcmp(given ? given : words[0], words[i]) == 0) {
            *out = i;
            return true;
        }
    term_error(command->name, "%s: expected %s or %s, got '%s'", option, words[0], words[1], given);
    return false;
}

/* A word of a command line of sh. */
static void put_word(struct buf *out, const char *word)
{
    if (*word && !word[strspn(word, PLAIN)]) {
        buf_text(out, word);
        return;
    }
    buf_byte(out, '\'');
    for (const char *at = word; *at; at++)
        if (*at == '\'')
            buf_text(out, "'\\''");
        else
            buf_byte(out, *at);
    buf_byte(out, '\'');
}

/* The command has the options that were given, so that the assistant's hooks do what was asked for here. */
static int install(const struct cli_option *options, enum hook_client client)
{
    char program[PATH_MAX];
    struct buf line = {0}, out = {0};
    ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
    program[n > 0 ? n : 0] = '\0';
    put_word(&line, n > 0 ? program : "toolgate");
    buf_text(&line, " hook");
    for (; options->name; options++) {
        const char *given = options->kind == OPTION_STRING ? *(const char **)options->target : NULL;
        if (!given)
            continue;
        buf_printf(&line, " --%s ", options->name);
        put_word(&line, given);
    }
    hook_answer_install(&out, client, buf_view(&line));
    fwrite(out.at, 1, out.len, stdout);
    buf_clear(&line);
    buf_clear(&out);
    return CLI_OK;
}

static int run(const struct command *command, int argc, char **argv)
{
    static const char *const decisions[] = {"ask", "allow", "deny", NULL};  /* enum hook_decision */
    static const char *const clients[] = {"auto", "claude", "codex", NULL}; /* enum hook_client */
    static const char *const unknowns[] = {"allow", "deny", NULL};
    const char *socket = NULL, *unavailable = NULL, *unknown = NULL, *client = NULL;
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
    hook_guard_begin();
    if (!choose(command, "--on-unavailable", unavailable, decisions, &decision) ||
        !choose(command, "--client", client, clients, &client_kind) ||
        !choose(command, "--on-unknown", unknown, unknowns, &denies))
        return CLI_ERROR;
    if (only_install)
        return install(table, (enum hook_client)client_kind);
    struct hook h = {.command = command,
                     .arena = arena_new(),
                     .socket = socket,
                     .unavailable = (enum hook_decision)decision,
                     .denies_unknown = denies == 1};
    status = HOOK_BLOCKS;
    if (read_event(command, h.arena, &event)) {
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
    .exits =
        "  0  answered, also with a refusal\n"
        "  2  any error, such as no event of a hook on stdin: the assistant blocks the call and shows stderr",
    .example = "  toolgate hook --install --socket /run/toolgate/toolgate.sock",
    .run = run,
};
