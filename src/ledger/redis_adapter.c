/* Only a connection that is being made, or that takes no more, is watched for being writable. */
#include "ledger/redis.h"

#include "base/alloc.h"
#include "io/descriptor.h"

#include <hiredis/async.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- replies: hiredis makes them by four functions. Ours ask whether one is wanted, and have those make it
 */

#if HIREDIS_MAJOR >= 1
typedef size_t item_count;
#else
typedef int item_count;
#endif

static redisReplyObjectFunctions plain, guarded; /* the same for all, set by the first */

static bool is_awaited(const redisReadTask *task)
{
    const redisAsyncContext *context = task->privdata;
    return task->parent || context->replies.head;
}

static void *make_string(const redisReadTask *task, char *text, size_t len)
{
    return is_awaited(task) ? plain.createString(task, text, len) : NULL;
}

static void *make_array(const redisReadTask *task, item_count count)
{
    bool fits = count <= (item_count)REDIS_REPLY_MAX_ITEMS;
    return fits && is_awaited(task) ? plain.createArray(task, count) : NULL;
}

static void *make_integer(const redisReadTask *task, long long n)
{
    return is_awaited(task) ? plain.createInteger(task, n) : NULL;
}

static void *make_nil(const redisReadTask *task)
{
    return is_awaited(task) ? plain.createNil(task) : NULL;
}

static void guard(redisAsyncContext *context)
{
    redisReader *reader = context->c.reader;
    if (!plain.createString) {
        plain = guarded = *reader->fn;
        guarded.createString = make_string;
        guarded.createArray = make_array;
        guarded.createInteger = make_integer;
        guarded.createNil = make_nil;
    }
    reader->fn = &guarded;
    reader->privdata = context;
}

const char *redis_adapter_why(const struct redisAsyncContext *context, char *out, unsigned long size)
{
    const char *said = context->errstr && context->errstr[0] ? context->errstr : "it closed the connection";
    if (context->err == REDIS_ERR_PROTOCOL)
        snprintf(out, size, "what answers there is no Redis: %s", said);
    else if (context->err == REDIS_ERR_OOM)
        snprintf(out, size,
                 "what answers there is no Redis: it says what nobody asked for, or too much of it");
    else
        snprintf(out, size, "%s", said);
    return out;
}

/* ---- the loop ---- */

struct redis_adapter {
    redisAsyncContext *context; /* NULL: it was freed during the turn that is under way */
    struct descriptor *descriptor;
    bool busy;    /* in that turn */
    bool sending; /* hiredis is writing: what it asks for now is to be told when it can go on */
};

static void on_ready(void *owner, int fd, bool readable, bool writable)
{
    struct redis_adapter *a = owner;
    (void)fd;
    a->busy = true;
    if (writable) {
        a->sending = true;
        redisAsyncHandleWrite(a->context);
        a->sending = false;
    }
    if (readable && a->context)
        redisAsyncHandleRead(a->context);
    redisReader *reader = a->context ? a->context->c.reader : NULL;
    if (reader && !reader->err && reader->len - reader->pos > REDIS_REPLY_MAX_BYTES) {
        reader->err = REDIS_ERR_OOM; /* ends the connection with what comes next */
        snprintf(reader->errstr, sizeof(reader->errstr), "Out of memory");
    }
    a->busy = false;
    if (!a->context)
        free(a);
}

/* It is always watched for reading: what nobody asked for is an error that hiredis is to see. */
static void wants_nothing(void *owner)
{
    (void)owner;
}

static void wants_write(void *owner)
{
    struct redis_adapter *a = owner;
    bool connected = a->context->c.flags & REDIS_CONNECTED;
    if (connected && !a->sending)
        descriptor_writable_soon(a->descriptor);
    else
        descriptor_watch(a->descriptor, true, true);
}

static void wants_no_write(void *owner)
{
    struct redis_adapter *a = owner;
    descriptor_watch(a->descriptor, true, false);
}

static void detach(void *owner)
{
    struct redis_adapter *a = owner;
    descriptor_free(a->descriptor);
    a->context->ev.data = NULL;
    a->context->ev.cleanup = NULL;
    a->context = NULL;
    if (!a->busy)
        free(a);
}

void redis_adapter_attach(struct loop *loop, struct redisAsyncContext *context)
{
    struct redis_adapter *a = alloc_zeroed(sizeof(*a));
    a->context = context;
    a->descriptor = descriptor_new(loop, context->c.fd, on_ready, a);
    descriptor_watch(a->descriptor, true, false);
    guard(context);
    context->ev.data = a;
    context->ev.addRead = wants_nothing;
    context->ev.delRead = wants_nothing;
    context->ev.addWrite = wants_write;
    context->ev.delWrite = wants_no_write;
    context->ev.cleanup = detach;
}
