/* Two lists of users, each with the turns that wait: those that were short, and those that used their time.
 */
#include "io/turn.h"

#include "base/alloc.h"
#include "base/clock.h"

#include <stdlib.h>
#include <sys/socket.h>

void turn_queue_init(struct turn_queue *queue)
{
    *queue = (struct turn_queue){.running = NULL};
    LIST_INIT(&queue->users);
    for (int class = 0; class < TURN_CLASSES; class ++)
        TAILQ_INIT(&queue->ready[class]);
}

bool turn_queue_is_empty(const struct turn_queue *queue)
{
    return TAILQ_EMPTY(&queue->ready[TURN_PROMPT]) && TAILQ_EMPTY(&queue->ready[TURN_LONG]);
}

bool turn_is_over(const struct turn_queue *queue)
{
    return clock_mono_ns() - queue->began_ns >= TURN_NS;
}

void turn_join(struct turn *turn, struct turn_queue *queue, uid_t uid, enum turn_class begins,
               void (*run)(void *owner), void *owner)
{
    struct turn_user *user;
    LIST_FOREACH (user, &queue->users, link)
        if (user->uid == uid)
            break;
    if (!user) {
        user = alloc_zeroed(sizeof(*user));
        user->uid = uid;
        for (int class = 0; class < TURN_CLASSES; class ++)
            TAILQ_INIT(&user->waiting[class]);
        LIST_INSERT_HEAD(&queue->users, user, link);
    }
    user->turns++;
    *turn = (struct turn){.queue = queue, .user = user, .run = run, .owner = owner, .class = begins};
}

/* The user goes to the end of the users: its next connection waits for all of them. */
static void stop_waiting(struct turn *turn)
{
    struct turn_user *user = turn->user;
    struct turn_list *waiting = &user->waiting[turn->class];
    struct turn_users *ready = &turn->queue->ready[turn->class];
    TAILQ_REMOVE(waiting, turn, next);
    turn->waits = false;
    TAILQ_REMOVE(ready, user, next[turn->class]);
    if (!TAILQ_EMPTY(waiting))
        TAILQ_INSERT_TAIL(ready, user, next[turn->class]);
}

void turn_leave(struct turn *turn)
{
    if (turn->queue->running == turn)
        turn->queue->running = NULL;
    if (turn->waits)
        stop_waiting(turn);
    if (--turn->user->turns)
        return;
    LIST_REMOVE(turn->user, link);
    free(turn->user);
}

void turn_ask(struct turn *turn)
{
    struct turn_user *user = turn->user;
    if (turn->queue->running == turn) {
        turn->queue->again = true;
        return;
    }
    if (turn->waits)
        return;
    if (TAILQ_EMPTY(&user->waiting[turn->class]))
        TAILQ_INSERT_TAIL(&turn->queue->ready[turn->class], user, next[turn->class]);
    TAILQ_INSERT_TAIL(&user->waiting[turn->class], turn, next);
    turn->waits = true;
}

/* Runs one turn and returns when it was over. The prompt ones go first, but get no more time than the long
 * ones: neither kind keeps the other waiting. */
static int64_t run_next(struct turn_queue *queue)
{
    bool prompt_waits = !TAILQ_EMPTY(&queue->ready[TURN_PROMPT]);
    if (!prompt_waits)
        queue->owed_ns = 0;
    enum turn_class class = prompt_waits && (TAILQ_EMPTY(&queue->ready[TURN_LONG]) || queue->owed_ns > 0)
                                ? TURN_PROMPT
                                : TURN_LONG;
    struct turn *turn = TAILQ_FIRST(&TAILQ_FIRST(&queue->ready[class])->waiting[class]);
    stop_waiting(turn);
    queue->running = turn;
    queue->again = false;
    queue->began_ns = clock_mono_ns();
    turn->run(turn->owner);
    int64_t now_ns = clock_mono_ns(), used_ns = now_ns - queue->began_ns;
    queue->owed_ns += class == TURN_LONG ? used_ns : -used_ns;
    turn = queue->running;
    queue->running = NULL;
    if (turn) {
        turn->class = used_ns >= TURN_NS ? TURN_LONG : TURN_PROMPT;
        if (queue->again)
            turn_ask(turn);
    }
    return now_ns;
}

void turn_queue_run(struct turn_queue *queue)
{
    int64_t until_ns = clock_mono_ns() + TURN_NS;
    while (!turn_queue_is_empty(queue) && run_next(queue) < until_ns)
        continue;
}

uid_t turn_peer(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? peer.uid : TURN_NOBODY;
}
