/*
 * Asks first, then subscribes at the sentinel that answered, and asks again
 * whenever that one is lost: what was said in between is not missed.
 */
#include "ledger/sentinel_subscription.h"

#include "io/timer.h"
#include "ledger/redis_adapter.h"

#include <hiredis/async.h>
#include <stdlib.h>

struct sentinel_subscription {
    struct loop *loop;
    const struct redis_address *address;
    void (*moved)(void *owner);
    void *owner;
    struct redis_place master;
    struct redis_discovery *discovery; /* NULL: none is under way */
    redisAsyncContext *sentinel;
    struct timer again;
};

static void drop(struct sentinel_subscription *w)
{
    redisAsyncContext *context = w->sentinel;
    w->sentinel = NULL;
    if (!context)
        return;
    context->data = NULL;
    redisAsyncFree(context);
}

static void ask(void *owner);

static void again(struct sentinel_subscription *w)
{
    timer_set(&w->again, w->loop, SENTINEL_RETRY_MS, ask, w);
}

static void tell(struct sentinel_subscription *w)
{
    sentinel_subscription_stop(w);
    w->moved(w->owner);
}

/* hiredis is about to free it. */
static void lost(struct sentinel_subscription *w)
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
    struct sentinel_subscription *w = context->data;
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

static void subscribe(struct sentinel_subscription *w, const struct redis_place *sentinel)
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
    redis_adapter_attach(w->loop, context);
    redisAsyncSetConnectCallback(context, on_connected);
    redisAsyncSetDisconnectCallback(context, on_gone);
    if (!redis_discovery_introduce(w->address, context, on_introduced))
        listen_to(context);
}

static bool same_place(const struct redis_place *a, const struct redis_place *b)
{
    return a->port == b->port && strcmp(a->host, b->host) == 0;
}

static void found(void *owner, const struct redis_place *place, const struct why *why)
{
    struct sentinel_subscription *w = owner;
    (void)why;
    if (!place)
        again(w);
    else if (!same_place(place, &w->master))
        tell(w);
    else
        subscribe(w, redis_discovery_sentinel(w->discovery));
}

static void ask(void *owner)
{
    struct sentinel_subscription *w = owner;
    redis_discovery_free(w->discovery);
    w->discovery = redis_discovery_new(w->loop, w->address, found, w);
    redis_discovery_start(w->discovery);
}

struct sentinel_subscription *sentinel_subscription_new(struct loop *loop,
                                                        const struct redis_address *address,
                                                        void (*moved)(void *owner), void *owner)
{
    struct sentinel_subscription *w = calloc(1, sizeof(*w));
    if (!w)
        abort();
    w->loop = loop;
    w->address = address;
    w->moved = moved;
    w->owner = owner;
    return w;
}

void sentinel_subscription_start(struct sentinel_subscription *w, const struct redis_place *master)
{
    sentinel_subscription_stop(w);
    w->master = *master;
    timer_set(&w->again, w->loop, 0, ask, w);
}

/* A discovery may be the one that is telling: it is freed with the next question. */
void sentinel_subscription_stop(struct sentinel_subscription *w)
{
    timer_clear(&w->again);
    if (w->discovery)
        redis_discovery_stop(w->discovery);
    drop(w);
}

void sentinel_subscription_free(struct sentinel_subscription *w)
{
    if (!w)
        return;
    sentinel_subscription_stop(w);
    redis_discovery_free(w->discovery);
    free(w);
}
