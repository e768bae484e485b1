/*
 * A listening Unix socket in the file system. Replaces the file of a crashed daemon, never that of a running
 * one and nothing that is not a socket.
 */
#ifndef TOOLGATE_IO_UNIX_SOCKET_H
#define TOOLGATE_IO_UNIX_SOCKET_H

#include "base/err.h"

#include <sys/types.h>
#include <sys/un.h>

struct unix_socket {
    int fd;
    struct sockaddr_un address;
    dev_t device; /* of the file that was bound: only that one is removed at the end */
    ino_t inode;  /* 0: nothing was bound */
};

/* For the messages: "NAME PATH: …: choose another path (KEY)". */
struct unix_socket_names {
    const char *name, *key;
};

/* Binds `path` with `mode` and listens, non-blocking. Makes the last folder of the path if it does not exist.
 * A failure leaves nothing open, and `why` has the fix. */
enum err unix_socket_listen(const char *path, mode_t mode, int backlog, const struct unix_socket_names *names,
                            struct unix_socket *out, struct why *why);

/* Closes it and removes its file, unless that is another daemon's by now. */
void unix_socket_close(struct unix_socket *socket);

/* Only the last folder: a deeper path that does not exist is probably mistyped. */
enum err unix_socket_make_directory(const char *path, const char *name, struct why *why);

#endif
