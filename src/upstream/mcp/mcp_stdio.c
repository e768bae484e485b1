/*
 * A server that we start: its stdin and stdout carry the messages, a line
 * each, its stderr goes to the log. It is over when the process is gone and
 * all that it had written is read.
 *
 *   make ─▶ open: process ─▶ opened … lines … (stdout ends) ─▶ (process ends) ─▶ rest is read ─▶ closed
 */
#include "base/arena.h"
#include "base/log.h"
#include "io/child.h"
#include "io/conn.h"
#include "io/timer.h"
#include "json/parse.h"
#include "upstream/environment.h"
#include "upstream/mcp/mcp_message.h"
#include "upstream/mcp/mcp_transport.h"
#include "base/rate_limit.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define UNSENT_MAX_BYTES      4194304u /* that a process has not read: more is not sent to it */
#define STDERR_LINE_MAX_BYTES 4096u
#define STDERR_SHOWN_BYTES    512u /* of a line, in the log */
#define STDERR_PER_S          20u  /* lines in the log, each process */
#define GRACE_MS              300u /* to end after its pipes did */
#define WORDS_MAX_BYTES       512u
#define WORDS_STALE_LINES     32u /* after so many others, an error on stderr is not why it died */

struct mcp_transport {
    struct loop *loop;
    const struct upstream_spec *spec;
    const struct mcp_transport_hooks *hooks;
    void *owner;
    struct arena *arena; /* the environment, and what in it is secret */
    struct secrets secrets;
    struct child *child; /* NULL: it has not begun, or has ended */
    struct conn *conn, *errors;
    struct timer soon, grace, told_later;
    struct rate_limit rate_limit;
    bool closing;  /* we asked for it */
    bool told;     /* closed was */
    bool too_long; /* a line that did not tell yet for whom it was, */
    bool no_room;  /* and was given up for want of memory, not for its length */
    int status;    /* of waitpid */
    bool has_status;
    const char *suspect;         /* what it did that only one does that ends */
    const char *fault;           /* why we ended it; NULL: we did not */
    struct why why;              /* why it could not be started */
    char words[WORDS_MAX_BYTES]; /* its last on stderr, an error rather than others */
    uint32_t words_age;          /* lines since, where they are an error; 0: they are none */
    uint8_t words_tell;          /* enum telling */
};

/* ---- the end ------------------------------------------------------------------- */

static void tell_closed(struct mcp_transport *t)
{
    char why[ERR_MESSAGE_MAX_BYTES];
    struct arena *arena = arena_new();
    struct str status = t->has_status ? child_status(arena, t->status) : STR_NONE;
    if (!t->has_status)
        snprintf(
            why, sizeof(why), STR_FMT,
            STR_ARG(secrets_redact(arena, &t->secrets, str_of(t->why.text)))); /* it names command, folder */
    else
        snprintf(why, sizeof(why), "%s%s" STR_FMT, t->fault ? t->fault : "", t->fault ? ", " : "",
                 STR_ARG(status));
    struct str words = t->closing ? STR_NONE : str_of(t->words);
    t->told = true;
    t->hooks->closed(t->owner, why, words); /* may have freed nothing: the owner waits for another turn */
    arena_free(arena);
}

static void settle(struct mcp_transport *t)
{
    if (!t->told && !t->child && !t->conn && !t->errors && t->has_status)
        tell_closed(t);
}

static void on_ended(void *owner, int status)
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
    settle(t);
}

static const struct child_callbacks child_callbacks = {on_ended};

/* Its stdin ends first; SIGTERM and SIGKILL follow by themselves. */
static void end(struct mcp_transport *t, const char *fault)
{
    if (!t->fault)
        t->fault = fault;
    if (t->conn)
        conn_close_out(t->conn);
    if (t->child)
        child_terminate(t->child);
    timer_clear(&t->grace);
}

/* ---- its stdout ------------------------------------------------------------------ */

static void on_line(void *owner, struct str line)
{
    struct mcp_transport *t = owner;
    t->words[0] = '\0'; /* what it said before it answered is not why it died later */
    t->words_age = 0;
    t->hooks->message(t->owner, 0, line);
}

static void tell_no_room(struct mcp_transport *t, uint64_t id)
{
    t->hooks->failed(t->owner, id, UPSTREAM_TRANSIENT, "no_memory",
                     "the gateway has no memory left for it, since all its connections together hold more "
                     "than limits.memory",
                     STR_NONE, 1);
}

