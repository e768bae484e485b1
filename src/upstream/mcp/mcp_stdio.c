/*
 * The stdio transport: a process whose stdin and stdout carry the messages,
 * one per line, and whose stderr goes to the log. It is closed when the
 * process has exited and all its output is read.
 *
 *   open: process ─▶ opened … lines … (stdout ends) ─▶ (process exits) ─▶ rest is read ─▶ closed
 */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/rate_limit.h"
#include "io/child.h"
#include "io/conn.h"
#include "io/spawned_child.h"
#include "io/timer.h"
#include "json/parse.h"
#include "upstream/mcp/mcp_message.h"
#include "upstream/mcp/mcp_transport.h"
#include "upstream/process.h"

#include <stdio.h>
#include <stdlib.h>

#define UNSENT_MAX_BYTES      4194304u /* that the process has not read */
#define STDERR_LINE_MAX_BYTES 4096u
#define STDERR_SHOWN_BYTES    512u  /* of a line, in the log */
#define STDERR_PER_S          20u   /* lines in the log, each process */
#define UNFINISHED_MS         1000u /* a message over several lines: from one line to the next */
#define GRACE_MS              300u  /* from the end of a pipe to the exit of the process */
#define WORDS_MAX_BYTES       512u
#define WORDS_STALE_LINES     32u /* an error on stderr this long ago is not why the process died */

struct mcp_transport {
    struct loop *loop;
    const struct upstream_spec *spec;
    struct mcp_client *client;
    struct arena *arena; /* argv and environment, with their secrets */
    struct secrets secrets;
    struct child *child;           /* NULL: not started, or exited */
    struct spawned_child *spawned; /* instead, if the spawner starts it */
    struct conn *conn, *errors;
    int output_fd, errors_fd; /* theirs, as long as they are there */
    struct timer soon, grace, stderr_summary, unfinished;
    struct buf lines;    /* of a message over several lines, as far as it came, */
    int64_t lines_depth; /* and its open brackets */
    struct rate_limit stderr_rate;
    bool closing;         /* on request */
    bool reported_closed; /* `closed` has fired */
    bool line_unassigned; /* a dropped line whose request is not known yet, */
    bool line_for_memory; /* dropped because of limits.memory, not for its own length */
    bool has_status;
    int status;                  /* of waitpid */
    const char *suspect;         /* a pipe that ended: processes do that when they exit */
    const char *reason;          /* why toolgate ended it; NULL: it did not */
    struct why why;              /* why it could not be started */
    char words[WORDS_MAX_BYTES]; /* its last line on stderr, preferably an error */
    uint32_t words_age;          /* lines since an error; 0: `words` is no error */
    unsigned words_rank;         /* enum rank */
};

/* ---- the end ------------------------------------------------------------------- */

static void report_closed(struct mcp_transport *t)
{
    char why[ERR_MESSAGE_MAX_BYTES];
    struct arena *arena = arena_new();
    struct str status = t->has_status
                            ? child_status(arena, t->status)
                            : secrets_redact(arena, &t->secrets, str_of(t->why.text)); /* names the command */
    snprintf(why, sizeof(why), "%s%s" STR_FMT, t->reason ? t->reason : "", t->reason ? ", " : "",
             STR_ARG(status));
    t->reported_closed = true;
    mcp_client_closed(t->client, why, t->closing ? STR_NONE : str_of(t->words));
    arena_free(arena);
}

static void check_closed(struct mcp_transport *t)
{
    if (!t->reported_closed && !t->child && !t->spawned && !t->conn && !t->errors && t->has_status)
        report_closed(t);
}

static void on_exit_status(void *owner, int status)
{
    struct mcp_transport *t = owner;
    t->child = NULL;
    t->status = status;
    t->has_status = true;
    timer_clear(&t->grace);
    if (t->conn)
        conn_stop_reading(t->conn);
    if (t->errors)
        conn_stop_reading(t->errors);
    check_closed(t);
}

/* Closes stdin; child_terminate sends SIGTERM and SIGKILL if that does not suffice. */
static void end(struct mcp_transport *t, const char *reason)
{
    if (!t->reason)
        t->reason = reason;
    if (t->conn)
        conn_close_out(t->conn);
    if (t->child)
        child_terminate(t->child);
    if (t->spawned)
        spawned_child_terminate(t->spawned);
    timer_clear(&t->grace);
}

static void on_grace_over(void *owner)
{
    struct mcp_transport *t = owner;
    end(t, t->suspect);
}

/* A process that exits closes its pipes first; one that only closes a pipe is useless and is ended. */
static void suspect(struct mcp_transport *t, const char *what)
{
    if (t->has_status || t->closing || timer_is_set(&t->grace))
        return;
    t->suspect = what;
    timer_set(&t->grace, t->loop, GRACE_MS, on_grace_over, t);
}

