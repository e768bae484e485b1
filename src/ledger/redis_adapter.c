/* Only a connection that is being made, or that takes no more, is watched for being writable. */
#include "ledger/redis_adapter.h"

#include "io/descriptor.h"
#include "ledger/redis_reply_guard.h"

#include <hiredis/async.h>
#include <stdlib.h>

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
    if (a->context)
        redis_reply_guard_bound(a->context);
    a->busy = false;
    if (!a->context)
        free(a);
}

static void wants_read(void *owner)
{
    (void)owner; /* always */
}

static void wants_no_read(void *owner)
{
    (void)owner; /* what nobody asked for is an error that hiredis is to see */
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
    struct redis_adapter *a = calloc(1, sizeof(*a));
    if (!a)
        abort();
    a->context = context;
    a->descriptor = descriptor_new(loop, context->c.fd, on_ready, a);
    descriptor_watch(a->descriptor, true, false);
    redis_reply_guard_begin(context);
    context->ev.data = a;
    context->ev.addRead = wants_read;
    context->ev.delRead = wants_no_read;
    context->ev.addWrite = wants_write;
    context->ev.delWrite = wants_no_write;
    context->ev.cleanup = detach;
}
