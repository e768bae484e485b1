/*
 * See child.h. The kernel says through a pidfd that a process has ended. It is
 * reaped then; after that its number is used for the group only, and only
 * while somebody is in it, for so long the kernel gives it to nobody else.
 *
 *   running ─▶ (child_terminate: stdin closed ─▶ SIGTERM ─▶ SIGKILL) ─▶ reaped ─▶ others of the group? linger
 * ─▶ ended
 */
#include "io/child.h"

#include "base/arena.h"
#include "base/clock.h"
#include "io/child_guard.h"
#include "io/child_spawn.h"
#include "io/conn.h"
#include "io/timer.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOOK_MS 10u   /* how often we look whether the group is empty */
#define KILL_MS 5000u /* one that was killed and does not go (its disk is dead) is not waited for longer */

enum child_state { CHILD_RUNS, CHILD_TOLD_BY_EOF, CHILD_TOLD_BY_TERM, CHILD_KILLED, CHILD_REAPED };

struct child {
    struct child *next, *previous;
    struct loop *loop;
    pid_t pid; /* and its group */
    int pidfd;
    struct event *over;
    struct timer timer;
    const struct child_callbacks *hooks;
    void *owner;
    enum child_state state;
    bool forgotten;
    int status;
    int64_t linger_until_us;
};

/* Of the process; each belongs to a loop. */
static struct child *children;

/* ---- its end ---------------------------------------------------------------------------------- */

static void link_child(struct child *c)
{
    c->next = children;
    if (children)
        children->previous = c;
    children = c;
    child_guard_add(c->pid);
}

static void unlink_child(struct child *c)
{
    if (c->next)
        c->next->previous = c->previous;
    if (c->previous)
        c->previous->next = c->next;
    else
        children = c->next;
    child_guard_remove(c->pid);
}

static void stop_watching(struct child *c)
{
    if (c->over)
        event_free(c->over);
    if (c->pidfd >= 0)
        close(c->pidfd);
    c->over = NULL;
    c->pidfd = -1;
}

static void free_child(struct child *c)
{
    timer_clear(&c->timer);
    stop_watching(c);
    unlink_child(c);
    free(c);
}

static bool signal_group(const struct child *c, int number)
{
    return kill(-c->pid, number) == 0 || errno != ESRCH;
}

static void finish(struct child *c)
{
    if (!c->forgotten)
        c->hooks->ended(c->owner, c->status);
    free_child(c);
}

static void linger(void *arg)
{
    struct child *c = arg;
    bool others = signal_group(c, 0);
    if (others && clock_mono_us() < c->linger_until_us) {
        timer_set(&c->timer, c->loop, LOOK_MS, linger, c);
        return;
    }
    if (others)
        signal_group(c, SIGKILL);
    finish(c);
}

static bool reap(struct child *c)
{
    pid_t got;
    do
        got = waitpid(c->pid, &c->status, WNOHANG);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        c->status = CHILD_STATUS_LOST; /* somebody else reaped it; there is nothing to wait for */
    return got != 0;
}

static void on_over(evutil_socket_t fd, short what, void *arg)
{
    struct child *c = arg;
    (void)fd, (void)what;
    if (!reap(c))
        return;
    stop_watching(c);
    timer_clear(&c->timer);
    c->linger_until_us = c->state == CHILD_KILLED ? 0 : clock_mono_us() + CHILD_LINGER_MS * 1000;
    c->state = CHILD_REAPED;
    linger(c);
}

static void press(void *arg)
{
    struct child *c = arg;
    signal_group(c, c->state == CHILD_TOLD_BY_EOF ? SIGTERM : SIGKILL);
    if (c->state == CHILD_TOLD_BY_EOF)
        timer_set(&c->timer, c->loop, CHILD_TERM_MS, press, c);
    c->state = c->state == CHILD_TOLD_BY_EOF ? CHILD_TOLD_BY_TERM : CHILD_KILLED;
}

void child_terminate(struct child *c)
{
    if (c->state != CHILD_RUNS)
        return;
    c->state = CHILD_TOLD_BY_EOF;
    timer_set(&c->timer, c->loop, CHILD_TERM_MS, press, c);
}

void child_kill(struct child *c, bool forget)
{
    c->forgotten |= forget;
    signal_group(c, SIGKILL);
    c->linger_until_us = 0; /* reaped already: the next look finishes it */
    if (c->state == CHILD_REAPED)
        return;
    c->state = CHILD_KILLED;
    timer_clear(&c->timer);
}

/* ---- its beginning ----------------------------------------------------------------------------- */

struct channels {
    int ours[3], theirs[3];
};

static void close_all(int fds[3])
{
    for (int i = 0; i < 3; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
        fds[i] = -1;
    }
}

/* A descriptor below 3 would be overwritten while the new process's own are put there. */
static void fill_stdio(void)
{
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
            return;
}

