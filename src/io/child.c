/*
 * A pidfd reports that the process has ended. It is reaped then; after that
 * its number is used only for the group, while the group has members, as the
 * kernel does not reuse the number that long.
 *
 *   running ─▶ (child_terminate: stdin closed ─▶ SIGTERM ─▶ SIGKILL) ─▶ reaped ─▶ group empty? linger ─▶
 * ended
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
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define GROUP_POLL_MS 10u   /* between checks whether the group is empty */
#define KILL_WAIT_MS  5000u /* at the daemon's end, for killed processes that do not go (their disk hangs) */

enum child_state { CHILD_RUNNING, CHILD_STDIN_CLOSED, CHILD_SENT_TERM, CHILD_KILLED, CHILD_REAPED };

struct child {
    LIST_ENTRY(child) all;
    struct loop *loop;
    pid_t pid; /* also its group */
    int pidfd;
    struct event *exit_event;
    struct timer timer;
    const struct child_callbacks *callbacks;
    void *owner;
    enum child_state state;
    bool forgotten;
    int held[2]; /* its output after child_dismiss; 0 or -1: none */
    int status;
    int64_t linger_until_us;
};

/* Of all loops. */
static LIST_HEAD(, child) children = LIST_HEAD_INITIALIZER(children);

static void stop_watching(struct child *c)
{
    if (c->exit_event)
        event_free(c->exit_event);
    if (c->pidfd >= 0)
        close(c->pidfd);
    c->exit_event = NULL;
    c->pidfd = -1;
}

static void free_child(struct child *c)
{
    timer_clear(&c->timer);
    stop_watching(c);
    for (int i = 0; i < 2; i++)
        if (c->held[i] > 0)
            close(c->held[i]);
    LIST_REMOVE(c, all);
    child_guard_remove(c->pid);
    free(c);
}

/* False if the group is empty. */
static bool signal_group(const struct child *c, int number)
{
    return kill(-c->pid, number) == 0 || errno != ESRCH;
}

static void linger(void *arg)
{
    struct child *c = arg;
    bool others = signal_group(c, 0);
    if (others && clock_mono_us() < c->linger_until_us) {
        timer_set(&c->timer, c->loop, GROUP_POLL_MS, linger, c);
        return;
    }
    if (others)
        signal_group(c, SIGKILL);
    if (!c->forgotten)
        c->callbacks->ended(c->owner, c->status);
    free_child(c);
}

static bool reap(struct child *c)
{
    pid_t got;
    do
        got = waitpid(c->pid, &c->status, WNOHANG);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        c->status = CHILD_STATUS_LOST;
    return got != 0;
}

static void on_exit_event(evutil_socket_t fd, short what, void *arg)
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

static void escalate(void *arg)
{
    struct child *c = arg;
    bool term = c->state == CHILD_STDIN_CLOSED;
    signal_group(c, term ? SIGTERM : SIGKILL);
    if (term)
        timer_set(&c->timer, c->loop, CHILD_KILL_MS, escalate, c);
    c->state = term ? CHILD_SENT_TERM : CHILD_KILLED;
}

void child_terminate(struct child *c)
{
    if (c->state != CHILD_RUNNING)
        return;
    c->state = CHILD_STDIN_CLOSED;
    timer_set(&c->timer, c->loop, CHILD_TERM_MS, escalate, c);
}

void child_dismiss(struct child *c, int output, int errors)
{
    c->held[0] = output < 0 ? -1 : fcntl(output, F_DUPFD_CLOEXEC, 3);
    c->held[1] = errors < 0 ? -1 : fcntl(errors, F_DUPFD_CLOEXEC, 3);
    c->forgotten = true;
    if (c->state > CHILD_STDIN_CLOSED)
        return;
    c->state = CHILD_STDIN_CLOSED;
    escalate(c);
}

void child_kill(struct child *c, bool forget)
{
    c->forgotten |= forget;
    signal_group(c, SIGKILL);
    c->linger_until_us = 0; /* of one that is reaped already: linger's next turn ends it */
    if (c->state == CHILD_REAPED)
        return;
    c->state = CHILD_KILLED;
    timer_clear(&c->timer);
}

struct channels {
    int ours[3], theirs[3]; /* stdin, stdout, stderr; -1: closed */
};

