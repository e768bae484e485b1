/*
 * What an event loop between a client and a server costs when it does nothing
 * at all: two descriptors, epoll, every byte handed on unread. A gateway is
 * compared with this, and with the two being connected directly.
 *   relay SOCKET COMMAND [ARGUMENT…]     serves one client, then ends
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define BUFFER_BYTES (1u << 20)

static int accept_one(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    if (bind(listener, (struct sockaddr *)&address, sizeof(address)) != 0 || listen(listener, 1) != 0)
        return -1;
    return accept4(listener, NULL, NULL, SOCK_CLOEXEC);
}

/* Returns our end of its standard input and output, one socket, as toolgate starts a server. */
static int start(char **argv)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return -1;
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(ends[1], STDIN_FILENO);
        dup2(ends[1], STDOUT_FILENO);
        dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
        execvp(argv[0], argv);
        _exit(127);
    }
    close(ends[1]);
    return ends[0];
}

static int hand_on(int from, int to)
{
    static char buffer[BUFFER_BYTES];
    ssize_t count = recv(from, buffer, sizeof(buffer), 0);
    for (ssize_t at = 0, sent; at < count; at += sent)
        if ((sent = send(to, buffer + at, (size_t)(count - at), MSG_NOSIGNAL)) <= 0)
            return 0;
    return count > 0;
}

static void watch(int poller, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: relay SOCKET COMMAND [ARGUMENT...]\n");
        return 2;
    }
    int server = start(argv + 2), client = accept_one(argv[1]), poller = epoll_create1(EPOLL_CLOEXEC);
    if (server < 0 || client < 0 || poller < 0) {
        perror("relay");
        return 1;
    }
    watch(poller, server);
    watch(poller, client);
    for (;;) {
        struct epoll_event events[2];
        int count = epoll_wait(poller, events, 2, -1);
        for (int i = 0; i < count; i++)
            if (!hand_on(events[i].data.fd, events[i].data.fd == client ? server : client))
                return 0;
    }
}
