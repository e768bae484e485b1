/*
 * `toolgate spawner` (lua/cli/spawner.lua): a small process that starts upstreams by name, from a
 * configuration of its own, for a daemon whose service unit forbids it. It reads nothing of what the
 * upstreams say. io/spawned_child.h has the protocol.
 *
 * One connection is one process. A connection that sends anything but a
 * request of the protocol is closed, and a closed connection kills its
 * process: nothing outlives who asked for it.
 *
 *   accepted ─▶ (SO_PEERCRED) ─▶ "start NAME" ─▶ running ─▶ ended
 */
#include "cli/lua_cli.h"

#include "base/arena.h"
#include "base/log.h"
#include "base/share.h"
#include "cli/term.h"
#include "policy/peer.h"
#include "io/child.h"
#include "io/conn.h"
#include "io/descriptor.h"
#include "io/file.h"
#include "io/timer.h"
#include "io/unix_socket.h"
#include "io/systemd.h"
#include "server/state_dir.h"
#include "upstream/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEFAULT_FILE   "/etc/toolgate/spawner.lua"
#define DEFAULT_SOCKET CONFIG_SYSTEM_FOLDER "/spawner.sock"

#define CONNECTIONS_MAX   512u  /* more are closed at once; one user alone gets half */
#define REQUEST_MS        5000u /* from a connection to its request */
#define REQUEST_MAX_BYTES 64u   /* "start " and a name */
#define PIPES             3

struct spawner {
    struct loop *loop;
    const struct config *config;
    uint32_t connections;
    LIST_HEAD(, request) requests;
};

struct request {
    LIST_ENTRY(request) entry;
    struct spawner *spawner;
    struct descriptor *watched;
    int fd; /* of who asked */
    struct timer deadline;
    struct child *child; /* NULL: none yet, or ended */
    uid_t uid;
    pid_t pid;
    char line[REQUEST_MAX_BYTES];
    size_t len;
};

static void on_stop(void *owner, int fd, bool readable, bool writable)
{
    (void)fd, (void)readable, (void)writable;
    *(bool *)owner = true;
}

static void release(struct request *r)
{
    timer_clear(&r->deadline);
    descriptor_free(r->watched);
    close(r->fd);
    if (r->child)
        child_dismiss(r->child, -1, -1); /* whose output the daemon has */
    LIST_REMOVE(r, entry);
    r->spawner->connections--;
    free(r);
}

/* A peer that has no room for one line is gone: the buffer of a socket holds it. */
static bool reply(const struct request *r, const char *line, const int *pipes)
{
    union {
        struct cmsghdr aligned;
        char bytes[CMSG_SPACE(PIPES * sizeof(int))];
    } control = {0};
    struct iovec from = {(char *)line, strlen(line)};
    struct msghdr message = {.msg_iov = &from, .msg_iovlen = 1};
    if (pipes) {
        message.msg_control = &control;
        message.msg_controllen = sizeof(control);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(PIPES * sizeof(int));
        memcpy(CMSG_DATA(header), pipes, PIPES * sizeof(int));
    }
    return sendmsg(r->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)from.iov_len;
}

static void on_ended(void *owner, int status)
{
    struct request *r = owner;
    char line[64];
    r->child = NULL;
    snprintf(line, sizeof(line), "ended %d\n", status);
    reply(r, line, NULL);
    release(r);
}

/* An open file that decides what runs, and as whom: only root, the user who runs this, or `also`, may write
 * to it or replace it. `others`: the modes of those who may not. */
static enum err check_open_file(int fd, const char *path, uid_t also, mode_t others, struct why *why)
{
    struct stat info;
    char own[32], real[PATH_MAX];
    snprintf(own, sizeof(own), "/proc/self/fd/%d", fd);
    if (fd < 0 || fstat(fd, &info) != 0 || !realpath(own, real))
        return err_set(why, ERR_NOT_FOUND, "cannot read %s: %s", path, strerror(errno));
    if ((info.st_uid != 0 && info.st_uid != geteuid() && info.st_uid != also) || info.st_mode & others)
        return err_set(why, ERR_CONFIG,
                       "%s decides what runs, but others than root may write to it (uid %u, mode %04o): "
                       "chown root and chmod go-w",
                       path, (unsigned)info.st_uid, (unsigned)(info.st_mode & 07777));
    enum err err = file_check_above(real, also, why);
    if (err)
        err_prefix(why, path);
    return err;
}