/* ---- its stdout ------------------------------------------------------------------ */

/* The lines are one message, or will never be one: the client reads what they hold. */
static void end_lines(void *owner)
{
    struct mcp_transport *t = owner;
    struct buf lines = t->lines;
    t->lines = (struct buf){0};
    t->lines_depth = 0;
    timer_clear(&t->unfinished);
    mcp_client_message(t->client, 0, buf_view(&lines));
    buf_clear(&lines);
}

/* Some servers indent what they send. The depth is counted line by line, so that no line is read again. */
static bool collect_line(struct mcp_transport *t, struct str line)
{
    int depth = 0;
    bool ends_between_tokens = mcp_message_depth(line, &depth);
    if (!t->lines.len && (!ends_between_tokens || depth <= 0 || !mcp_message_begins(line)))
        return false;
    /* The start of another message ends one that was broken off. */
    if (t->lines.len && line.len && line.at[0] == '{' &&
        mcp_message_scan(line).kind >= MCP_MESSAGE_RESPONSE) {
        end_lines(t);
        return false;
    }
    buf_str(&t->lines, line);
    buf_byte(&t->lines, '\n');
    t->lines_depth += depth;
    if (!ends_between_tokens || t->lines_depth <= 0 || t->lines.len > UPSTREAM_LINE_MAX_BYTES)
        end_lines(t);
    else
        timer_set(&t->unfinished, t->loop, UNFINISHED_MS, end_lines, t);
    return true;
}

static void on_line(void *owner, struct str line)
{
    struct mcp_transport *t = owner;
    t->words[0] = '\0'; /* what it wrote before an answer is not why it died later */
    t->words_age = 0;
    if (!collect_line(t, line))
        mcp_client_message(t->client, 0, line);
}

static void fail_dropped_line(struct mcp_transport *t, uint64_t id)
{
    char why[100];
    snprintf(why, sizeof(why), "a line of more than %u bytes, which is not read", UPSTREAM_LINE_MAX_BYTES);
    const struct mcp_failure too_large = {UPSTREAM_BROKEN, "result_too_large", why, STR_NONE, -1};
    const struct mcp_failure no_memory = {
        UPSTREAM_TRANSIENT, "no_memory",
        "the gateway has no memory left for it: its connections together hold more than limits.memory, or "
        "than its address space (ulimit -v) has room for",
        STR_NONE, 1};
    mcp_client_failed(t->client, id, t->line_for_memory ? &no_memory : &too_large);
}

/* Most servers write the id before the result … */
static void on_too_long(void *owner, struct str head, bool for_memory)
{
    struct mcp_transport *t = owner;
    uint64_t id = mcp_message_own_id(json_recover_id(head));
    t->line_for_memory = for_memory;
    if (for_memory)
        log_event(LOG_WARN, "upstream_line_dropped", LOG_STR("upstream", t->spec->name),
                  LOG_TEXT("why",
                           "all connections together hold more than limits.memory, or than the address "
                           "space (ulimit -v) has room for"),
                  LOG_NUM("for_call", id));
    else
        log_event(LOG_WARN, "upstream_line_too_long", LOG_STR("upstream", t->spec->name),
                  LOG_NUM("more_than", UPSTREAM_LINE_MAX_BYTES), LOG_NUM("for_call", id));
    t->line_unassigned = id == 0;
    if (id)
        fail_dropped_line(t, id);
}

/* … others after it: `,"id":7}` */
static void on_tail(void *owner, struct str tail)
{
    static const char key[] = "\"id\":";
    struct mcp_transport *t = owner;
    size_t before = sizeof(key) - 1;
    tail = str_trim(tail);
    size_t end = tail.len && tail.at[tail.len - 1] == '}' ? tail.len - 1 : 0, start = end;
    while (start && ascii_is_digit(tail.at[start - 1]))
        start--;
    bool found = start >= before && memcmp(tail.at + start - before, key, before) == 0;
    if (t->line_unassigned)
        fail_dropped_line(t, found ? mcp_message_own_id((struct str){tail.at + start, end - start}) : 0);
    t->line_unassigned = false;
}

static void on_stdin_closed(void *owner)
{
    suspect(owner, "it closed its stdin");
}

static void on_conn_closed(void *owner)
{
    struct mcp_transport *t = owner;
    t->conn = NULL;
    suspect(t, "its stdout could not be read");
    check_closed(t);
}

