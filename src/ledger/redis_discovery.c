/*
 * Names go through getaddrinfo_a, which asks in a thread of the C library and
 * is looked after by a timer here. Sentinels are asked one after the other;
 * the one that answered is asked first the next time.
 */
#include "ledger/redis.h"

#include "base/alloc.h"
#include "io/timer.h"

#include <arpa/inet.h>
#include <hiredis/async.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#define LOOK_AGAIN_MS 3u /* while a name is being looked up */
#define WORDS_BYTES   200u
#define WHY_BYTES     300u

/* Outlives a discovery that no longer waits for it: the resolver's thread writes to it. */
struct lookup {
    struct gaicb request;
    struct addrinfo hints;
    char name[REDIS_ADDRESS_HOST_MAX_BYTES + 1];
};

struct redis_discovery {
    struct loop *loop;
    const struct redis_address *address;
    redis_discovery_found *found;
    void *owner;
    struct timer timer;
    struct lookup *lookup; /* NULL: none under way */
    uint32_t waited_ms;
    size_t host, asked; /* the host being tried; how many were */
    redisAsyncContext *sentinel;
    struct redis_place place;
    struct why why;
    char not_let_in[WORDS_BYTES]; /* what the sentinel has against our password; empty: nothing */
};

static void try_host(struct redis_discovery *f);

/* ---- the end --------------------------------------------------------------- */

static void tell(void *owner)
{
    struct redis_discovery *f = owner;
    f->found(f->owner, &f->place, NULL);
}

static void tell_failure(void *owner)
{
    struct redis_discovery *f = owner;
    f->found(f->owner, NULL, &f->why);
}

static void drop_sentinel(struct redis_discovery *f)
{
    redisAsyncContext *context = f->sentinel;
    f->sentinel = NULL;
    if (!context)
        return;
    context->data = NULL;
    redisAsyncFree(context);
}

/* This host did not lead to the goal; the next one may. */
static void next_host(struct redis_discovery *f)
{
    f->host = (f->host + 1) % f->address->host_count;
    if (++f->asked < f->address->host_count)
        try_host(f);
    else
        timer_set(&f->timer, f->loop, 0, tell_failure, f);
}

/* ---- sentinels -------------------------------------------------------------- */

static const struct redis_address_host *host_of(const struct redis_discovery *f)
{
    return &f->address->hosts[f->host];
}

static void sentinel_failed(struct redis_discovery *f, const char *how)
{
    err_set(&f->why, ERR_UNAVAILABLE, "sentinel " STR_FMT ":%u %s", STR_ARG(host_of(f)->name),
            host_of(f)->port, how);
    next_host(f);
}

static void sentinel_silent(void *owner)
{
    struct redis_discovery *f = owner;
    drop_sentinel(f);
    sentinel_failed(f, "does not answer");
}

static void on_introduced(redisAsyncContext *context, void *answer, void *unused)
{
    struct redis_discovery *f = context->data;
    const redisReply *reply = answer;
    (void)unused;
    if (f && reply && reply->type == REDIS_REPLY_ERROR)
        redis_redact(reply->str, f->address->sentinel_password, f->not_let_in, sizeof(f->not_let_in));
}

/* A lost connection is told by the other hooks. */
static void on_master(redisAsyncContext *context, void *answer, void *unused)
{
    struct redis_discovery *f = context->data;
    const redisReply *reply = answer;
    char why[WHY_BYTES];
    (void)unused;
    if (!f || !reply)
        return;
    timer_clear(&f->timer);
    bool names = reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
                 reply->element[0]->type == REDIS_REPLY_STRING &&
                 reply->element[1]->type == REDIS_REPLY_STRING;
    unsigned long port = names ? strtoul(reply->element[1]->str, NULL, 10) : 0;
    f->place.port = port <= 65535 ? (uint16_t)port : 0;
    bool known = f->place.port && snprintf(f->place.host, sizeof(f->place.host), "%s",
                                           reply->element[0]->str) < (int)REDIS_DISCOVERY_HOST_BYTES;
    bool is_error = reply->type == REDIS_REPLY_ERROR;
    if (is_error && f->not_let_in[0]) /* one that wants no password answers all the same, and is believed */
        snprintf(why, sizeof(why), "turns down what stands behind ?sentinels= in the address: %s",
                 f->not_let_in);
    else if (is_error && !f->address->sentinel_password.len && strncmp(reply->str, "NOAUTH", 6) == 0)
        snprintf(why, sizeof(why),
                 "wants a password of its own: put ?sentinels=user:password behind the address");
    else if (is_error)
        snprintf(why, sizeof(why), "says: %.200s", reply->str);
    else
        snprintf(why, sizeof(why), "knows no master '" STR_FMT "'", STR_ARG(f->address->master));
    drop_sentinel(f);
    if (known)
        timer_set(&f->timer, f->loop, 0, tell, f);
    else
        sentinel_failed(f, why);
}

/* hiredis is about to free it. */
static void sentinel_lost(const redisAsyncContext *context, int status, const char *how)
{
    struct redis_discovery *f = context->data;
    if (!f || status == REDIS_OK)
        return;
    f->sentinel->data = NULL;
    f->sentinel = NULL;
    timer_clear(&f->timer);
    sentinel_failed(f, how);
}

static void sentinel_gone(const redisAsyncContext *context, int status)
{
    sentinel_lost(context, status, "closed the connection");
}

