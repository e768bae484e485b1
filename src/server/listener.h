/*
 * The listening socket: made or taken over from systemd, a stale file
 * replaced, connections accepted without ever spinning when files run out.
 */
#ifndef TOOLGATE_SERVER_LISTENER_H
#define TOOLGATE_SERVER_LISTENER_H

#include "base/err.h"

#include <stdbool.h>
#include <sys/types.h>

struct event_base;
struct listener;

#define LISTENER_BACKLOG          4096
#define LISTENER_ACCEPTS_PER_TURN 64
#define LISTENER_PAUSE_MS         100 /* no file left even for a refusal: how long nobody is accepted */

struct listener_hooks {
    void (*accepted)(void *owner, int fd); /* non-blocking; the owner's from now on */
    /* Files have run out: this one can only be told so and is closed when the hook returns. */
    void (*no_files)(void *owner, int fd);
};

/* Binds `path` with `mode` unless systemd hands a socket over. `why` says what to mend. */
enum err listener_new(struct event_base *base, const char *path, mode_t mode,
                      const struct listener_hooks *hooks, void *owner, struct listener **out,
                      struct why *why);

/* The folder that a socket at `path` will lie in, where it is yet to be made. */
enum err listener_make_directory(const char *path, struct why *why);

/* Accepts those who knocked during the turn; the hooks fire in here. Called when the turn's other work is
 * done, so that connections that have just ended make room first. NULL is fine. */
void listener_accept(struct listener *listener);

/* Accepts no more; the file goes, if it is ours and not systemd's. Existing connections are untouched. */
void listener_free(struct listener *listener);

bool listener_is_inherited(const struct listener *listener);

/* The path it listens on, for the log; also of an inherited one. */
const char *listener_path(const struct listener *listener);

/* Raises RLIMIT_NOFILE towards what `connections` need; returns how many connections it allows. */
size_t listener_raise_file_limit(size_t connections);

#endif
