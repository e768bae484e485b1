/* Output to value, exit status to outcome, stderr to a quotation. */
#include "upstream/exec/exec.h"
#include "upstream/secrets.h"
#include "upstream/upstream_call.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/stack_trace.h"
#include "io/child.h"
#include "json/build.h"
#include "json/parse.h"

#include <ctype.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

static bool next_line(struct str *rest, struct str *line)
{
    const char *end = rest->len ? memchr(rest->at, '\n', rest->len) : NULL;
    *line = (struct str){rest->at, end ? (size_t)(end - rest->at) : rest->len};
    bool more = rest->len > 0;
    *rest = str_from(*rest, line->len + 1);
    return more;
}

/* Valid UTF-8. `terminal`: without control characters and escape sequences, too. */
static struct str clean(struct arena *arena, struct str text, bool terminal)
{
    struct buf out = buf_in(arena);
    const char *end = text.at + text.len;
    for (const char *at = text.at; at < end;) {
        size_t n = *at ? str_utf8_length(at, end) : 0;
        bool control = terminal && (unsigned char)*at < ' ' && *at != '\n' && *at != '\t';
        if (terminal && *at == '\033' && at + 1 < end && at[1] == '[')
            for (n = 2; at + n < end && !isalpha((unsigned char)at[n - 1]);)
                n++;
        else if (!n && !control)
            buf_text(&out, "\xEF\xBF\xBD");
        else if (!control)
            buf_add(&out, at, n);
        at += n ? n : 1;
    }
    return buf_view(&out);
}

static enum err parse_lines(struct arena *arena, struct str text, struct json *out, struct json_error *error,
                            size_t *line_number)
{
    static const struct json_limits limits = {.nodes = EXEC_JSON_NODES};
    struct buf items = buf_in(arena);
    struct str line;
    size_t count = 0;
    for (*line_number = 1; next_line(&text, &line); ++*line_number) {
        struct json value;
        line = str_trim(line);
        if (!line.len)
            continue;
        if (json_parse(arena, line, &limits, &value, error) != OK)
            return ERR_PARSE;
        buf_add(&items, &value, sizeof(value));
        count++;
    }
    *out = json_array((const struct json *)(void *)items.at, count);
    return OK;
}

static void take_result(struct upstream_call *call, const struct exec_outcome *outcome)
{
    static const struct json_limits limits = {.nodes = EXEC_JSON_NODES};
    struct json *value = ARENA_NEW(call->arena, struct json);
    struct json_error error;
    struct str text = outcome->out, trimmed = str_trim(text);
    enum exec_output kind = outcome->spec->output;
    enum err err = ERR_PARSE;
    size_t line = 0;
    if (kind == EXEC_OUTPUT_LINES)
        err = parse_lines(call->arena, text, value, &error, &line);
    else if (kind == EXEC_OUTPUT_JSON ||
             (kind == EXEC_OUTPUT_AUTO && trimmed.len && strchr("{[\"-0123456789tfn", trimmed.at[0])))
        err = json_parse(call->arena, text, &limits, value, &error);
    if (err && (kind == EXEC_OUTPUT_LINES || kind == EXEC_OUTPUT_JSON)) {
        const char *place = line ? arena_printf(call->arena, " in line %zu", line).at : "";
        upstream_call_answer(call, UPSTREAM_BROKEN, "invalid_json", "%s wrote invalid JSON%s: %s",
                             outcome->command, place, error.text);
        call->answer->quoted = str_cut(text, EXEC_QUOTE_BYTES);
        return;
    }
    if (err) {
        if (text.len && text.at[text.len - 1] == '\n')
            text.len--;
        if (text.len && text.at[text.len - 1] == '\r')
            text.len--;
        *value = json_string(clean(call->arena, text, false));
    }
    call->answer->outcome = UPSTREAM_RESULT;
    call->answer->result = value;
}

/* The message of a trace is the last unindented line before its frames; or, if the trace begins with its
 * header and frames (Python), the first one after them. Of traces that caused each other the last is taken.
 */