static enum err check_file(const char *path, struct why *why)
{
    int fd = open(path, O_PATH | O_CLOEXEC);
    enum err err = check_open_file(fd, path, geteuid(), S_IWGRP | S_IWOTH, why);
    if (fd >= 0)
        close(fd);
    return err;
}

/* Also one that cannot be read here: an interpreter could not read it either. */
static bool is_script(int fd)
{
    char own[32], start[2] = "";
    snprintf(own, sizeof(own), "/proc/self/fd/%d", fd);
    int file = open(own, O_RDONLY | O_CLOEXEC);
    bool script = file < 0 ? errno != EACCES : read(file, start, 2) == 2 && memcmp(start, "#!", 2) == 0;
    if (file >= 0)
        close(file);
    return script;
}

/* What is checked is what runs: the open file. A script runs by its path, since its interpreter opens it
 * again and looks for what lies beside it; so nobody else may have a say in what lies there, now or in a
 * moment. What the program's own user may replace runs with no other rights than that user's. */
static enum err check_program(struct child_spec *child, struct why *why)
{
    char found[PATH_MAX], path[PATH_MAX];
    uid_t uid = child->identity->uid;
    enum err err = child_find_program(child, found, why);
    if (err)
        return err;
    bool relative = *found != '/' && child->cwd; /* it is executed in that folder */
    if (snprintf(path, sizeof(path), "%s%s%s", relative ? child->cwd : "", relative ? "/" : "", found) >=
        PATH_MAX)
        return err_set(why, ERR_NOT_FOUND, "the path of the command is longer than %d bytes", PATH_MAX);
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return OK; /* child_start says what is missing */
    err = check_open_file(fd, path, uid, S_IWOTH, why);
    if (!err)
        err = file_check_above(path, uid, why); /* where links to it lie */
    if (err || is_script(fd))
        close(fd);
    else
        child->program = fd;
    return err;
}

static enum err start(struct request *r, const struct upstream_spec *spec, int pipes[PIPES], struct why *why)
{
    struct arena *arena = arena_new();
    struct secrets secrets = {0};
    const struct child_identity own = {getuid(), getgid()};
    struct process process;
    enum err err = process_prepare(r->spawner->loop, arena, spec, &secrets, &process, why);
    if (!process.child.identity) /* our own user, without our privileges */
        process.child.identity = &own;
    if (!err)
        err = check_program(&process.child, why);
    if (!err)
        err = child_start(r->spawner->loop, &process.child, on_ended, r, &r->child, &pipes[0], &pipes[1],
                          &pipes[2], why);
    if (process.child.program)
        close(process.child.program);
    process_clear(&process);
    arena_free(arena);
    return err;
}

/* The log has the reason; who asked learns only that it failed, since the reason may quote a setting. */
static bool refuse(const struct request *r, struct str name, const char *reason, const char *logged)
{
    char line[256];
    log_event(LOG_WARN, "spawn_refused", LOG_STR("upstream", name), LOG_NUM("uid", r->uid),
              LOG_NUM("pid", r->pid), LOG_TEXT("why", logged));
    snprintf(line, sizeof(line), "refused %s\n", reason);
    reply(r, line, NULL);
    return false;
}

/* False: the connection is to be closed. */
static bool serve_start(struct request *r, struct str name)
{
    const struct config *config = r->spawner->config;
    const struct upstream_spec *spec = config_find_upstream(config, name);
    int pipes[PIPES];
    char line[64];
    struct why why;
    if (r->child)
        return refuse(r, name, "a connection starts one process", "a second start on one connection");
    if (!spec || spec->kind != UPSTREAM_STDIO)
        return refuse(r, name, "the spawner's configuration has no such upstream: add it there",
                      "unknown name");
    if (start(r, spec, pipes, &why) != OK)
        return refuse(r, name, "the spawner could not start it: its log (spawn_refused) has the reason",
                      why.text);
    timer_clear(&r->deadline);
    snprintf(line, sizeof(line), "started %d\n", (int)child_pid(r->child));
    bool told = reply(r, line, pipes);
    for (int i = 0; i < PIPES; i++)
        close(pipes[i]);
    log_event(LOG_INFO, "spawned", LOG_STR("upstream", name), LOG_NUM("pid", child_pid(r->child)),
              LOG_NUM("for_uid", r->uid), LOG_NUM("for_pid", r->pid));
    return told;
}

static bool serve_line(struct request *r, struct str line)
{
    if (str_starts(line, "start "))
        return serve_start(r, str_from(line, 6));
    if (str_is(line, "end") && r->child) {
        child_terminate(r->child);
        return true;
    }
    return refuse(r, STR_NONE, "this is no request of the spawner's protocol", "garbage");
}

