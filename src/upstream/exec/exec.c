/*
 * The runner of commands: started for one call, without a shell, with the
 * arguments on the command line (exec_argv.c) or as one line of JSON on stdin.
 * A command is killed with its whole process group when it takes too long,
 * writes too much, or is cancelled. EXEC_AT_ONCE run at once; the others queue
 * in order, and queueing counts as time of the call.
 *
 *   queued ─▶ running (stdin ─▶, stdout and stderr ◀─) ─▶ exited ─▶ answer
 */
#include "base/alloc.h"
#include "base/address_space.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/rate_limit.h"
#include "base/stack_trace.h"
#include "io/child.h"
#include "io/conn.h"
#include "io/descriptor.h"
#include "json/build.h"
#include "json/parse.h"
#include "json/write.h"
#include "upstream/process.h"
#include "upstream/exec/exec.h"
#include "upstream/secrets.h"
#include "upstream/upstream_call.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXEC_AT_ONCE      32u
#define EXEC_QUEUED_MAX   1024u
#define READ_BYTES        65536u
#define TRACES_PER_SECOND 5u /* stack traces in the log */

struct stream {
    int fd; /* -1: closed */
    struct descriptor *watched;
};

struct command {
    struct upstream_call *call;
    const struct exec_spec *spec;
    struct commands *all;
    bool queued;
    const char *const *argv, *const *env;
    const char *name, *cwd;
    struct secrets used;
    struct child *child; /* NULL: does not run */
    struct stream in, out, errors;
    struct str input; /* not written yet */
    struct buf output, error_output;
    struct timer deadline;
    uint32_t timeout_ms;
    size_t output_max;
};

/* Of one loop. */
struct commands {
    struct loop *loop;
    uint32_t running;
    struct call_queue queue;
    uint64_t refused;
    struct timer turn; /* starts queued commands */
    struct rate_limit traces;
};

static const char singleton_key;

static void *make_commands(struct loop *loop)
{
    struct commands *all = alloc_zeroed(sizeof(*all));
    all->loop = loop;
    TAILQ_INIT(&all->queue.calls);
    return all;
}

static void free_commands(void *commands)
{
    struct commands *all = commands;
    timer_clear(&all->turn);
    free(all);
}

static void on_turn(void *owner);

static void close_stream(struct stream *stream)
{
    descriptor_free(stream->watched);
    if (stream->fd >= 0)
        close(stream->fd);
    *stream = (struct stream){.fd = -1};
}

/* Frees everything but its output, and the place of the next command. */
static void release(struct command *c)
{
    if (c->queued)
        call_queue_remove(&c->all->queue, c->call);
    else
        c->all->running--;
    if (c->child)
        child_kill(c->child, true);
    c->child = NULL;
    close_stream(&c->in);
    close_stream(&c->out);
    close_stream(&c->errors);
    timer_clear(&c->deadline);
    if (c->all->queue.count)
        timer_set(&c->all->turn, c->all->loop, 0, on_turn, c->all);
}

static void stop(struct upstream_call *call)
{
    release(call->work);
}

static void on_deadline(void *owner)
{
    struct command *c = owner;
    struct upstream_call *call = c->call;
    bool ran = !c->queued;
    release(c);
    call->answer->reached = ran;
    if (ran) {
        upstream_call_answer(call, UPSTREAM_TRANSIENT, "timeout",
                             "%s gave no result within %g s and was ended", c->name, c->timeout_ms / 1000.0);
    } else {
        call->answer->after_s = 1;
        upstream_call_answer(call, UPSTREAM_UNAVAILABLE, "busy",
                             "%u commands were running for all the time of this call", EXEC_AT_ONCE);
    }
    log_event(LOG_WARN, ran ? "command_timeout" : "command_busy",
              LOG_STR("tool", call->request->target->tool), LOG_TEXT("command", c->name),
              LOG_NUM("ms", c->timeout_ms));
    call->finish(call);
}