static void tell_too_large(struct mcp_transport *t, uint64_t id)
{
    char why[100];
    if (t->no_room) {
        tell_no_room(t, id);
        return;
    }
    snprintf(why, sizeof(why), "a line of more than %u bytes, which is not read", UPSTREAM_LINE_MAX_BYTES);
    t->hooks->failed(t->owner, id, UPSTREAM_BROKEN, "result_too_large", why, STR_NONE, -1);
}

/* Most put the id before the result … */
static void on_too_long(void *owner, struct str head, bool for_memory)
{
    struct mcp_transport *t = owner;
    uint64_t id = mcp_message_own_id(json_recover_id(head));
    t->no_room = for_memory;
    if (for_memory)
        log_event(LOG_WARN, "upstream_line_dropped", LOG_STR("upstream", t->spec->name),
                  LOG_TEXT("why", "all connections together hold more than limits.memory"),
                  LOG_NUM("for_call", id));
    else
        log_event(LOG_WARN, "upstream_line_too_long", LOG_STR("upstream", t->spec->name),
                  LOG_NUM("more_than", UPSTREAM_LINE_MAX_BYTES), LOG_NUM("for_call", id));
    t->too_long = id == 0;
    if (id)
        tell_too_large(t, id);
}

/* … others behind it: `,"id":7}` */
static uint64_t id_at_end(struct str tail)
{
    static const char key[] = "\"id\":";
    tail = str_trim(tail);
    size_t end = tail.len && tail.at[tail.len - 1] == '}' ? tail.len - 1 : 0, start = end;
    while (start && tail.at[start - 1] >= '0' && tail.at[start - 1] <= '9')
        start--;
    size_t before = sizeof(key) - 1;
    if (start < before || memcmp(tail.at + start - before, key, before) != 0)
        return 0;
    return mcp_message_own_id((struct str){tail.at + start, end - start});
}

static void on_tail(void *owner, struct str tail)
{
    struct mcp_transport *t = owner;
    if (t->too_long)
        tell_too_large(t, id_at_end(tail));
    t->too_long = false;
}

/* One that ends closes its pipes first; one that only does that is of no use any more. */
static void on_lives_on(void *owner)
{
    struct mcp_transport *t = owner;
    end(t, t->suspect);
}

static void suspect(struct mcp_transport *t, const char *what)
{
    if (t->has_status || t->closing || timer_is_set(&t->grace))
        return;
    t->suspect = what;
    timer_set(&t->grace, t->loop, GRACE_MS, on_lives_on, t);
}

static void on_deaf(void *owner)
{
    suspect(owner, "it closed its stdin");
}

static void on_eof(void *owner, size_t half_line)
{
    struct mcp_transport *t = owner;
    if (half_line)
        log_event(LOG_INFO, "upstream_line_incomplete", LOG_STR("upstream", t->spec->name),
                  LOG_NUM("bytes", half_line));
    conn_close_out(t->conn);
    conn_drop(t->conn);
    t->conn = NULL;
    suspect(t, "it closed its stdout");
    settle(t);
}

static void on_gone(void *owner)
{
    struct mcp_transport *t = owner;
    t->conn = NULL;
    suspect(t, "its stdout could not be read");
    settle(t);
}

static const struct conn_callbacks conn_callbacks = {.line = on_line,
                                                     .too_long = on_too_long,
                                                     .tail = on_tail,
                                                     .eof = on_eof,
                                                     .closed = on_gone,
                                                     .write_closed = on_deaf};

/* ---- its stderr ------------------------------------------------------------------- */

static bool holds_one_of(struct str line, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (str_contains_nocase(line, str_of(words[i])))
            return true;
    return false;
}

enum telling { TELLS_NO_ERROR, TELLS_AN_ERROR, TELLS_WHICH };

/* "npm error A complete log of this run …" speaks of an error, "npm error 404 … could not be found" says
 * which. */
static enum telling telling(struct str line)
{
    static const char *const which[] = {"error: ",   "exception",          "fatal",    "panic",  "cannot",
                                        "not found", "could not be found", "no such ", "denied", "refused"};
    static const char *const some[] = {"error"};
    if (holds_one_of(line, which, sizeof(which) / sizeof(*which)))
        return TELLS_WHICH;
    return holds_one_of(line, some, sizeof(some) / sizeof(*some)) ? TELLS_AN_ERROR : TELLS_NO_ERROR;
}

