/* The daemon's side of the spawner's protocol. A spawner that breaks it ends the child, not the daemon. */
#include "io/spawned_child.h"

#include "base/alloc.h"
#include "io/conn.h"
#include "io/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PIPES 3

struct spawned_child {
    struct loop *loop;
    const struct spawned_child_callbacks *callbacks;
    void *owner;
    struct descriptor *watched;
    int fd;
    int64_t pid;
    int pipes[PIPES];
    size_t pipe_count;
    char line[SPAWNED_LINE_MAX_BYTES];
    size_t len;
};

void spawned_child_kill(struct spawned_child *c)
{
    descriptor_free(c->watched);
    close(c->fd);
    for (size_t i = 0; i < c->pipe_count; i++)
        close(c->pipes[i]);
    free(c);
}

static void end(struct spawned_child *c, int status, const char *why)
{
    c->callbacks->ended(c->owner, status, why);
    spawned_child_kill(c);
}

static void take_pipes(struct spawned_child *c, struct msghdr *message)
{
    for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header; header = CMSG_NXTHDR(message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
            if (c->pipe_count < PIPES)
                c->pipes[c->pipe_count++] = fd;
            else
                close(fd);
        }
    }
}

/* False: `c` is gone. */
static bool take_line(struct spawned_child *c, char *line)
{
    char *end_of_number;
    if (strncmp(line, "started ", 8) == 0 && c->pipe_count == PIPES && !c->pid) {
        c->pid = strtoll(line + 8, &end_of_number, 10);
        c->pipe_count = 0;
        for (int i = 0; i < PIPES; i++)
            (void)fcntl(c->pipes[i], F_SETFL, fcntl(c->pipes[i], F_GETFL) | O_NONBLOCK);
        c->callbacks->started(c->owner, c->pipes[0], c->pipes[1], c->pipes[2]);
        return true;
    }
    if (strncmp(line, "ended ", 6) == 0 && c->pid)
        end(c, (int)strtol(line + 6, &end_of_number, 10), NULL);
    else if (strncmp(line, "refused ", 8) == 0)
        end(c, 0, line + 8);
    else
        end(c, 0, "the spawner sent what is not its protocol: are both of one version?");
    return false;
}

static void on_readable(void *owner, int fd, bool readable, bool writable)
{
    struct spawned_child *c = owner;
    union {
        struct cmsghdr aligned;
        char bytes[CMSG_SPACE(PIPES * sizeof(int))];
    } control;
    struct iovec into = {c->line + c->len, sizeof(c->line) - 1 - c->len};
    struct msghdr message = {
        .msg_iov = &into, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
    (void)readable, (void)writable;
    ssize_t n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0)
        take_pipes(c, &message);
    if (n <= 0 || message.msg_flags & MSG_CTRUNC) {
        end(c, 0, "the spawner closed the connection");
        return;
    }
    c->len += (size_t)n;
    for (char *newline; (newline = memchr(c->line, '\n', c->len));) {
        size_t used = (size_t)(newline - c->line) + 1;
        *newline = '\0';
        if (!take_line(c, c->line))
            return;
        c->len -= used;
        memmove(c->line, c->line + used, c->len);
    }
    if (c->len == sizeof(c->line) - 1)
        end(c, 0, "the spawner sent a line that is too long");
}

enum err spawned_child_start(struct loop *loop, struct str path, struct str name,
                             const struct spawned_child_callbacks *callbacks, void *owner,
                             struct spawned_child **out, struct why *why)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char line[SPAWNED_LINE_MAX_BYTES];
    *out = NULL;
    if (path.len >= sizeof(address.sun_path))
        return err_set(why, ERR_LIMIT, "the path of the spawner's socket is longer than %zu bytes",
                       sizeof(address.sun_path) - 1);
    memcpy(address.sun_path, path.at, path.len);
    int len = snprintf(line, sizeof(line), "start " STR_FMT "\n", STR_ARG(name));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        send(fd, line, (size_t)len, MSG_NOSIGNAL) != len) {
        int error = errno;
        if (fd >= 0)
            close(fd);
        return err_set(
            why, ERR_UNAVAILABLE,
            "the spawner at %s cannot be asked: %s; start it (systemctl start toolgate-spawner.socket)",
            address.sun_path, strerror(error));
    }
    struct spawned_child *c = alloc_zeroed(sizeof(*c));
    *c = (struct spawned_child){.loop = loop, .callbacks = callbacks, .owner = owner, .fd = fd};
    c->watched = descriptor_new(loop, fd, on_readable, c);
    descriptor_watch(c->watched, true, false);
    *out = c;
    return OK;
}

int64_t spawned_child_pid(const struct spawned_child *c)
{
    return c->pid;
}

void spawned_child_terminate(struct spawned_child *c)
{
    (void)send(c->fd, "end\n", 4, MSG_NOSIGNAL | MSG_DONTWAIT);
}
