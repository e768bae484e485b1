/*
 * Who is served next. Work that takes long ends its turn after TURN_NS, and
 * users take turns before their connections do: a user with a thousand
 * connections gets no more time than one with a single connection.
 *
 *   turn_ask ─▶ prompt: its last turn was short ─▶ first, as long as the long ones took ─▶ run
 *            └▶ long: its last turn used TURN_NS ─▶ one after the other ──────────────────▶ run
 */
#ifndef TOOLGATE_IO_TURN_H
#define TOOLGATE_IO_TURN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#define TURN_NS     1000000 /* of work, then others have their turn; the last piece of work may take longer */
#define TURN_NOBODY ((uid_t)-1) /* of peers that the kernel does not name, and of child processes */

enum turn_class { TURN_PROMPT, TURN_LONG, TURN_CLASSES };

struct turn;
TAILQ_HEAD(turn_list, turn);

struct turn_user {
    LIST_ENTRY(turn_user) link;
    TAILQ_ENTRY(turn_user) next[TURN_CLASSES];
    struct turn_list waiting[TURN_CLASSES];
    uid_t uid;
    size_t turns; /* that belong to it, waiting or not */
};
TAILQ_HEAD(turn_users, turn_user);

struct turn_queue {
    LIST_HEAD(, turn_user) users;
    struct turn_users ready[TURN_CLASSES]; /* those with something that waits */
    struct turn *running;                  /* NULL: none, or its owner has ended it */
    int64_t began_ns;                      /* the turn that runs */
    int64_t owed_ns;                       /* what the long ones have used before the prompt ones */
    bool again;                            /* the one that runs has asked for another */
};

/* Of a connection or other work in turns; embedded in its owner. */
struct turn {
    TAILQ_ENTRY(turn) next;
    struct turn_queue *queue;
    struct turn_user *user;
    void (*run)(void *owner); /* may call turn_ask and turn_leave of its own turn */
    void *owner;
    enum turn_class class;
    bool waits;
};

void turn_queue_init(struct turn_queue *queue);
bool turn_queue_is_empty(const struct turn_queue *queue);

/* Runs turns for TURN_NS, at least one if any waits; a single one may take longer. */
void turn_queue_run(struct turn_queue *queue);

/* Whether the turn that runs has used its time. */
bool turn_is_over(const struct turn_queue *queue);

/* `begins` TURN_LONG: for owners that exist for one request, as those of HTTP do, so that many do not go
 * first. */
void turn_join(struct turn *turn, struct turn_queue *queue, uid_t uid, enum turn_class begins,
               void (*run)(void *owner), void *owner);
void turn_leave(struct turn *turn);
void turn_ask(struct turn *turn); /* once until it runs; inside its own turn: for another one */

/* Whose turn a socket's is: its peer, by the kernel, or TURN_NOBODY. */
uid_t turn_peer(int fd);

#endif