static void on_readable(void *owner, int fd, bool readable, bool writable)
{
    struct request *r = owner;
    (void)readable, (void)writable;
    ssize_t n = recv(fd, r->line + r->len, sizeof(r->line) - r->len, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    bool good = n > 0;
    r->len += good ? (size_t)n : 0;
    for (char *newline; good && (newline = memchr(r->line, '\n', r->len));) {
        size_t used = (size_t)(newline - r->line) + 1;
        good = serve_line(r, (struct str){r->line, used - 1});
        r->len -= used;
        memmove(r->line, r->line + used, r->len);
    }
    if (good && r->len == sizeof(r->line))
        good = refuse(r, STR_NONE, "the line is too long", "a line that is too long");
    if (!good)
        release(r);
}

static void on_deadline(void *owner)
{
    release(owner);
}

static void on_connection(void *owner, int fd, bool readable, bool writable)
{
    struct spawner *spawner = owner;
    struct ucred credentials = {.uid = (uid_t)-1, .gid = (gid_t)-1};
    socklen_t size = sizeof(credentials);
    struct peer peer;
    (void)readable, (void)writable;
    int connection = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (connection < 0)
        return;
    bool known = getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0;
    if (known)
        peer_init(&peer, credentials.uid, credentials.gid, credentials.pid);
    /* Root, the spawner's own user, and those whom `allow` names. */
    bool allowed = known && (peer.uid == 0 || peer.uid == getuid() ||
                             (spawner->config->allow_count && peer_may_connect(spawner->config, &peer)));
    uint32_t held = 0;
    const struct request *other;
    LIST_FOREACH (other, &spawner->requests, entry)
        held += other->uid == credentials.uid;
    if (!allowed || !share_leaves_room(spawner->connections, held, 1, CONNECTIONS_MAX)) {
        log_event(LOG_WARN, "connection_refused", LOG_NUM("uid", credentials.uid),
                  LOG_NUM("pid", credentials.pid),
                  LOG_TEXT("why", allowed ? "too many connections, or more than this user's share"
                                          : "this user may not ask: see allow"));
        close(connection);
        return;
    }
    struct request *r = calloc(1, sizeof(*r));
    if (!r)
        abort();
    *r = (struct request){
        .spawner = spawner, .fd = connection, .uid = credentials.uid, .pid = credentials.pid};
    LIST_INSERT_HEAD(&spawner->requests, r, entry);
    spawner->connections++;
    r->watched = descriptor_new(spawner->loop, connection, on_readable, r);
    descriptor_watch(r->watched, true, false);
    timer_set(&r->deadline, spawner->loop, REQUEST_MS, on_deadline, r);
}

/* Serves until SIGTERM or SIGINT, then kills what it started. */
static enum err run(const struct config *config, const char *path, struct why *why)
{
    static const struct unix_socket_names names = {"socket", "--socket"};
    const char *hidden[] = {path, config->state ? NULL : "/var/lib/toolgate", "/etc/toolgate",
                            CONFIG_SYSTEM_FOLDER "/toolgate"};
    struct spawner spawner = {.config = config};
    struct unix_socket listener = {.fd = -1};
    bool stopping = false;
    enum err err = systemd_listen_fd(&listener.fd, why);
    if (!err && listener.fd < 0)
        err = unix_socket_listen(path, 0660, CONNECTIONS_MAX, &names, &listener, why);
    if (err)
        return err;
    /* Stop signals as a descriptor, so that none arrives between two turns of the loop. Children start with
     * no signal blocked. */
    sigset_t stop_signals;
    sigemptyset(&stop_signals);
    sigaddset(&stop_signals, SIGTERM);
    sigaddset(&stop_signals, SIGINT);
    sigprocmask(SIG_BLOCK, &stop_signals, NULL);
    int signals = signalfd(-1, &stop_signals, SFD_CLOEXEC | SFD_NONBLOCK);
    spawner.loop = loop_new();
    struct descriptor *stop = descriptor_new(spawner.loop, signals, on_stop, &stopping);
    descriptor_watch(stop, true, false);
    hidden_paths_apply(spawner.loop, config, hidden, sizeof(hidden) / sizeof(*hidden));
    for (size_t i = 0; getuid() == 0 && i < config->upstream_count; i++) /* that names no user runs as root */
        if (config->upstreams[i]->kind == UPSTREAM_STDIO && !config->upstreams[i]->user.len)
            log_event(LOG_WARN, "upstream_as_root", LOG_STR("upstream", config->upstreams[i]->name),
                      LOG_TEXT("fix", "name its user: upstreams.NAME.user"));
    struct descriptor *accepting = descriptor_new(spawner.loop, listener.fd, on_connection, &spawner);
    descriptor_watch(accepting, true, false);
    log_event(LOG_INFO, "spawner_ready", LOG_TEXT("socket", path),
              LOG_NUM("upstreams", config->upstream_count));
    systemd_notify("READY=1");
    while (!stopping)
        loop_turn(spawner.loop, true);
    descriptor_free(accepting);
    descriptor_free(stop);
    close(signals);
    while (!LIST_EMPTY(&spawner.requests))
        release(LIST_FIRST(&spawner.requests)); /* NOLINT(clang-analyzer-unix.Malloc): release removes it */
    unix_socket_close(&listener);
    child_terminate_all(spawner.loop, CHILD_LINGER_MS);
    loop_free(spawner.loop);
    return OK;
}

static void tell(bool checks, struct str warning)
{
    if (checks)
        fprintf(stderr, "warning: " STR_FMT "\n", STR_ARG(warning));
    else
        log_event(LOG_WARN, "configuration_warning", LOG_STR("what", warning));
}

/* The keys that have an effect here: what runs, who may ask, and which files the servers' sandboxes hide. */
static const char *const keys[] = {"upstreams", "allow",  "mcp_config", "state",     "policies", "schemas",
                                   "tools",     "ledger", "metrics",    "decisions", "log",      "traces"};
static const char *const upstream_keys[] = {"command", "args", "env", "cwd",
                                            "sandbox", "user", "url", "headers"};

static void tell_unused(bool checks, const struct config *config, const struct json *table, struct str within,
                        const char *const *used, size_t count)
{
    for (uint32_t i = 0; table->type == JSON_OBJECT && i < table->len; i++)
        if (!str_is_one_of(table->members[i].key, used, count))
            tell(checks, arena_printf(config->arena,
                                      "%s: " STR_FMT STR_FMT " has no effect in the spawner's file: %s",
                                      config->file, STR_ARG(within), STR_ARG(table->members[i].key),
                                      str_is(table->members[i].key, "socket")
                                          ? "name it with --socket"
                                          : "set it in the daemon's configuration"));
}

static void tell_unused_keys(bool checks, const struct config *config)
{
    struct json file;
    struct why why;
    if (lua_config_read(config->file, config->arena, &file, &why) != OK)
        return; /* it has changed since it was loaded */
    tell_unused(checks, config, &file, STR_NONE, keys, sizeof(keys) / sizeof(*keys));
    const struct json *upstreams = json_get_text(&file, "upstreams");
    for (uint32_t i = 0; json_is(upstreams, JSON_OBJECT) && i < upstreams->len; i++)
        tell_unused(checks, config, &upstreams->members[i].value,
                    arena_printf(config->arena, "upstreams." STR_FMT ".", STR_ARG(upstreams->members[i].key)),
                    upstream_keys, sizeof(upstream_keys) / sizeof(*upstream_keys));
}

int lua_spawner(lua_State *L)
{
    const char *file = lua_cli_option(L, "config"), *socket = lua_cli_option(L, "socket");
    struct config_sources sources = {.file = file ? file : DEFAULT_FILE,
                                     .socket = socket ? socket : DEFAULT_SOCKET};
    struct config config = {0};
    struct why why;
    enum err err = check_file(sources.file, &why);
    if (!err)
        err = config_load(&sources, &config, &why);
    for (size_t i = 0; !err && i < config.mcp_configs.count; i++)
        err = check_file(config.mcp_configs.list[i], &why);
    bool checks = lua_cli_flag(L, "check");
    for (size_t i = 0; !err && i < config.warning_count; i++)
        tell(checks, config.warnings[i]);
    if (!err)
        tell_unused_keys(checks, &config);
    for (size_t i = 0; !err && i < config.upstream_count; i++)
        if (config.upstreams[i]->kind != UPSTREAM_STDIO)
            tell(checks,
                 arena_printf(config.arena,
                              STR_FMT ": upstream '" STR_FMT "' has no command: the spawner does not "
                                      "start it; name it in the daemon's configuration",
                              STR_ARG(config.upstreams[i]->from), STR_ARG(config.upstreams[i]->name)));
    if (!err && checks)
        printf("upstreams: %zu\n", config.upstream_count);
    else if (!err)
        err = run(&config, sources.socket, &why);
    if (err)
        term_error("%s", why.text);
    config_free(&config);
    lua_pushinteger(L, err ? CLI_NO : CLI_OK);
    return 1;
}