/* What will be quoted if it dies: an error of late rather than what came after it; never a stack's frames. */
static void remember(struct mcp_transport *t, struct str line)
{
    enum telling tells = telling(line);
    bool frame = line.at[0] == ' ' || line.at[0] == '\t';
    bool stale = t->words_age == 0 || ++t->words_age > WORDS_STALE_LINES;
    if (frame || (!stale && tells < t->words_tell) || (!stale && tells == TELLS_NO_ERROR))
        return;
    struct arena *arena = arena_new();
    struct str cut = str_cut(secrets_redact(arena, &t->secrets, str_trim(line)), WORDS_MAX_BYTES - 1);
    memcpy(t->words, cut.at, cut.len);
    t->words[cut.len] = '\0';
    t->words_age = tells != TELLS_NO_ERROR;
    t->words_tell = (uint8_t)tells;
    arena_free(arena);
}

static void log_held(void *owner)
{
    struct mcp_transport *t = owner;
    if (t->rate_limit.held)
        log_event(LOG_INFO, "upstream_stderr", LOG_STR("upstream", t->spec->name),
                  LOG_NUM("lines_not_logged", t->rate_limit.held));
    t->rate_limit.held = 0;
}

static void log_words(struct mcp_transport *t, struct str line, uint64_t held)
{
    struct arena *arena = arena_new();
    struct str text = str_cut(secrets_redact(arena, &t->secrets, line), STDERR_SHOWN_BYTES);
    if (held)
        log_event(LOG_INFO, "upstream_stderr", LOG_STR("upstream", t->spec->name), LOG_STR("text", text),
                  LOG_NUM("lines_not_logged", held));
    else
        log_event(LOG_INFO, "upstream_stderr", LOG_STR("upstream", t->spec->name), LOG_STR("text", text));
    arena_free(arena);
}

static void on_error_line(void *owner, struct str line)
{
    struct mcp_transport *t = owner;
    uint64_t held;
    if (!str_trim(line).len)
        return;
    remember(t, line);
    if (rate_limit_allow(&t->rate_limit, STDERR_PER_S, &held))
        log_words(t, line, held);
    else if (!timer_is_set(&t->told_later))
        timer_set(&t->told_later, t->loop, 1000, log_held, t);
}

static void on_error_too_long(void *owner, struct str head, bool for_memory)
{
    (void)for_memory;
    on_error_line(owner, head);
}

static void on_errors_gone(void *owner)
{
    struct mcp_transport *t = owner;
    t->errors = NULL;
    timer_clear(&t->told_later);
    log_held(t);
    settle(t);
}

static void on_errors_eof(void *owner, size_t half_line)
{
    struct mcp_transport *t = owner;
    (void)half_line;
    conn_drop(t->errors);
    on_errors_gone(t);
}

static const struct conn_callbacks error_hooks = {
    .line = on_error_line, .too_long = on_error_too_long, .eof = on_errors_eof, .closed = on_errors_gone};

/* ---- the beginning ------------------------------------------------------------------ */

/* What the MCP SDKs hand on, and what decides on a program's language, time and folders. */
static const char *const taken[] = {"HOME",
                                    "LOGNAME",
                                    "PATH",
                                    "SHELL",
                                    "TERM",
                                    "USER",
                                    "LANG",
                                    "LC_ALL",
                                    "LC_COLLATE",
                                    "LC_CTYPE",
                                    "LC_MESSAGES",
                                    "LC_MONETARY",
                                    "LC_NUMERIC",
                                    "LC_TIME",
                                    "TZ",
                                    "TMPDIR",
                                    "XDG_CACHE_HOME",
                                    "XDG_CONFIG_DIRS",
                                    "XDG_CONFIG_HOME",
                                    "XDG_DATA_DIRS",
                                    "XDG_DATA_HOME",
                                    "XDG_RUNTIME_DIR",
                                    "XDG_STATE_HOME",
                                    NULL};

static enum err fill_text(struct mcp_transport *t, struct str text, const char **out)
{
    struct str filled;
    enum err err = secrets_expand(t->arena, text, &t->secrets, &filled, &t->why);
    if (!err)
        *out = arena_dup(t->arena, filled).at;
    return err;
}

