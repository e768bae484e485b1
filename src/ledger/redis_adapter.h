/*
 * A connection of hiredis on our loop, and what it may hear: a reply that nobody asked for trips an assertion
 * in hiredis, and a list of as many items as a peer likes is allocated at once. A peer that sends such things
 * is no Redis, or has lost count; the connection ends, by the way that any broken one does.
 */
#ifndef TOOLGATE_LEDGER_REDIS_ADAPTER_H
#define TOOLGATE_LEDGER_REDIS_ADAPTER_H

struct loop;
struct redisAsyncContext;

#define REDIS_REPLY_MAX_BYTES 16777216u /* of one reply that has not ended */
#define REDIS_REPLY_MAX_ITEMS 16384u    /* of a list: more than the fields of any session's details */

/* Before the first command; until the context is freed. The reader's privdata is taken. */
void redis_adapter_attach(struct loop *loop, struct redisAsyncContext *context);

/* Why it ended, in words for an operator; valid as long as the context. */
const char *redis_adapter_why(const struct redisAsyncContext *context, char *out, unsigned long size);

#endif