/* A whole message is read even if its line does not end: a server may answer and exit. */
static void on_eof(void *owner, struct str rest)
{
    struct mcp_transport *t = owner;
    buf_str(&t->lines, rest);
    if (mcp_message_scan(buf_view(&t->lines)).kind >= MCP_MESSAGE_RESPONSE)
        end_lines(t);
    else if (rest.len)
        log_event(LOG_INFO, "upstream_line_incomplete", LOG_STR("upstream", t->spec->name),
                  LOG_NUM("bytes", rest.len));
    conn_close_out(t->conn);
    conn_drop(t->conn);
    t->conn = NULL;
    suspect(t, "it closed its stdout");
    check_closed(t);
}

/* ---- its stderr ------------------------------------------------------------------- */

enum rank { RANK_OTHER, RANK_MENTIONS_ERROR, RANK_NAMES_ERROR };

/* Keeps what to quote if the process dies: a recent error rather than a later line, never a stack frame. */
static void remember(struct mcp_transport *t, struct str line)
{
    /* "npm error A complete log of this run …" only mentions an error, "npm error 404 … could not be found"
     * names it. */
    static const char *const naming[] = {"error: ",   "exception",    "fatal",    "panic",  "cannot",
                                         "not found", "not be found", "no such ", "denied", "refused"};
    enum rank rank = str_contains_nocase(line, STR_LIT("error")) ? RANK_MENTIONS_ERROR : RANK_OTHER;
    for (size_t i = 0; i < sizeof(naming) / sizeof(*naming); i++)
        if (str_contains_nocase(line, str_of(naming[i])))
            rank = RANK_NAMES_ERROR;
    bool indented = line.at[0] == ' ' || line.at[0] == '\t';
    bool stale = t->words_age == 0 || ++t->words_age > WORDS_STALE_LINES;
    if (indented || (!stale && (rank < t->words_rank || rank == RANK_OTHER)))
        return;
    struct arena *arena = arena_new();
    snprintf(t->words, sizeof(t->words), STR_FMT,
             STR_ARG(str_cut(secrets_redact(arena, &t->secrets, str_trim(line)), WORDS_MAX_BYTES - 1)));
    t->words_age = rank != RANK_OTHER;
    t->words_rank = rank;
    arena_free(arena);
}

static void log_summary(void *owner)
{
    struct mcp_transport *t = owner;
    if (t->stderr_rate.held)
        log_event(LOG_INFO, "upstream_stderr", LOG_STR("upstream", t->spec->name),
                  LOG_NUM("lines_not_logged", t->stderr_rate.held));
    t->stderr_rate.held = 0;
}

static void on_error_line(void *owner, struct str line)
{
    struct mcp_transport *t = owner;
    uint64_t held;
    if (!str_trim(line).len)
        return;
    remember(t, line);
    if (!rate_limit_allow(&t->stderr_rate, STDERR_PER_S, &held)) {
        if (!timer_is_set(&t->stderr_summary))
            timer_set(&t->stderr_summary, t->loop, 1000, log_summary, t);
        return;
    }
    struct arena *arena = arena_new();
    struct str text = str_cut(secrets_redact(arena, &t->secrets, line), STDERR_SHOWN_BYTES);
    log_event(LOG_INFO, "upstream_stderr", LOG_STR("upstream", t->spec->name), LOG_STR("text", text),
              held ? LOG_NUM("lines_not_logged", held) : LOG_TEXT("lines_not_logged", ""));
    arena_free(arena);
}

static void on_error_too_long(void *owner, struct str head, bool for_memory)
{
    (void)for_memory;
    on_error_line(owner, head);
}

static void on_errors_closed(void *owner)
{
    struct mcp_transport *t = owner;
    t->errors = NULL;
    timer_clear(&t->stderr_summary);
    log_summary(t);
    check_closed(t);
}

static void on_errors_eof(void *owner, struct str rest)
{
    struct mcp_transport *t = owner;
    on_error_line(t, rest); /* of a process that dies, the last words may have no line end */
    conn_drop(t->errors);
    on_errors_closed(t);
}

/* ---- the start ---------------------------------------------------------------------- */

static void attach(struct mcp_transport *t, int in, int out, int errors, int64_t pid)
{
    static const struct conn_callbacks conn_callbacks = {.line = on_line,
                                                         .too_long = on_too_long,
                                                         .tail = on_tail,
                                                         .eof = on_eof,
                                                         .closed = on_conn_closed,
                                                         .write_closed = on_stdin_closed};
    static const struct conn_callbacks error_callbacks = {.line = on_error_line,
                                                          .too_long = on_error_too_long,
                                                          .eof = on_errors_eof,
                                                          .closed = on_errors_closed};
    t->output_fd = out;
    t->errors_fd = errors;
    t->conn = conn_new(t->loop, out, in, UPSTREAM_LINE_MAX_BYTES, &conn_callbacks, t);
    t->errors = conn_new(t->loop, errors, -1, STDERR_LINE_MAX_BYTES, &error_callbacks, t);
    log_event(LOG_INFO, "upstream_started", LOG_STR("upstream", t->spec->name), LOG_NUM("pid", pid));
}

