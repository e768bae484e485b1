/*
 * Tools that are a command: started for one call, with its arguments on the
 * command line (exec_argv.h) or as one JSON line on stdin, never through a
 * shell. It is ended with all its kin when it takes too long, writes too much
 * or nobody waits any more. EXEC_AT_ONCE of them run at once, in the order in
 * which they were called; the time that one waits counts.
 *
 *   waiting ─▶ runs (stdin ─▶, stdout and stderr ◀─) ─▶ ended ─▶ answer (exec_result.c)
 */
#include "upstream/exec/exec.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/log.h"
#include "io/child.h"
#include "io/conn.h"
#include "io/descriptor.h"
#include "json/write.h"
#include "upstream/environment.h"
#include "upstream/exec/exec_result.h"
#include "upstream/exec/exec_stderr.h"
#include "upstream/exec/exec_argv.h"
#include "upstream/upstream_call.h"
#include "base/rate_limit.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define READ_BYTES        65536u
#define TRACES_PER_SECOND 5u

/* One end of a pipe of the command's. */
struct way {
    int fd; /* -1: closed */
    struct descriptor *watched;
};

struct command {
    struct upstream_call *run;
    const struct exec_spec *spec;
    struct commands *all;
    struct command *next; /* in the queue */
    bool waits;
    const char *const *argv, *const *env;
    const char *name, *cwd;
    struct secrets used;
    struct child *child; /* NULL: does not run */
    struct way in, out, errors;
    struct str input; /* what is left of it */
    struct buf said, complained;
    struct timer deadline;
    uint32_t timeout_ms;
};

/* All that run on one loop. */
struct commands {
    struct loop *loop;
    uint32_t running, waiting;
    struct command *first, **last;
    struct timer turn; /* those that wait get theirs */
    struct rate_limit traces;
};

static const char keep_key;

static void *make_commands(struct loop *loop)
{
    struct commands *all = calloc(1, sizeof(*all));
    if (!all)
        abort();
    all->loop = loop;
    all->last = &all->first;
    return all;
}

static void free_commands(void *thing)
{
    struct commands *all = thing;
    timer_clear(&all->turn);
    free(all);
}

/* ---- its place -------------------------------------------------------------------------------------- */

static void begin_waiting(void *owner);

static void close_way(struct way *way)
{
    descriptor_free(way->watched);
    if (way->fd >= 0)
        close(way->fd);
    *way = (struct way){.fd = -1};
}

static void leave_queue(struct command *c)
{
    struct commands *all = c->all;
    struct command **at = &all->first;
    while (*at && *at != c)
        at = &(*at)->next;
    *at = c->next;
    if (!c->next)
        all->last = at;
    all->waiting--;
    c->waits = false;
}

/* Nothing of it is left but what it said. */
static void release(struct command *c)
{
    if (c->waits)
        leave_queue(c);
    else
        c->all->running--;
    if (c->child)
        child_kill(c->child, true);
    c->child = NULL;
    close_way(&c->in);
    close_way(&c->out);
    close_way(&c->errors);
    timer_clear(&c->deadline);
    if (c->all->first)
        timer_set(&c->all->turn, c->all->loop, 0, begin_waiting, c->all);
}

static void stop(struct upstream_call *run)
{
    release(run->work);
}

static void on_deadline(void *owner)
{
    struct command *c = owner;
    struct upstream_call *run = c->run;
    bool ran = !c->waits;
    release(c);
    if (ran)
        upstream_call_answer(run, UPSTREAM_TRANSIENT, "timeout",
                             "%s gave no result within %g s and was ended", c->name, c->timeout_ms / 1000.0);
    else
        upstream_call_answer(run, UPSTREAM_UNAVAILABLE, "busy",
                             "%u commands were running all the time that this call may take", EXEC_AT_ONCE);
    run->answer->reached = ran;
    run->answer->after_s = ran ? -1 : 1;
    log_event(LOG_WARN, ran ? "command_timeout" : "command_busy", LOG_STR("tool", run->request->target->tool),
              LOG_TEXT("command", c->name), LOG_NUM("ms", c->timeout_ms));
    upstream_call_finish(run);
}

/* ---- bytes ------------------------------------------------------------------------------------------ */

/* EPIPE is not told: a command need not read what it is sent. */
static void write_input(struct command *c)
{
    while (c->input.len) {
        ssize_t n = write(c->in.fd, c->input.at, c->input.len);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n < 0)
            break;
        c->input = str_from(c->input, (size_t)n);
    }
    close_way(&c->in);
}