/* ---- the answer: output to value, exit status to outcome, stderr to a quotation ---- */

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
    size_t count = 0;
    for (*line_number = 1; text.len; ++*line_number) {
        struct json value;
        struct str line = str_trim(str_split(&text, '\n'));
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

static void take_result(const struct command *c, struct str text)
{
    static const struct json_limits limits = {.nodes = EXEC_JSON_NODES};
    struct upstream_call *call = c->call;
    struct json *value = ARENA_NEW(call->arena, struct json);
    struct json_error error;
    struct str trimmed = str_trim(text);
    enum exec_output kind = c->spec->output;
    enum err err = ERR_PARSE;
    size_t line = 0;
    if (kind == EXEC_OUTPUT_LINES)
        err = parse_lines(call->arena, text, value, &error, &line);
    else if (kind == EXEC_OUTPUT_JSON ||
             (kind == EXEC_OUTPUT_AUTO && trimmed.len && strchr("{[\"-0123456789tfn", trimmed.at[0])))
        err = json_parse(call->arena, text, &limits, value, &error);
    if (err && (kind == EXEC_OUTPUT_LINES || kind == EXEC_OUTPUT_JSON)) {
        const char *place = line ? arena_printf(call->arena, " in line %zu", line).at : "";
        upstream_call_answer(call, UPSTREAM_BROKEN, "invalid_json", "%s wrote invalid JSON%s: %s", c->name,
                             place, error.text);
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
 * header and frames (Python), the first one after them. Of traces that caused each other the last counts. */
struct str exec_result_message(struct arena *arena, struct str errors, bool *traced)
{
    enum { TEXT, AFTER_HEADER, MESSAGE_FOLLOWS, DONE } state = TEXT;
    struct str last[EXEC_QUOTE_LINES], message = STR_NONE, before = STR_NONE;
    struct str rest = clean(arena, errors, true);
    size_t count = 0;
    *traced = false;
    while (rest.len) {
        struct str line = str_split(&rest, '\n'), text = str_trim(line);
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

/* What a failed command wrote: quoted in the answer, and a stack trace logged, but not too often. Many
 * programs write errors to stdout. */
static void quote(struct command *c, int status, struct str out)
{
    struct upstream_call *call = c->call;
    uint64_t held;
    bool traced, log_trace = rate_limit_allow(&c->all->traces, TRACES_PER_SECOND, &held);
    struct str text = buf_view(&c->error_output);
    if (!str_trim(text).len)
        text = out;
    text = secrets_redact(call->arena, &c->used, text);
    if (text.len > EXEC_STDERR_BYTES)
        text = str_from(text, text.len - EXEC_STDERR_BYTES);
    call->answer->quoted = exec_result_message(call->arena, text, &traced);
    size_t from = text.len;
    for (unsigned lines = 0; from > 0 && lines < EXEC_TRACE_LINES; from--)
        lines += text.at[from - 1] == '\n';
    text = str_from(text, from);
    while (traced && log_trace && text.len) {
        struct str line = str_split(&text, '\n');
        if (line.len)
            log_event(LOG_WARN, "command_stderr", LOG_STR("tool", call->request->target->tool),
                      LOG_STR("line", line));
    }
    log_event(LOG_INFO, "command_failed", LOG_STR("tool", call->request->target->tool),
              LOG_TEXT("command", c->name), LOG_STR("status", child_status(call->arena, status)));
}

/* What the exit means for the call: the output as a value, or a failure with the end of stderr. */
static void answer_exit(struct command *c, int status)
{
    static const enum upstream_outcome outcomes[] = {
        [EXEC_EXIT_REFUSED] = UPSTREAM_REFUSED,
        [EXEC_EXIT_OK] = UPSTREAM_RESULT,
        [EXEC_EXIT_TRANSIENT] = UPSTREAM_TRANSIENT,
        [EXEC_EXIT_BROKEN] = UPSTREAM_BROKEN,
    };
    struct upstream_call *call = c->call;
    const struct exec_spec *spec = c->spec;
    struct str out = secrets_redact(call->arena, &c->used, buf_view(&c->output));
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0, number = WTERMSIG(status);
    enum exec_exit_meaning means = code ? EXEC_EXIT_REFUSED : EXEC_EXIT_OK;
    call->answer->reached = true;
    for (size_t i = spec->exit_count; i-- > 0;)
        if ((int)spec->exits[i].code == code)
            means = spec->exits[i].means;
    if (WIFEXITED(status) && means == EXEC_EXIT_OK) {
        take_result(c, out);
        return;
    }
    if (WIFEXITED(status))
        upstream_call_answer(call, outcomes[means], arena_printf(call->arena, "exit_%d", code).at,
                             "%s ended with exit code %d", c->name, code);
    else if (number == SIGXCPU)
        upstream_call_answer(call, UPSTREAM_REFUSED, "cpu_limit",
                             "%s used more than its %u s of processor time", c->name, spec->cpu_s);
    else if (number == SIGXFSZ)
        upstream_call_answer(call, UPSTREAM_REFUSED, "file_limit",
                             "%s wrote a file larger than its limit of %llu bytes", c->name,
                             (unsigned long long)spec->file_bytes);
    else
        upstream_call_answer(call, UPSTREAM_TRANSIENT, "crashed", "%s was " STR_FMT, c->name,
                             STR_ARG(child_status(call->arena, status)));
    quote(c, status, out);
}

/* ---- input and output ---- */

static void on_writable(void *owner, int fd, bool readable, bool writable)
{
    struct command *c = owner;
    (void)fd, (void)readable, (void)writable;
    while (c->input.len) {
        ssize_t n = write(c->in.fd, c->input.at, c->input.len);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n < 0)
            break; /* EPIPE: a command need not read its input */
        c->input = str_from(c->input, (size_t)n);
    }
    close_stream(&c->in);
}

/* False: there is nothing to read, now or ever. */
static bool read_stream(struct stream *stream, struct buf *into)
{
    char bytes[READ_BYTES];
    if (stream->fd < 0)
        return false;
    ssize_t n = read(stream->fd, bytes, sizeof(bytes));
    if (n > 0)
        buf_add(into, bytes, (size_t)n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        close_stream(stream);
    return n > 0;
}

static void finish_too_large(struct command *c)
{
    release(c);
    c->call->answer->reached = true;
    upstream_call_answer(c->call, UPSTREAM_REFUSED, "output_too_large",
                         "%s wrote more than %zu bytes and was ended", c->name, c->output_max);
    c->call->finish(c->call);
}

static void on_output(void *owner, int fd, bool readable, bool writable)
{
    struct command *c = owner;
    (void)fd, (void)readable, (void)writable;
    read_stream(&c->out, &c->output);
    if (c->output.len > c->output_max)
        finish_too_large(c);
}

static bool read_errors(struct command *c)
{
    bool more = read_stream(&c->errors, &c->error_output);
    if (c->error_output.len > 4 * EXEC_STDERR_BYTES)
        buf_drop(&c->error_output, c->error_output.len - EXEC_STDERR_BYTES);
    return more;
}

static void on_errors(void *owner, int fd, bool readable, bool writable)
{
    (void)fd, (void)readable, (void)writable;
    read_errors(owner);
}

static void on_exited(void *owner, int status)
{
    struct command *c = owner;
    c->child = NULL; /* io/child.c frees it */
    while (c->output.len <= c->output_max && read_stream(&c->out, &c->output))
        continue;
    while (read_errors(c))
        continue;
    if (c->output.len > c->output_max) {
        finish_too_large(c);
        return;
    }
    release(c);
    answer_exit(c, status);
    c->call->finish(c->call);
}

/* The model learns only that it cannot be started; the reason is logged. */
static void answer_not_started(struct command *c, enum err err, const struct why *why)
{
    log_event(LOG_ERROR, "command_failed", LOG_STR("tool", c->call->request->target->tool),
              LOG_TEXT("command", c->name), LOG_TEXT("why", why->text));
    if (err == ERR_LIMIT && strstr(why->text, "longer than the system allows"))
        upstream_call_answer(c->call, UPSTREAM_REFUSED, "argument_too_long",
                             "the arguments together are too long for a command line");
    else
        upstream_call_answer(
            c->call, UPSTREAM_UNAVAILABLE, err == ERR_NOT_FOUND ? "no_such_command" : "cannot_start",
            "its command '%s' cannot be started on this host: only the operator can fix that", c->name);
}

static enum err start(struct command *c, struct why *why)
{
    const struct exec_spec *limits = c->spec;
    struct confinement confinement = {.child = {.landlock = -1}};
    struct child_spec spec = {.argv = c->argv,
                              .env = c->env,
                              .cwd = c->cwd,
                              .pipes = true,
                              .limits = {.memory_bytes = limits->memory_bytes,
                                         .file_bytes = limits->file_bytes,
                                         .cpu_s = limits->cpu_s,
                                         .processes = limits->processes}};
    struct loop *loop = c->all->loop;
    enum err err = OK;
    c->output_max = address_space_for_text(c->spec->output_bytes);
    if (c->spec->sandbox.on) {
        err = confine_prepare(loop, c->call->arena, &c->spec->sandbox, &spec, NULL, &confinement, why);
        spec.confinement = &confinement.child;
    }
    if (!err)
        err = child_start(loop, &spec, on_exited, c, &c->child, &c->in.fd, &c->out.fd, &c->errors.fd, why);
    confine_free(&confinement);
    if (err)
        return err;
    c->out.watched = descriptor_new(loop, c->out.fd, on_output, c);
    c->errors.watched = descriptor_new(loop, c->errors.fd, on_errors, c);
    descriptor_watch(c->out.watched, true, false);
    descriptor_watch(c->errors.watched, true, false);
    on_writable(c, c->in.fd, false, true);
    if (c->in.fd >= 0) {
        c->in.watched = descriptor_new(loop, c->in.fd, on_writable, c);
        descriptor_watch(c->in.watched, false, true);
    }
    return OK;
}

static void on_turn(void *owner)
{
    struct commands *all = owner;
    struct why why;
    while (all->queue.count && all->running < EXEC_AT_ONCE) {
        struct command *c = call_queue_next(&all->queue)->work;
        call_queue_remove(&all->queue, c->call);
        c->queued = false;
        all->running++;
        enum err err = start(c, &why);
        if (!err)
            continue;
        release(c);
        answer_not_started(c, err, &why);
        c->call->finish(c->call);
    }
}

/* False, with the answer: an argument or a setting is at fault. */
static bool prepare(struct command *c)
{
    static const char inherited[] = "PATH HOME LANG TZ TERM", confined[] = "PATH LANG TZ";
    struct upstream_call *call = c->call;
    struct exec_argv_error error;
    struct str cwd;
    struct why why;
    c->argv = exec_argv_build(call->arena, c->spec, call->request->arguments, &error);
    if (!c->argv) {
        upstream_call_answer(call, UPSTREAM_REFUSED, error.code, STR_FMT, STR_ARG(error.detail));
        return false;
    }
    if (environment_build(call->arena, c->spec->sandbox.on ? confined : inherited, &c->spec->env,
                          call->request->trace_context, &c->used, &c->env, &why) != OK ||
        secrets_expand(call->arena, c->spec->cwd, NULL, &cwd, &why) != OK) {
        log_event(LOG_ERROR, "command_failed", LOG_STR("tool", call->request->target->tool),
                  LOG_TEXT("why", why.text));
        upstream_call_answer(call, UPSTREAM_UNAVAILABLE, "not_configured",
                             "a setting that its command needs is missing: only the operator can fix that");
        return false;
    }
    const char *slash = strrchr(c->argv[0], '/');
    c->name = slash && slash[1] ? slash + 1 : c->argv[0];
    c->cwd = cwd.len ? arena_dup(call->arena, cwd).at : NULL;
    if (c->spec->on_stdin) {
        struct buf line = buf_in(call->arena);
        json_write(&line, call->request->arguments);
        buf_byte(&line, '\n');
        c->input = buf_view(&line);
    }
    return true;
}

enum upstream_call_state exec_call(struct upstream_call *call)
{
    struct command *c = ARENA_NEW(call->arena, struct command);
    struct why why;
    *c = (struct command){
        .call = call, .spec = call->request->target->exec, .in = {-1}, .out = {-1}, .errors = {-1}};
    c->output = c->error_output = buf_in(call->arena);
    c->timeout_ms = upstream_call_timeout_ms(call);
    if (!prepare(c))
        return UPSTREAM_DONE;
    c->all = loop_singleton(call->loop, &singleton_key, make_commands, free_commands);
    struct commands *all = c->all;
    call->work = c;
    call->stop = stop;
    if (all->running < EXEC_AT_ONCE && !all->queue.count) {
        enum err err = start(c, &why);
        if (err) {
            answer_not_started(c, err, &why);
            return UPSTREAM_DONE;
        }
        all->running++;
    } else if (!call_queue_has_room(&all->queue, call->request->user, EXEC_QUEUED_MAX)) {
        call->answer->after_s = 1;
        all->refused++;
        return upstream_call_answer(call, UPSTREAM_UNAVAILABLE, "busy",
                                    "%u commands are running and %u are queued; the rest of the %u that may "
                                    "wait is for other users",
                                    EXEC_AT_ONCE, all->queue.count, EXEC_QUEUED_MAX);
    } else {
        c->queued = true;
        call_queue_add(&all->queue, call);
    }
    timer_set(&c->deadline, all->loop, c->timeout_ms, on_deadline, c);
    return UPSTREAM_PENDING;
}

void exec_write_status(struct json_out *out, struct loop *loop)
{
    const struct commands *all = loop_singleton(loop, &singleton_key, make_commands, free_commands);
    if (!all->running && !all->queue.count && !all->refused)
        return;
    json_field_object(out, "commands", FIELD_NUM("running", all->running), FIELD_NUM("at_once", EXEC_AT_ONCE),
                      FIELD_NUM("queued", all->queue.count), FIELD_NUM("most", EXEC_QUEUED_MAX),
                      FIELD_NUM("refused", all->refused));
}