static void close_all(int fds[3])
{
    for (int i = 0; i < 3; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

/* Our ends are non-blocking; the child's are blocking, as programs expect. */
static enum err open_channels(struct channels *channels, const struct child_spec *spec, struct why *why)
{
    int opened = 0;
    *channels = (struct channels){{-1, -1, -1}, {-1, -1, -1}};
    for (int fd = 0; fd < 3; fd++) /* a channel below 3 would be overwritten by the child's stdio */
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
            break;
    for (; opened < 3; opened++) {
        int ends[2], ours = opened == 0; /* a pipe is written at its second end */
        if (spec->pipes || opened == 2 ? pipe2(ends, O_CLOEXEC)
                                       : socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
            break;
        channels->ours[opened] = ends[ours];
        channels->theirs[opened] = ends[!ours];
        if (fcntl(ends[ours], F_SETFL, O_NONBLOCK) != 0)
            break;
    }
    return opened == 3
               ? OK
               : err_set(why, ERR_IO, "cannot start '%s': no pipes: %s", spec->argv[0], strerror(errno));
}

static enum err start(struct child *c, const struct child_spec *spec, struct channels *channels,
                      struct why *why)
{
    struct child_spawn_options options = {.spec = spec};
    enum err err = open_channels(channels, spec, why);
    if (!err)
        err = child_guard_ensure(&options.guard, why);
    if (err)
        return err;
    memcpy(options.stdio, channels->theirs, sizeof(options.stdio));
    err = child_spawn(&options, &c->pid, &c->pidfd, why);
    if (err)
        return err;
    c->exit_event = event_new(loop_base(c->loop), c->pidfd, EV_READ | EV_PERSIST, on_exit_event, c);
    if (c->exit_event && event_add(c->exit_event, NULL) == 0) {
        LIST_INSERT_HEAD(&children, c, all);
        child_guard_add(c->pid);
        return OK;
    }
    err_set(why, ERR_IO, "cannot watch the process '%s': %s", spec->argv[0], strerror(errno));
    signal_group(c, SIGKILL);
    waitpid(c->pid, NULL, 0);
    child_guard_remove(c->pid);
    stop_watching(c);
    return ERR_IO;
}

enum err child_start(struct loop *loop, const struct child_spec *spec,
                     const struct child_callbacks *callbacks, void *owner, struct child **out, int *in,
                     int *output, int *errors, struct why *why)
{
    struct channels channels;
    struct sigaction now, normal = {.sa_handler = SIG_DFL};
    struct child *c = calloc(1, sizeof(*c));
    *out = NULL;
    *in = *output = *errors = -1;
    if (!c)
        abort();
    *c = (struct child){.loop = loop, .pidfd = -1, .callbacks = callbacks, .owner = owner};
    /* If our parent left SIGCHLD ignored, the kernel would reap by itself and lose how processes ended. */
    if (sigaction(SIGCHLD, NULL, &now) == 0 && (now.sa_handler == SIG_IGN || now.sa_flags & SA_NOCLDWAIT))
        sigaction(SIGCHLD, &normal, NULL);
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
        return STR_LIT("ended, exit status unknown");
    if (WIFEXITED(status))
        return arena_printf(arena, "exit code %d", WEXITSTATUS(status));
    const char *name = WIFSIGNALED(status) ? sigabbrev_np(WTERMSIG(status)) : NULL;
    if (name)
        return arena_printf(arena, "killed by SIG%s", name);
    return arena_printf(arena, "ended with the status %d", status);
}

static void signal_all(const struct loop *loop, int number)
{
    struct child *c;
    LIST_FOREACH (c, &children, all)
        if (c->loop == loop)
            signal_group(c, number);
}

/* Reaps the children of the loop and frees those whose group is empty, or at once if `force`. *running: how
 * many are not reaped. Returns how many are left. */
static size_t collect(const struct loop *loop, bool force, size_t *running)
{
    size_t left = 0;
    *running = 0;
    for (struct child *c = LIST_FIRST(&children), *next; c; c = next) {
        next = LIST_NEXT(c, all);
        if (c->loop != loop)
            continue;
        if (c->state != CHILD_REAPED && reap(c))
            c->state = CHILD_REAPED;
        *running += c->state != CHILD_REAPED;
        if (force || (c->state == CHILD_REAPED && !signal_group(c, 0)))
            free_child(c);
        else
            left++;
    }
    return left;
}

static size_t wait_for_all(const struct loop *loop, uint32_t ms)
{
    int64_t until = clock_mono_us() + (int64_t)ms * 1000;
    size_t running;
    while (collect(loop, false, &running) && clock_mono_us() < until)
        poll(NULL, 0, 1);
    return running;
}

void child_terminate_all(struct loop *loop, uint32_t ms)
{
    signal_all(loop, SIGTERM);
    wait_for_all(loop, ms);
    signal_all(loop, SIGKILL);
    size_t running = wait_for_all(loop, CHILD_LINGER_MS);
    for (uint32_t waited = 0; running && waited < KILL_WAIT_MS; waited += CHILD_LINGER_MS)
        running = wait_for_all(loop, CHILD_LINGER_MS);
    collect(loop, true, &running); /* a group with zombies that nobody reaps never becomes empty */
    if (LIST_EMPTY(&children))
        child_guard_stop();
}
