/*
 * hiredis on our loop. Its own libevent adapter costs four epoll_ctl a
 * command; here reading is asked for once, and what was appended during a
 * turn of the loop is sent at its end, in one write.
 */
#ifndef TOOLGATE_LEDGER_REDIS_ADAPTER_H
#define TOOLGATE_LEDGER_REDIS_ADAPTER_H

struct loop;
struct redisAsyncContext;

/* To be called before anything is sent. Detaches by itself when the context is freed. */
void redis_adapter_attach(struct loop *loop, struct redisAsyncContext *context);

#endif