struct str exec_result_message(struct arena *arena, struct str errors, bool *traced)
{
    enum { TEXT, AFTER_HEADER, MESSAGE_FOLLOWS, DONE } state = TEXT;
    struct str last[EXEC_QUOTE_LINES], message = STR_NONE, before = STR_NONE, line;
    struct str rest = clean(arena, errors, true);
    size_t count = 0;
    *traced = false;
    while (next_line(&rest, &line)) {
        struct str text = str_trim(line);
        bool frame = stack_trace_is_frame(line), header = !frame && stack_trace_is_header(line);
        bool indented = line.len && (line.at[0] == ' ' || line.at[0] == '\t');
        if (!text.len)
            continue;
        last[count++ % EXEC_QUOTE_LINES] = text;
        *traced |= frame || header;
        if (state == DONE)
            continue;
        if (frame || header) {
            bool first = !before.len && !message.len;
            message = before.len ? before : message;
            before = STR_NONE;
            state = header ? AFTER_HEADER : state == AFTER_HEADER || first ? MESSAGE_FOLLOWS : state;
        } else if (state == AFTER_HEADER && !indented) {
            state = DONE; /* Go: names of functions */
        } else if (state == MESSAGE_FOLLOWS && !indented && !str_starts(text, "note: ")) {
            message = text;
            state = TEXT;
        } else if (!indented) {
            before = text;
        }
    }
    if (*traced && message.len)
        return str_cut(message, EXEC_QUOTE_BYTES);
    struct buf out = buf_in(arena);
    for (size_t i = count > EXEC_QUOTE_LINES ? count - EXEC_QUOTE_LINES : 0; i < count; i++) {
        buf_text(&out, out.len ? "\n" : "");
        buf_str(&out, last[i % EXEC_QUOTE_LINES]);
    }
    return str_cut(buf_view(&out), EXEC_QUOTE_BYTES);
}

/* Many programs write errors to stdout. */
static void quote(struct upstream_call *call, const struct exec_outcome *outcome, bool log_trace)
{
    bool traced;
    struct str line, text = str_trim(outcome->errors).len ? outcome->errors : outcome->out;
    if (text.len > EXEC_STDERR_BYTES)
        text = str_from(text, text.len - EXEC_STDERR_BYTES);
    text = secrets_redact(call->arena, outcome->used, text);
    call->answer->quoted = exec_result_message(call->arena, text, &traced);
    size_t from = text.len;
    for (unsigned lines = 0; from > 0 && lines < EXEC_TRACE_LINES; from--)
        lines += text.at[from - 1] == '\n';
    text = str_from(text, from);
    while (traced && log_trace && next_line(&text, &line))
        if (line.len)
            log_event(LOG_WARN, "command_stderr", LOG_STR("tool", call->request->target->tool),
                      LOG_STR("line", line));
    log_event(LOG_INFO, "command_failed", LOG_STR("tool", call->request->target->tool),
              LOG_TEXT("command", outcome->command),
              LOG_STR("status", child_status(call->arena, outcome->status)));
}

static void answer_signal(struct upstream_call *call, const struct exec_outcome *outcome)
{
    int number = WTERMSIG(outcome->status);
    if (number == SIGXCPU)
        upstream_call_answer(call, UPSTREAM_REFUSED, "cpu_limit",
                             "%s used more than its %u s of processor time", outcome->command,
                             outcome->spec->cpu_s);
    else if (number == SIGXFSZ)
        upstream_call_answer(call, UPSTREAM_REFUSED, "file_limit",
                             "%s wrote a file larger than its limit of %llu bytes", outcome->command,
                             (unsigned long long)outcome->spec->file_bytes);
    else
        upstream_call_answer(call, UPSTREAM_TRANSIENT, "crashed", "%s was " STR_FMT, outcome->command,
                             STR_ARG(child_status(call->arena, outcome->status)));
}

void exec_result_answer(struct upstream_call *call, const struct exec_outcome *outcome, bool log_trace)
{
    static const enum upstream_outcome outcomes[] = {
        [EXEC_EXIT_REFUSED] = UPSTREAM_REFUSED,
        [EXEC_EXIT_OK] = UPSTREAM_RESULT,
        [EXEC_EXIT_TRANSIENT] = UPSTREAM_TRANSIENT,
        [EXEC_EXIT_BROKEN] = UPSTREAM_BROKEN,
    };
    const struct exec_spec *spec = outcome->spec;
    struct exec_outcome redacted = *outcome;
    redacted.out = secrets_redact(call->arena, outcome->used, outcome->out);
    call->answer->reached = true;
    if (WIFEXITED(outcome->status)) {
        int code = WEXITSTATUS(outcome->status);
        enum exec_exit_meaning means = code ? EXEC_EXIT_REFUSED : EXEC_EXIT_OK;
        for (size_t i = spec->exit_count; i-- > 0;)
            if ((int)spec->exits[i].code == code)
                means = spec->exits[i].means;
        if (means == EXEC_EXIT_OK) {
            take_result(call, &redacted);
            return;
        }
        upstream_call_answer(call, outcomes[means], arena_printf(call->arena, "exit_%d", code).at,
                             "%s ended with exit code %d", outcome->command, code);
    } else {
        answer_signal(call, outcome);
    }
    quote(call, &redacted, log_trace);
}
