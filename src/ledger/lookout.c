/*
 * Asks first, then subscribes at the sentinel that answered, and asks again
 * whenever that one is lost: what was said in between is not missed.
 */
#include "ledger/lookout.h"

#include "io/timer.h"
#include "ledger/attach.h"

#include <hiredis/async.h>
#include <stdlib.h>

struct lookout {
    struct loop *loop;
    const struct address *address;
    void (*moved)(void *owner);
    void *owner;
    struct place master;
    struct finder *finder; /* NULL: none is under way */
    redisAsyncContext *sentinel;
    struct timer again;
};

static void drop(struct lookout *w)
{
    redisAsyncContext *context = w->sentinel;
    w->sentinel = NULL;
    if (!context)
        return;
    context->data = NULL;
    redisAsyncFree(context);
}

static void ask(void *owner);

static void again(struct lookout *w)
{
    timer_set(&w->again, w->loop, LOOKOUT_AGAIN_MS, ask, w);
}

static void tell(struct lookout *w)
{
    lookout_stop(w);
    w->moved(w->owner);
}

/* hiredis is about to free it. */
static void lost(struct lookout *w)
{
    w->sentinel->data = NULL;
    w->sentinel = NULL;
    again(w);
}

static void on_connected(const redisAsyncContext *context, int status)
{
    if (context->data && status != REDIS_OK)
        lost(context->data);
}

static void on_gone(const redisAsyncContext *context, int status)
{
    (void)status;
    if (context->data)
        lost(context->data);
}

/* "NAME OLD-HOST OLD-PORT NEW-HOST NEW-PORT" */
static void on_message(redisAsyncContext *context, void *answer, void *unused)
{
    struct lookout *w = context->data;
    const redisReply *reply = answer;
    (void)unused;
    if (!w || !reply || reply->type != REDIS_REPLY_ARRAY || reply->elements != 3 ||
        reply->element[2]->type != REDIS_REPLY_STRING)
        return;
    struct str said = {reply->element[2]->str, reply->element[2]->len};
    struct str name = w->address->master;
    if (str_starts(said, name.at) && said.len > name.len && said.at[name.len] == ' ')
        tell(w);
}

static void listen_to(redisAsyncContext *context)
{
    redisAsyncCommand(context, on_message, NULL, "SUBSCRIBE +switch-master");
}

/* Only now: to hiredis every reply after a SUBSCRIBE is of what was subscribed to. Where we were turned down,
 * so is that. */
static void on_introduced(redisAsyncContext *context, void *answer, void *unused)
{
    (void)unused;
    if (context->data && answer)
        listen_to(context);
}

static void subscribe(struct lookout *w, const struct place *sentinel)
{
    redisAsyncContext *context = redisAsyncConnect(sentinel->host, sentinel->port);
    if (!context || context->err) {
        if (context)
            redisAsyncFree(context);
        again(w);
        return;
    }
    w->sentinel = context;
    context->data = w;
    attach(w->loop, context);
    redisAsyncSetConnectCallback(context, on_connected);
    redisAsyncSetDisconnectCallback(context, on_gone);
    if (!finder_introduce(w->address, context, on_introduced))
        listen_to(context);
}

static bool same_place(const struct place *a, const struct place *b)
{
    return a->port == b->port && strcmp(a->host, b->host) == 0;
}

static void found(void *owner, const struct place *place, const struct why *why)
{
    struct lookout *w = owner;
    (void)why;
    if (!place)
        again(w);
    else if (!same_place(place, &w->master))
        tell(w);
    else
        subscribe(w, finder_sentinel(w->finder));
}

static void ask(void *owner)
{
    struct lookout *w = owner;
    finder_free(w->finder);
    w->finder = finder_new(w->loop, w->address, found, w);
    finder_start(w->finder);
}

struct lookout *lookout_new(struct loop *loop, const struct address *address, void (*moved)(void *owner),
                            void *owner)
{
    struct lookout *w = calloc(1, sizeof(*w));
    if (!w)
        abort();
    w->loop = loop;
    w->address = address;
    w->moved = moved;
    w->owner = owner;
    return w;
}

void lookout_start(struct lookout *w, const struct place *master)
{
    lookout_stop(w);
    w->master = *master;
    timer_set(&w->again, w->loop, 0, ask, w);
}

/* A finder may be the one that is telling: it is freed with the next question. */
void lookout_stop(struct lookout *w)
{
    timer_clear(&w->again);
    if (w->finder)
        finder_stop(w->finder);
    drop(w);
}

void lookout_free(struct lookout *w)
{
    if (!w)
        return;
    lookout_stop(w);
    finder_free(w->finder);
    free(w);
}
