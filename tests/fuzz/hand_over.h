/* A spawner's answer to the client of src/io/spawned_child.c: a server runs, and these are its pipes. */
#ifndef TOOLGATE_TESTS_HAND_OVER_H
#define TOOLGATE_TESTS_HAND_OVER_H

#include "require.h"

#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define PIPES 3

static bool hand_over(int connection, const int pipes[PIPES])
{
    union {
        struct cmsghdr aligned;
        char bytes[CMSG_SPACE(PIPES * sizeof(int))];
    } control = {0};
    char line[] = "started 7\n";
    struct iovec from = {line, sizeof(line) - 1};
    struct msghdr message = {
        .msg_iov = &from, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(PIPES * sizeof(int));
    memcpy(CMSG_DATA(header), pipes, PIPES * sizeof(int));
    return sendmsg(connection, &message, MSG_NOSIGNAL) > 0;
}

#endif
