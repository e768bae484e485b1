/*
 * What hiredis may hear: a reply that nobody asked for trips an assertion in
 * it, and a list of as many items as a peer likes is allocated at once. Who
 * says such things is no Redis, or has lost count; the connection ends, by the
 * way that any broken one does.
 */
#ifndef TOOLGATE_LEDGER_REDIS_REPLY_GUARD_H
#define TOOLGATE_LEDGER_REDIS_REPLY_GUARD_H

struct redisAsyncContext;

#define REDIS_REPLY_GUARD_MAX_BYTES 16777216u /* of one reply that has not ended */
#define REDIS_REPLY_GUARD_MAX_ITEMS 16384u    /* of a list: more than the fields of any session's details */

/* Before the first command. The reader's privdata is taken. */
void redis_reply_guard_begin(struct redisAsyncContext *context);

/* After each read: too long a reply ends the connection with what comes next. */
void redis_reply_guard_bound(struct redisAsyncContext *context);

/* Why it ended, in words for an operator; valid as long as the context. */
const char *redis_reply_guard_why(const struct redisAsyncContext *context, char *out, unsigned long size);

#endif
