/* Records as datagrams to journald: entries with the record as MESSAGE. */
#include "io/record_target.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define DATAGRAM_WAIT_MS 200u /* for a receiver that does not read */
#define DATAGRAM_BUFFER_BYTES                                                                                \
    1048576 /* as far as net.core.wmem_max allows: the largest record has to fit                             \
             */

static enum err open_socket(struct record_target *t, struct why *why)
{
    const char *path = t->options->path;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval wait = {.tv_usec = DATAGRAM_WAIT_MS * 1000};
    int size = DATAGRAM_BUFFER_BYTES;
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0) {
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
        t->fd = fd;
        return OK;
    }
    int error = errno;
    if (fd >= 0)
        close(fd);
    const char *fix = error == ENOENT         ? "nothing is there: start the receiver"
                      : error == ECONNREFUSED ? "nobody receives there: start the receiver"
                      : error == EPROTOTYPE   ? "it is no datagram socket"
                      : error == EACCES       ? "let the daemon's user write to it"
                                              : "choose another socket";
    return err_set(why, ERR_IO, "%s: cannot be reached: %s (%s)", path, strerror(error), fix);
}

/* journald's native protocol: a field a line. A record has no newline, so it needs no length before it. */
static ssize_t send_record(const struct record_target *t, struct str record)
{
    char before[128];
    struct iovec parts[3] = {{before, 0}, {(char *)record.at, record.len}, {(char *)"\n", 1}};
    parts[0].iov_len = (size_t)snprintf(before, sizeof(before),
                                        "PRIORITY=6\nSYSLOG_IDENTIFIER=%s\nMESSAGE=", t->options->identifier);
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 3};
    ssize_t n;
    do
        n = sendmsg(t->fd, &message, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n;
}

static size_t write_records(struct record_target *t, struct str lines, uint64_t *lost, struct why *why)
{
    size_t done = 0;
    while (done < lines.len) {
        const char *at = lines.at + done, *end = memchr(at, '\n', lines.len - done);
        struct str record = {at, (size_t)(end - at)};
        bool sent = send_record(t, record) >= 0;
        if (!sent && errno != EMSGSIZE) {
            bool unread = errno == EAGAIN || errno == ENOBUFS;
            err_set(why, ERR_IO, "%s: %s", t->options->path,
                    unread ? "its receiver does not read (restart the receiver)" : strerror(errno));
            if (!unread)
                record_target_close(t); /* the receiver has ended: the next one has to be connected to */
            return done;
        }
        *lost += !sent;
        done += record.len + 1;
    }
    return done;
}

const struct record_target_ops record_journal_ops = {open_socket, write_records};
