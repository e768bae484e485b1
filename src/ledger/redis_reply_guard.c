/* hiredis makes a reply by four functions. Ours ask whether it is wanted, and have hiredis' own make it. */
#include "ledger/redis_reply_guard.h"

#include "base/str.h"

#include <hiredis/async.h>
#include <stdio.h>
#include <string.h>

#if HIREDIS_MAJOR >= 1
typedef size_t item_count;
#else
typedef int item_count;
#endif

static redisReplyObjectFunctions plain, guarded; /* the same for all, set by the first */

static bool is_outermost(const redisReadTask *task)
{
    return !task->parent;
}

static bool is_subscribed(const redisReadTask *task)
{
    const redisAsyncContext *context = task->privdata;
    return context->c.flags & REDIS_SUBSCRIBED;
}

/* Of a subscriber's message the first two items are texts: hiredis takes that for granted. */
static bool fits_message(const redisReadTask *task)
{
    return is_outermost(task) ? task->type == REDIS_REPLY_ARRAY || task->type == REDIS_REPLY_ERROR
                              : task->idx > 1 || task->type == REDIS_REPLY_STRING;
}

static bool is_awaited(const redisReadTask *task)
{
    const redisAsyncContext *context = task->privdata;
    if (is_subscribed(task))
        return fits_message(task);
    return !is_outermost(task) || context->replies.head;
}

/* Nobody here unsubscribes, and what hiredis expects behind that word is not looked at. */
static bool is_known_word(const redisReadTask *task, struct str text)
{
    if (!is_subscribed(task) || is_outermost(task) || task->idx > 0)
        return true;
    return str_is(text, "subscribe") || str_is(text, "message");
}

static void *make_string(const redisReadTask *task, char *text, size_t len)
{
    bool wanted = is_awaited(task) && is_known_word(task, (struct str){text, len});
    return wanted ? plain.createString(task, text, len) : NULL;
}

static void *make_array(const redisReadTask *task, item_count count)
{
    bool is_message = count == 3 || !is_subscribed(task);
    bool fits = count <= (item_count)REDIS_REPLY_GUARD_MAX_ITEMS && is_message;
    return is_awaited(task) && fits ? plain.createArray(task, count) : NULL;
}

static void *make_integer(const redisReadTask *task, long long n)
{
    return is_awaited(task) ? plain.createInteger(task, n) : NULL;
}

static void *make_nil(const redisReadTask *task)
{
    return is_awaited(task) ? plain.createNil(task) : NULL;
}

void redis_reply_guard_begin(struct redisAsyncContext *context)
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

void redis_reply_guard_bound(struct redisAsyncContext *context)
{
    redisReader *reader = context->c.reader;
    if (reader->err || reader->len - reader->pos <= REDIS_REPLY_GUARD_MAX_BYTES)
        return;
    reader->err = REDIS_ERR_OOM;
    snprintf(reader->errstr, sizeof(reader->errstr), "Out of memory");
}

const char *redis_reply_guard_why(const struct redisAsyncContext *context, char *out, unsigned long size)
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