/* One for `at` 0 (stdin), 1 or 2; ours is non-blocking, theirs as programs expect it. */
static int open_channel(struct channels *channels, int at, bool pipes)
{
    int ends[2], ours = at == 0 ? 1 : 0; /* a pipe is written at its second end */
    if ((pipes || at == 2) ? pipe2(ends, O_CLOEXEC)
                           : socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        return -1;
    channels->ours[at] = ends[ours];
    channels->theirs[at] = ends[!ours];
    return fcntl(ends[ours], F_SETFL, O_NONBLOCK);
}

static enum err open_channels(struct channels *channels, const struct child_spec *spec, struct why *why)
{
    *channels = (struct channels){{-1, -1, -1}, {-1, -1, -1}};
    fill_stdio();
    for (int at = 0; at < 3; at++)
        if (open_channel(channels, at, spec->pipes) != 0)
            return err_set(why, ERR_IO, "cannot start '%s': no pipes for it: %s", spec->argv[0],
                           strerror(errno));
    return OK;
}

static enum err watch(struct child *c, struct why *why)
{
    c->over = event_new(loop_base(c->loop), c->pidfd, EV_READ | EV_PERSIST, on_over, c);
    if (c->over && event_add(c->over, NULL) == 0)
        return OK;
    return err_set(why, ERR_IO, "cannot wait for the end of a process: %s", strerror(errno));
}

static enum err start(struct child *c, const struct child_spec *spec, struct channels *channels,
                      struct why *why)
{
    struct spawn spawn = {.spec = spec};
    enum err err = open_channels(channels, spec, why);
    if (!err)
        err = child_guard_ensure(&spawn.guard, why);
    if (err)
        return err;
    memcpy(spawn.stdio, channels->theirs, sizeof(spawn.stdio));
    err = child_spawn(&spawn, &c->pid, &c->pidfd, why);
    if (err)
        return err;
    link_child(c);
    err = watch(c, why);
    if (err) {
        signal_group(c, SIGKILL);
        waitpid(c->pid, NULL, 0);
        stop_watching(c);
        unlink_child(c);
    }
    return err;
}

/* Where SIGCHLD is ignored, as whoever started us may have left it, the kernel reaps by itself, and how a
 * process ended is lost: every failure would look like none. */
static void keep_what_ended(void)
{
    struct sigaction now, normal = {.sa_handler = SIG_DFL};
    if (sigaction(SIGCHLD, NULL, &now) == 0 &&
        (now.sa_handler == SIG_IGN || (now.sa_flags & SA_NOCLDWAIT) != 0))
        sigaction(SIGCHLD, &normal, NULL);
}

enum err child_start(struct loop *loop, const struct child_spec *spec, const struct child_callbacks *hooks,
                     void *owner, struct child **out, int *in, int *output, int *errors, struct why *why)
{
    struct channels channels;
    struct child *c = calloc(1, sizeof(*c));
    *out = NULL;
    *in = *output = *errors = -1;
    if (!c)
        abort(); /* a hundred bytes */
    *c = (struct child){.loop = loop, .pidfd = -1, .hooks = hooks, .owner = owner};
    keep_what_ended();
    enum err err = start(c, spec, &channels, why);
    close_all(channels.theirs);
    if (err) {
        close_all(channels.ours);
        free(c);
        return err;
    }
    *in = channels.ours[0];
    *output = channels.ours[1];
    *errors = channels.ours[2];
    *out = c;
    return OK;
}

pid_t child_pid(const struct child *child)
{
    return child->pid;
}

struct str child_status(struct arena *arena, int status)
{
    if (status == CHILD_STATUS_LOST)
        return STR_LIT("gone, and how it ended was told to somebody else");
    if (WIFEXITED(status))
        return arena_printf(arena, "exit code %d", WEXITSTATUS(status));
    const char *name = WIFSIGNALED(status) ? sigabbrev_np(WTERMSIG(status)) : NULL;
    if (name)
        return arena_printf(arena, "killed by SIG%s", name);
    return arena_printf(arena, "ended with the status %d", status);
}

/* ---- the end of all ---------------------------------------------------------------------------- */

/* Frees those of which nobody is left; false: some are. */
static bool all_gone(const struct loop *loop)
{
    bool gone = true;
    for (struct child *c = children, *next; c; c = next) {
        next = c->next;
        if (c->loop != loop)
            continue;
        if (c->state != CHILD_REAPED && reap(c))
            c->state = CHILD_REAPED;
        if (c->state == CHILD_REAPED && !signal_group(c, 0))
            free_child(c);
        else
            gone = false;
    }
    return gone;
}

static void signal_all(const struct loop *loop, int number)
{
    for (struct child *c = children; c; c = c->next)
        if (c->loop == loop)
            signal_group(c, number);
}

static bool all_reaped(const struct loop *loop)
{
    for (const struct child *c = children; c; c = c->next)
        if (c->loop == loop && c->state != CHILD_REAPED)
            return false;
    return true;
}

static void wait_for_all(const struct loop *loop, uint32_t ms)
{
    int64_t until = clock_mono_us() + (int64_t)ms * 1000;
    while (!all_gone(loop) && clock_mono_us() < until)
        poll(NULL, 0, 1);
}

/* A group whose last members nobody reaps never gets empty; they run no more, and the end is not put off. */
static void free_rest(const struct loop *loop)
{
    for (struct child *c = children, *next; c; c = next) {
        next = c->next;
        if (c->loop == loop)
            free_child(c);
    }
}

void child_terminate_all(struct loop *loop, uint32_t ms)
{
    signal_all(loop, SIGTERM);
    wait_for_all(loop, ms);
    signal_all(loop, SIGKILL);
    wait_for_all(loop, CHILD_LINGER_MS);
    for (uint32_t waited = 0; !all_reaped(loop) && waited < KILL_MS; waited += CHILD_LINGER_MS)
        wait_for_all(loop, CHILD_LINGER_MS);
    free_rest(loop);
    if (!children)
        child_guard_stop();
}
