/* See exec_result.h. */
#include "upstream/exec/exec_result.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/log.h"
#include "io/child.h"
#include "json/build.h"
#include "json/parse.h"
#include "upstream/exec/exec_stderr.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

/* ---- a result ------------------------------------------------------------------------------------ */

/* What is no UTF-8 would make the answer no JSON. */
static struct str valid_text(struct arena *arena, struct str text)
{
    const char *at = text.at, *end = text.len ? at + text.len : at;
    size_t n;
    while (at < end && *at && (n = str_utf8_length(at, end)) > 0)
        at += n;
    if (at == end)
        return text;
    struct buf out = buf_in(arena);
    for (at = text.at; at < end; at += n ? n : 1) {
        n = *at ? str_utf8_length(at, end) : 0;
        if (n)
            buf_add(&out, at, n);
        else
            buf_text(&out, "\xEF\xBF\xBD");
    }
    return buf_view(&out);
}

static struct str without_newline(struct str text)
{
    if (text.len && text.at[text.len - 1] == '\n')
        text.len--;
    if (text.len && text.at[text.len - 1] == '\r')
        text.len--;
    return text;
}

static enum err parse(struct arena *arena, struct str text, struct json *out, struct json_error *fault)
{
    const struct json_limits limits = {.nodes = EXEC_JSON_NODES};
    return json_parse(arena, text, &limits, out, fault);
}

static bool could_be_json(struct str text)
{
    text = str_trim(text);
    return text.len && strchr("{[\"-0123456789tfn", text.at[0]);
}

static enum err parse_lines(struct arena *arena, struct str text, struct json *out, struct json_error *fault,
                            size_t *line)
{
    struct buf items = buf_in(arena);
    enum err err = OK;
    size_t count = 0;
    for (*line = 1; text.len && !err; ++*line) {
        const char *end = memchr(text.at, '\n', text.len);
        size_t n = end ? (size_t)(end - text.at) : text.len;
        struct str one = str_trim((struct str){text.at, n});
        struct json value;
        if (one.len && (err = parse(arena, one, &value, fault)) != OK)
            break;
        if (one.len) {
            buf_add(&items, &value, sizeof(value));
            count++;
        }
        text = str_from(text, n + 1);
    }
    *out = json_array((const struct json *)(void *)items.at, count);
    return err;
}

static void broken(struct upstream_call *run, const struct exec_outcome *end, const char *fault, size_t line)
{
    char place[40] = "";
    if (line)
        snprintf(place, sizeof(place), " in line %zu", line);
    upstream_call_answer(run, UPSTREAM_BROKEN, "invalid_json", "%s wrote what is no JSON%s: %s", end->command,
                         place, fault);
    run->answer->quoted = str_cut(end->out, EXEC_QUOTE_BYTES);
}

static void take_result(struct upstream_call *run, const struct exec_outcome *end)
{
    struct json *value = ARENA_NEW(run->arena, struct json);
    struct json_error fault;
    enum exec_output kind = end->spec->output;
    size_t line = 0;
    enum err err = ERR_PARSE;
    if (kind == EXEC_OUTPUT_LINES)
        err = parse_lines(run->arena, end->out, value, &fault, &line);
    else if (kind == EXEC_OUTPUT_JSON || (kind == EXEC_OUTPUT_AUTO && could_be_json(end->out)))
        err = parse(run->arena, end->out, value, &fault);
    if (err && (kind == EXEC_OUTPUT_LINES || kind == EXEC_OUTPUT_JSON)) {
        broken(run, end, fault.text, line);
        return;
    }
    if (err)
        *value = json_string(valid_text(run->arena, without_newline(end->out)));
    run->answer->outcome = UPSTREAM_RESULT;
    run->answer->result = value;
}

/* ---- a failure ------------------------------------------------------------------------------------ */

static void log_lines(struct upstream_call *run, struct str text)
{
    size_t from = text.len;
    for (unsigned lines = 0; from > 0 && lines < EXEC_TRACE_LINES; from--)
        lines += text.at[from - 1] == '\n';
    for (text = str_from(text, from); text.len;) {
        const char *end = memchr(text.at, '\n', text.len);
        size_t n = end ? (size_t)(end - text.at) : text.len;
        if (n)
            log_event(LOG_WARN, "command_stderr", LOG_STR("tool", run->request->target->tool),
                      LOG_STR("line", ((struct str){text.at, n})));
        text = str_from(text, n + 1);
    }
}

/* What it said of its failure; many programs say it on stdout. */
static void quote(struct upstream_call *run, const struct exec_outcome *end, bool log_trace)
{
    bool traced;
    struct str said = str_trim(end->errors).len ? end->errors : end->out;
    if (said.len > EXEC_STDERR_BYTES)
        said = str_from(said, said.len - EXEC_STDERR_BYTES);
    said = secrets_redact(run->arena, end->used, said);
    run->answer->quoted = exec_stderr_message(run->arena, said, &traced);
    if (traced && log_trace)
        log_lines(run, said);
    log_event(LOG_INFO, "command_failed", LOG_STR("tool", run->request->target->tool),
              LOG_TEXT("command", end->command), LOG_STR("status", child_status(run->arena, end->status)));
}

static enum exec_exit_meaning meaning(const struct exec_spec *spec, int code)
{
    for (size_t i = 0; i < spec->exit_count; i++)
        if ((int)spec->exits[i].code == code)
            return spec->exits[i].means;
    return code ? EXEC_EXIT_REFUSED : EXEC_EXIT_OK;
}

static void answer_exit(struct upstream_call *run, const struct exec_outcome *end, bool log_trace)
{
    static const enum upstream_outcome ended[] = {
        [EXEC_EXIT_REFUSED] = UPSTREAM_REFUSED,
        [EXEC_EXIT_OK] = UPSTREAM_RESULT,
        [EXEC_EXIT_TRANSIENT] = UPSTREAM_TRANSIENT,
        [EXEC_EXIT_BROKEN] = UPSTREAM_BROKEN,
    };
    int code = WEXITSTATUS(end->status);
    enum exec_exit_meaning means = meaning(end->spec, code);
    char name[16];
    if (means == EXEC_EXIT_OK) {
        take_result(run, end);
        return;
    }
    snprintf(name, sizeof(name), "exit_%d", code);
    upstream_call_answer(run, ended[means], name, "%s ended with exit code %d", end->command, code);
    quote(run, end, log_trace);
}

static void answer_signal(struct upstream_call *run, const struct exec_outcome *end, bool log_trace)
{
    int number = WTERMSIG(end->status);
    if (number == SIGXCPU)
        upstream_call_answer(run, UPSTREAM_REFUSED, "cpu_limit",
                             "%s used more than its %u s of processor time", end->command, end->spec->cpu_s);
    else if (number == SIGXFSZ)
        upstream_call_answer(run, UPSTREAM_REFUSED, "file_limit",
                             "%s wrote a file larger than its limit of %llu bytes", end->command,
                             (unsigned long long)end->spec->file_bytes);
    else
        upstream_call_answer(run, UPSTREAM_TRANSIENT, "crashed", "%s was " STR_FMT, end->command,
                             STR_ARG(child_status(run->arena, end->status)));
    quote(run, end, log_trace);
}

void exec_result_answer(struct upstream_call *run, const struct exec_outcome *end, bool log_trace)
{
    struct exec_outcome masked = *end;
    masked.out = secrets_redact(run->arena, end->used, end->out);
    run->answer->reached = true;
    run->answer->after_s = -1;
    if (WIFEXITED(end->status))
        answer_exit(run, &masked, log_trace);
    else
        answer_signal(run, &masked, log_trace);
}
