/*
 * The listening Unix socket of the clients: bound, or handed over by systemd. It
 * does not spin if no file descriptor is left.
 */
#ifndef TOOLGATE_SERVER_LISTENER_H
#define TOOLGATE_SERVER_LISTENER_H

#include "base/err.h"

#include <stdbool.h>
#include <sys/types.h>

struct listener;
struct loop;

#define LISTENER_BACKLOG          4096
#define LISTENER_ACCEPTS_PER_TURN 64
#define LISTENER_PAUSE_MS         100 /* without accepting, if not even a refusal is possible */

struct listener_hooks {
    void (*accepted)(void *owner, int fd); /* a non-blocking connection, which the owner closes */
    /* No file descriptor is left: send an error at most; `fd` is closed when this returns. */
    void (*no_files)(void *owner, int fd);
};

/* Binds `path` with `mode`, unless systemd hands over a socket. `why` has the fix. */
enum err listener_new(struct loop *loop, const char *path, mode_t mode, const struct listener_hooks *hooks,
                      void *owner, struct listener **out, struct why *why);

/* Accepts the connections that arrived during the turn; the hooks fire inside. Call it at the end of a turn,
 * so that connections that ended in it make room. NULL is allowed. */
void listener_accept(struct listener *listener);

/* Before listener_free of a daemon that stops: accepts every connection that waits, as no other process can.
 * Those that wait at systemd's socket are left to the next daemon. */
void listener_accept_last(struct listener *listener);

/* Removes the socket's file, unless it is systemd's or another daemon's. Connections stay open. */
void listener_free(struct listener *listener);

bool listener_is_inherited(const struct listener *listener);

/* The path it listens on, also of a socket from systemd. */
const char *listener_path(const struct listener *listener);

struct file_shares {
    size_t connections; /* of clients */
    size_t calls;       /* for pipes and sockets of calls under way */
};

/* Raises RLIMIT_NOFILE for this many; returns how many it allows. Calls get at most a quarter of what there
 * is, so that they cannot keep clients out. */
struct file_shares listener_raise_file_limit(struct file_shares wanted);

#endif