static enum err fill_argv(struct mcp_transport *t, const char ***out)
{
    const char **argv = ARENA_ARRAY(t->arena, const char *, t->spec->argc + 1);
    enum err err = OK;
    for (size_t i = 0; i < t->spec->argc && !err; i++)
        err = fill_text(t, t->spec->argv[i], &argv[i]);
    *out = argv;
    return err;
}

static enum err start(struct mcp_transport *t)
{
    struct child_spec child = {0};
    const char **argv;
    int in, out, errors;
    enum err err = environment_build(t->arena, taken, &t->spec->env, &t->secrets, &child.env, &t->why);
    if (!err)
        err = fill_argv(t, &argv);
    if (!err && t->spec->cwd.len)
        err = fill_text(t, t->spec->cwd, &child.cwd);
    if (err)
        return err;
    child.argv = argv;
    err = child_start(t->loop, &child, &child_callbacks, t, &t->child, &in, &out, &errors, &t->why);
    if (err)
        return err;
    t->conn = conn_new_pair(t->loop, out, in, UPSTREAM_LINE_MAX_BYTES, &conn_callbacks, t);
    t->errors = conn_new_pair(t->loop, errors, -1, STDERR_LINE_MAX_BYTES, &error_hooks, t);
    log_event(LOG_INFO, "upstream_started", LOG_STR("upstream", t->spec->name),
              LOG_NUM("pid", child_pid(t->child)));
    return OK;
}

static void on_soon(void *owner)
{
    struct mcp_transport *t = owner;
    if (t->child)
        t->hooks->opened(t->owner);
    else if (!t->told && !t->has_status)
        tell_closed(t);
}

static struct mcp_transport *stdio_make(struct loop *loop, const struct upstream_spec *spec,
                                        const struct mcp_transport_hooks *hooks, void *owner)
{
    struct mcp_transport *t = calloc(1, sizeof(*t));
    if (!t)
        abort();
    t->loop = loop;
    t->spec = spec;
    t->hooks = hooks;
    t->owner = owner;
    t->arena = arena_new();
    return t;
}

static void stdio_open(struct mcp_transport *t)
{
    start(t);
    timer_set(&t->soon, t->loop, 0, on_soon, t);
}

/* ---- in between ---------------------------------------------------------------------- */

static const char *stdio_full(struct mcp_transport *t)
{
    if (!t->conn || !conn_can_send(t->conn))
        return "takes no more messages and is being ended";
    return conn_unsent_bytes(t->conn) > UNSENT_MAX_BYTES ? "does not read what is sent to it" : NULL;
}

/* Notices to one that does not read are lost; requests aren't sent (stdio_full). */
static void stdio_send(struct mcp_transport *t, uint64_t id, const char *method, struct str name,
                       struct str message)
{
    (void)method, (void)name;
    if (!t->conn || (!id && conn_unsent_bytes(t->conn) > UNSENT_MAX_BYTES))
        return;
    struct buf *out = conn_out(t->conn);
    buf_str(out, message);
    buf_byte(out, '\n');
}

static void stdio_forget(struct mcp_transport *t, uint64_t id)
{
    (void)t, (void)id;
}

static void stdio_version(struct mcp_transport *t, const char *version, bool modern)
{
    (void)t, (void)version, (void)modern;
}

static void stdio_close(struct mcp_transport *t)
{
    t->closing = true;
    if (t->child)
        end(t, NULL);
    else if (!t->has_status)
        timer_set(&t->soon, t->loop, 0, on_soon, t);
}

static void stdio_free(struct mcp_transport *t)
{
    timer_clear(&t->soon);
    timer_clear(&t->grace);
    timer_clear(&t->told_later);
    if (t->conn)
        conn_drop(t->conn);
    if (t->errors)
        conn_drop(t->errors);
    if (t->child)
        child_kill(t->child, true);
    arena_free(t->arena);
    free(t);
}

static struct str stdio_mask(const struct mcp_transport *t, struct arena *arena, struct str text)
{
    return secrets_redact(arena, &t->secrets, text);
}

static int64_t stdio_pid(const struct mcp_transport *t)
{
    return t->child ? child_pid(t->child) : 0;
}

const struct mcp_transport_kind mcp_transport_stdio = {
    .make = stdio_make,
    .open = stdio_open,
    .send = stdio_send,
    .full = stdio_full,
    .forget = stdio_forget,
    .version = stdio_version,
    .mask = stdio_mask,
    .pid = stdio_pid,
    .close = stdio_close,
    .free = stdio_free,
};