static void on_writable(void *owner, int fd, bool readable, bool writable)
{
    (void)fd, (void)readable, (void)writable;
    write_input(owner);
}

/* False: there is nothing to read now, or ever. */
static bool read_way(struct way *way, struct buf *into)
{
    char bytes[READ_BYTES];
    if (way->fd < 0)
        return false;
    ssize_t n = read(way->fd, bytes, sizeof(bytes));
    if (n > 0)
        buf_add(into, bytes, (size_t)n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        close_way(way);
    return n > 0;
}

static void say_too_much(struct command *c)
{
    struct upstream_call *run = c->run;
    upstream_call_answer(run, UPSTREAM_REFUSED, "output_too_large",
                         "%s wrote more than %u bytes and was ended: ask for less at once", c->name,
                         c->spec->output_bytes);
    run->answer->reached = true;
    run->answer->after_s = -1;
}

static bool is_too_much(const struct command *c)
{
    return c->said.len > c->spec->output_bytes;
}

static void on_output(void *owner, int fd, bool readable, bool writable)
{
    struct command *c = owner;
    (void)fd, (void)readable, (void)writable;
    read_way(&c->out, &c->said);
    if (!is_too_much(c))
        return;
    release(c);
    say_too_much(c);
    upstream_call_finish(c->run);
}

static bool read_errors(struct command *c)
{
    bool more = read_way(&c->errors, &c->complained);
    if (c->complained.len > 4 * EXEC_STDERR_BYTES)
        buf_drop(&c->complained, c->complained.len - EXEC_STDERR_BYTES);
    return more;
}

static void on_errors(void *owner, int fd, bool readable, bool writable)
{
    (void)fd, (void)readable, (void)writable;
    read_errors(owner);
}

/* ---- its end ------------------------------------------------------------------------------------------ */

static void on_ended(void *owner, int status)
{
    struct command *c = owner;
    struct upstream_call *run = c->run;
    uint64_t held;
    c->child = NULL; /* freed by itself */
    while (!is_too_much(c) && read_way(&c->out, &c->said))
        continue;
    while (read_errors(c))
        continue;
    release(c);
    if (is_too_much(c)) {
        say_too_much(c);
    } else {
        struct exec_outcome end = {.spec = c->spec, .command = c->name, .status = status, .used = &c->used};
        end.out = buf_view(&c->said);
        end.errors = buf_view(&c->complained);
        exec_result_answer(run, &end, rate_limit_allow(&c->all->traces, TRACES_PER_SECOND, &held));
    }
    upstream_call_finish(run);
}

/* ---- its beginning ------------------------------------------------------------------------------------ */

/* The model cannot mend it; what to mend is the operator's to read. */
static void cannot_start(struct upstream_call *run, const char *name, enum err err, const struct why *why)
{
    bool too_long = err == ERR_LIMIT && strstr(why->text, "longer than the system allows");
    log_event(LOG_ERROR, "command_failed", LOG_STR("tool", run->request->target->tool),
              LOG_TEXT("command", name), LOG_TEXT("why", why->text));
    if (too_long)
        upstream_call_answer(run, UPSTREAM_REFUSED, "argument_too_long",
                             "the arguments together are longer than a command can be given");
    else
        upstream_call_answer(
            run, UPSTREAM_UNAVAILABLE, err == ERR_NOT_FOUND ? "no_such_command" : "cannot_start",
            "its command '%s' cannot be started on this host: only who runs the gateway can mend that", name);
    run->answer->reached = false;
    run->answer->after_s = -1;
}

static void watch(struct command *c)
{
    struct loop *loop = c->all->loop;
    c->out.watched = descriptor_new(loop, c->out.fd, on_output, c);
    c->errors.watched = descriptor_new(loop, c->errors.fd, on_errors, c);
    descriptor_watch(c->out.watched, true, false);
    descriptor_watch(c->errors.watched, true, false);
    write_input(c);
    if (c->in.fd < 0)
        return;
    c->in.watched = descriptor_new(loop, c->in.fd, on_writable, c);
    descriptor_watch(c->in.watched, false, true);
}

static enum err begin(struct command *c, struct why *why)
{
    static const struct child_callbacks hooks = {on_ended};
    const struct child_spec spec = {
        .argv = c->argv,
        .env = c->env,
        .cwd = c->cwd,
        .pipes = true,
        .limits = {.memory_bytes = c->spec->memory_bytes,
                   .file_bytes = c->spec->file_bytes,
                   .cpu_s = c->spec->cpu_s,
                   .processes = c->spec->processes},
    };
    enum err err =
        child_start(c->all->loop, &spec, &hooks, c, &c->child, &c->in.fd, &c->out.fd, &c->errors.fd, why);
    if (!err)
        watch(c);
    return err;
}

static void begin_waiting(void *owner)
{
    struct commands *all = owner;
    struct why why;
    while (all->first && all->running < EXEC_AT_ONCE) {
        struct command *c = all->first;
        leave_queue(c);
        all->running++;
        enum err err = begin(c, &why);
        if (!err)
            continue;
        release(c);
        cannot_start(c->run, c->name, err, &why);
        upstream_call_finish(c->run);
    }
}

static enum upstream_call_state wait_for_turn(struct command *c)
{
    struct commands *all = c->all;
    if (all->waiting == EXEC_WAITING_MAX) {
        upstream_call_answer(c->run, UPSTREAM_UNAVAILABLE, "busy",
                             "%u commands run already and %u wait for their turn", EXEC_AT_ONCE,
                             EXEC_WAITING_MAX);
        c->run->answer->reached = false;
        c->run->answer->after_s = 1;
        return UPSTREAM_DONE;
    }
    c->waits = true;
    *all->last = c;
    all->last = &c->next;
    all->waiting++;
    return UPSTREAM_PENDING;
}

static enum upstream_call_state begin_now(struct command *c)
{
    struct why why;
    c->all->running++;
    enum err err = begin(c, &why);
    if (!err)
        return UPSTREAM_PENDING;
    c->all->running--;
    cannot_start(c->run, c->name, err, &why);
    return UPSTREAM_DONE;
}

/* ---- what it is given -----------------------------------------------------------------------------------
 */

static bool fail_setting(struct upstream_call *run, const struct why *why)
{
    log_event(LOG_ERROR, "command_failed", LOG_STR("tool", run->request->target->tool),
              LOG_TEXT("why", why->text));
    upstream_call_answer(
        run, UPSTREAM_UNAVAILABLE, "not_configured",
        "a setting that its command needs is missing: only who runs the gateway can mend that");
    return false;
}

static bool fill_words(struct command *c)
{
    struct upstream_call *run = c->run;
    struct exec_argv_error fault;
    c->argv = exec_argv_build(run->arena, c->spec, run->request->arguments, &fault);
    if (!c->argv)
        upstream_call_answer(run, UPSTREAM_REFUSED, fault.code, STR_FMT, STR_ARG(fault.detail));
    return c->argv != NULL;
}

static bool fill_rest(struct command *c)
{
    static const char *const taken[] = {"PATH", "HOME", "LANG", "TZ", "TERM", NULL};
    struct upstream_call *run = c->run;
    struct str cwd;
    struct why why;
    if (environment_build(run->arena, taken, &c->spec->env, &c->used, &c->env, &why) != OK ||
        secrets_expand(run->arena, c->spec->cwd, NULL, &cwd, &why) != OK)
        return fail_setting(run, &why);
    c->cwd = cwd.len ? arena_dup(run->arena, cwd).at : NULL;
    if (c->spec->on_stdin) {
        struct buf line = buf_in(run->arena);
        json_write(&line, run->request->arguments);
        buf_byte(&line, '\n');
        c->input = buf_view(&line);
    }
    return true;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static uint32_t timeout_of(const struct upstream_call *run)
{
    return upstream_call_timeout_ms(run, target_timeout_ms(run->request->target, NULL));
}

enum upstream_call_state exec_call(struct upstream_call *run)
{
    struct command *c = ARENA_NEW(run->arena, struct command);
    *c = (struct command){
        .run = run, .spec = run->request->target->exec, .in = {-1}, .out = {-1}, .errors = {-1}};
    c->said = c->complained = buf_in(run->arena);
    c->timeout_ms = timeout_of(run);
    run->answer->after_s = -1;
    run->answer->reached = false;
    if (!fill_words(c) || !fill_rest(c))
        return UPSTREAM_DONE;
    c->name = last_part(c->argv[0]);
    c->all = loop_singleton(upstream_call_loop(run), &keep_key, make_commands, free_commands);
    run->work = c;
    run->stop = stop;
    bool free_now = c->all->running < EXEC_AT_ONCE && !c->all->first;
    enum upstream_call_state state = free_now ? begin_now(c) : wait_for_turn(c);
    if (state == UPSTREAM_PENDING)
        timer_set(&c->deadline, c->all->loop, c->timeout_ms, on_deadline, c);
    return state;
}