static void on_spawned(void *owner, int in, int out, int errors)
{
    struct mcp_transport *t = owner;
    attach(t, in, out, errors, spawned_child_pid(t->spawned));
    if (t->closing)
        end(t, NULL);
    else
        mcp_client_opened(t->client);
}

/* One that never started has no pipes, which is what report_closed tells apart. */
static void on_spawned_ended(void *owner, int status, const char *why)
{
    struct mcp_transport *t = owner;
    bool started = spawned_child_pid(t->spawned) != 0;
    t->spawned = NULL;
    if (started) {
        on_exit_status(t, why ? CHILD_STATUS_LOST : status);
        return;
    }
    err_set(&t->why, ERR_UNAVAILABLE, "%s", why);
    report_closed(t);
}

static void on_soon(void *owner)
{
    struct mcp_transport *t = owner;
    if (t->child)
        mcp_client_opened(t->client);
    else if (!t->reported_closed && !t->has_status && !t->spawned)
        report_closed(t);
}

/* If it cannot be started, `child` and `spawned` stay NULL, and the reason is in t->why. */
static struct mcp_transport *stdio_open(struct loop *loop, const struct upstream_spec *spec,
                                        struct mcp_client *client)
{
    static const struct spawned_child_callbacks callbacks = {on_spawned, on_spawned_ended};
    struct mcp_transport *t = alloc_zeroed(sizeof(*t));
    *t = (struct mcp_transport){.loop = loop, .spec = spec, .client = client, .arena = arena_new()};
    timer_set(&t->soon, loop, 0, on_soon, t);
    if (spec->spawner.len) {
        spawned_child_start(loop, spec->spawner, spec->name, &callbacks, t, &t->spawned, &t->why);
        return t;
    }
    struct process process;
    int in, out, errors;
    enum err err = process_prepare(loop, t->arena, spec, &t->secrets, &process, &t->why);
    if (!err)
        err = child_start(loop, &process.child, on_exit_status, t, &t->child, &in, &out, &errors, &t->why);
    process_clear(&process);
    if (!err)
        attach(t, in, out, errors, child_pid(t->child));
    return t;
}

/* ---- in between ---------------------------------------------------------------------- */

static const char *stdio_blocked(struct mcp_transport *t)
{
    if (!t->conn || !conn_can_send(t->conn))
        return "accepts no more messages and is being stopped";
    return conn_unsent_bytes(t->conn) > UNSENT_MAX_BYTES ? "does not read what is sent to it" : NULL;
}

/* Notifications to a process that does not read are dropped; requests are not even tried (stdio_blocked). */
static void stdio_send(struct mcp_transport *t, const struct mcp_outgoing *outgoing)
{
    if (!t->conn || (!outgoing->id && conn_unsent_bytes(t->conn) > UNSENT_MAX_BYTES))
        return;
    struct buf *out = conn_out(t->conn);
    buf_str(out, outgoing->message);
    buf_byte(out, '\n');
}

static void stdio_close(struct mcp_transport *t)
{
    t->closing = true;
    if (t->child || t->spawned)
        end(t, NULL);
    else if (!t->has_status)
        timer_set(&t->soon, t->loop, 0, on_soon, t);
}

static void stdio_free(struct mcp_transport *t)
{
    timer_clear(&t->soon);
    timer_clear(&t->grace);
    timer_clear(&t->unfinished);
    buf_clear(&t->lines);
    timer_clear(&t->stderr_summary);
    if (t->child)
        child_dismiss(t->child, t->conn ? t->output_fd : -1, t->errors ? t->errors_fd : -1);
    if (t->conn)
        conn_drop(t->conn);
    if (t->errors)
        conn_drop(t->errors);
    if (t->spawned)
        spawned_child_kill(t->spawned);
    arena_free(t->arena);
    free(t);
}

static struct str stdio_redact(const struct mcp_transport *t, struct arena *arena, struct str text)
{
    return secrets_redact(arena, &t->secrets, text);
}

static int64_t stdio_pid(const struct mcp_transport *t)
{
    return t->child ? child_pid(t->child) : t->spawned ? spawned_child_pid(t->spawned) : 0;
}

static struct str stdio_last_stderr(const struct mcp_transport *t)
{
    return t->closing ? STR_NONE : str_of(t->words);
}

const struct mcp_transport_kind mcp_transport_stdio = {.open = stdio_open,
                                                       .send = stdio_send,
                                                       .blocked = stdio_blocked,
                                                       .redact = stdio_redact,
                                                       .pid = stdio_pid,
                                                       .last_stderr = stdio_last_stderr,
                                                       .close = stdio_close,
                                                       .free = stdio_free};