static void sentinel_connected(const redisAsyncContext *context, int status)
{
    sentinel_lost(context, status, "cannot be reached");
}

static void ask_sentinel(struct redis_discovery *f, const char *host, uint16_t port)
{
    const struct redis_address *a = f->address;
    redisAsyncContext *context = redisAsyncConnect(host, port);
    if (!context || context->err) {
        if (context)
            redisAsyncFree(context);
        sentinel_failed(f, "cannot be reached");
        return;
    }
    f->sentinel = context;
    context->data = f;
    redis_adapter_attach(f->loop, context);
    redisAsyncSetConnectCallback(context, sentinel_connected);
    redisAsyncSetDisconnectCallback(context, sentinel_gone);
    f->not_let_in[0] = '\0';
    if (a->sentinel_user.len)
        redisAsyncCommand(context, on_introduced, NULL, "AUTH %b %b", a->sentinel_user.at,
                          a->sentinel_user.len, a->sentinel_password.at, a->sentinel_password.len);
    else if (a->sentinel_password.len)
        redisAsyncCommand(context, on_introduced, NULL, "AUTH %b", a->sentinel_password.at,
                          a->sentinel_password.len);
    redisAsyncCommand(context, on_master, NULL, "SENTINEL get-master-addr-by-name %s", a->master.at);
    timer_set(&f->timer, f->loop, REDIS_DISCOVERY_TIMEOUT_MS, sentinel_silent, f);
}

/* ---- names ------------------------------------------------------------------ */

static void have_address(struct redis_discovery *f, const char *host)
{
    if (f->address->kind == REDIS_ADDRESS_SENTINEL) {
        ask_sentinel(f, host, host_of(f)->port);
        return;
    }
    snprintf(f->place.host, sizeof(f->place.host), "%s", host);
    f->place.port = host_of(f)->port;
    timer_set(&f->timer, f->loop, 0, tell, f);
}

static void name_failed(struct redis_discovery *f, const char *how)
{
    err_set(&f->why, ERR_UNAVAILABLE, "the host '" STR_FMT "' is not found: %s", STR_ARG(host_of(f)->name),
            how);
    next_host(f);
}

/* A lookup that can't be called back is left to the resolver: its thread still writes there. */
static void abandon(struct redis_discovery *f)
{
    if (f->lookup && gai_cancel(&f->lookup->request) != EAI_NOTCANCELED) {
        if (f->lookup->request.ar_result)
            freeaddrinfo(f->lookup->request.ar_result);
        free(f->lookup);
    }
    f->lookup = NULL;
}

static void look_again(void *owner)
{
    struct redis_discovery *f = owner;
    int state = gai_error(&f->lookup->request);
    if (state == EAI_INPROGRESS && f->waited_ms < REDIS_DISCOVERY_TIMEOUT_MS) {
        f->waited_ms += LOOK_AGAIN_MS;
        timer_set(&f->timer, f->loop, LOOK_AGAIN_MS, look_again, f);
        return;
    }
    char host[REDIS_DISCOVERY_HOST_BYTES];
    const struct addrinfo *known = f->lookup->request.ar_result;
    if (state == 0 &&
        getnameinfo(known->ai_addr, known->ai_addrlen, host, sizeof(host), NULL, 0, NI_NUMERICHOST) == 0) {
        abandon(f);
        have_address(f, host);
        return;
    }
    abandon(f);
    name_failed(f, state == EAI_INPROGRESS ? "the resolver takes too long" : gai_strerror(state));
}

static void look_up(struct redis_discovery *f, struct str name)
{
    struct lookup *lookup = alloc_zeroed(sizeof(*lookup));
    struct gaicb *list[1] = {&lookup->request};
    memcpy(lookup->name, name.at, name.len);
    lookup->hints.ai_socktype = SOCK_STREAM;
    lookup->request = (struct gaicb){.ar_name = lookup->name, .ar_request = &lookup->hints};
    f->lookup = lookup;
    f->waited_ms = 0;
    if (getaddrinfo_a(GAI_NOWAIT, list, 1, NULL) == 0) {
        timer_set(&f->timer, f->loop, LOOK_AGAIN_MS, look_again, f);
        return;
    }
    f->lookup = NULL;
    free(lookup);
    name_failed(f, "the resolver cannot be asked");
}

static void try_host(struct redis_discovery *f)
{
    struct str name = host_of(f)->name;
    unsigned char address[sizeof(struct in6_addr)];
    if (inet_pton(AF_INET, name.at, address) == 1 || inet_pton(AF_INET6, name.at, address) == 1)
        have_address(f, name.at);
    else
        look_up(f, name);
}

/* ---- from outside ------------------------------------------------------------ */

struct redis_discovery *redis_discovery_start(struct loop *loop, const struct redis_address *address,
                                              redis_discovery_found *found, void *owner)
{
    struct redis_discovery *f = alloc_zeroed(sizeof(*f));
    f->loop = loop;
    f->address = address;
    f->found = found;
    f->owner = owner;
    if (address->kind != REDIS_ADDRESS_UNIX) {
        try_host(f);
        return f;
    }
    snprintf(f->place.host, sizeof(f->place.host), "%s", address->path.at);
    timer_set(&f->timer, f->loop, 0, tell, f);
    return f;
}

void redis_discovery_free(struct redis_discovery *f)
{
    if (!f)
        return;
    timer_clear(&f->timer);
    drop_sentinel(f);
    abandon(f);
    free(f);
}
