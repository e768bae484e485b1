/*
 * Replies come in the order of commands, so what is under way is a queue, and
 * only its head can be the first to be late. hiredis keeps callbacks of its
 * own; once a connection is given up they find no node.
 */
#include "ledger/node.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "io/timer.h"
#include "ledger/attach.h"
#include "ledger/finder.h"
#include "ledger/hearing.h"
#include "ledger/lookout.h"
#include "ledger/mend.h"

#include <errno.h>
#include <fcntl.h>
#include <hiredis/async.h>
#include <hiredis/sds.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PASSWORD_MAX_BYTES 1024u
#define WHY_BYTES          512u

struct queue {
    struct redis_job *head, *tail;
};

struct node {
    struct node_common *common;
    const struct address *address;
    struct finder *finder;
    redisAsyncContext *context; /* NULL: off or finding */
    enum node_state state;
    bool keeps;
    struct greeting greeting;
    char password[PASSWORD_MAX_BYTES];
    struct queue sent, waiting;
    struct lookout *lookout; /* NULL: no sentinel knows better than we do */
    struct place place;      /* where it is connected to */
    struct timer deadline;   /* of the oldest job */
    struct timer pause;      /* off: until the next attempt; finding, greeting: until it is given up */
    uint32_t failures;       /* in a row */
    char leaving_for[WHY_BYTES];
};

static void connect_to(void *owner, const struct place *place, const struct why *why);

/* ---- queues ----------------------------------------------------------------- */

static void push(struct queue *queue, struct redis_job *job)
{
    job->next = NULL;
    if (queue->tail)
        queue->tail->next = job;
    else
        queue->head = job;
    queue->tail = job;
}

static struct redis_job *pop(struct queue *queue)
{
    struct redis_job *job = queue->head;
    if (job) {
        queue->head = job->next;
        queue->tail = queue->head ? queue->tail : NULL;
        job->next = NULL;
    }
    return job;
}

/* ---- giving up --------------------------------------------------------------- */

static void pause_is_over(void *owner)
{
    struct node *n = owner;
    if (n->keeps)
        node_wake(n);
}

/* From half the pause to one and a half: a fleet must not come back all at once. */
static uint32_t pause_ms(const struct node *n)
{
    uint32_t doublings = n->failures > 8 ? 8 : n->failures ? n->failures - 1 : 0;
    uint32_t ms = REDIS_RETRY_FIRST_MS << doublings;
    if (ms > REDIS_RETRY_LAST_MS)
        ms = REDIS_RETRY_LAST_MS;
    return ms / 2 + (uint32_t)(hash_random() % ms);
}

static void begin_pause(struct node *n)
{
    uint32_t ms = pause_ms(n);
    log_event(LOG_DEBUG, "redis_reconnect_delayed", LOG_NUM("failures", n->failures), LOG_NUM("ms", ms));
    timer_set(&n->pause, n->common->options->loop, ms, pause_is_over, n);
}

static void fail_all(struct node *n, struct queue queue, bool sent)
{
    struct redis_job *job;
    while ((job = pop(&queue)))
        n->common->lost(n->common->owner, job, sent);
}

/* `freed`: hiredis is about to free the connection itself. */
static void give_up(struct node *n, const char *why, bool freed)
{
    redisAsyncContext *context = n->context;
    struct queue sent = n->sent, waiting = n->waiting;
    char text[WHY_BYTES];
    mend_add(why, text, sizeof(text));
    n->context = NULL;
    n->sent = n->waiting = (struct queue){NULL, NULL};
    n->state = NODE_OFF;
    n->failures++;
    timer_clear(&n->deadline);
    if (n->lookout)
        lookout_stop(n->lookout);
    if (context)
        context->data = NULL;
    if (context && !freed)
        redisAsyncFree(context);
    begin_pause(n);
    n->common->away(n->common->owner, n, text);
    fail_all(n, sent, true);
    fail_all(n, waiting, false);
}

static void took_too_long(void *owner)
{
    struct node *n = owner;
    bool connected = n->context && n->context->c.flags & REDIS_CONNECTED;
    char why[WHY_BYTES];
    snprintf(why, sizeof(why),
             connected ? "it takes the connection and did not answer the greeting within %u ms"
                       : "it is not reached within %u ms: does a firewall stand between?",
             REDIS_GREETING_MS);
    give_up(n, why, false);
}

/* ---- deadlines ---------------------------------------------------------------- */

static const struct redis_job *oldest(const struct node *n)
{
    return n->sent.head ? n->sent.head : n->waiting.head;
}

static void watch_deadline(struct node *n);

static void on_deadline(void *owner)
{
    struct node *n = owner;
    const struct redis_job *job = oldest(n);
    char why[96];
    if (!job)
        return;
    int64_t waited_ms = (clock_mono_us() - job->began_us) / 1000;
    if (waited_ms < n->common->options->timeout_ms) {
        watch_deadline(n);
        return;
    }
    snprintf(why, sizeof(why), "it did not answer within %u ms", n->common->options->timeout_ms);
    give_up(n, why, false);
}

/* One timer for all that is under way, set for the oldest. */
static void watch_deadline(struct node *n)
{
    const struct redis_job *job = oldest(n);
    if (timer_is_set(&n->deadline) || !job)
        return;
    int64_t waited_ms = (clock_mono_us() - job->began_us) / 1000;
    int64_t left_ms = n->common->options->timeout_ms - waited_ms;
    timer_set(&n->deadline, n->common->options->loop, left_ms > 0 ? (uint32_t)left_ms : 0, on_deadline, n);
}

/* ---- commands ----------------------------------------------------------------- */

static void on_reply(redisAsyncContext *context, void *answer, void *unused)
{
    struct node *n = context->data;
    (void)unused;
    if (!n || !answer) /* given up, or lost: then on_gone follows */
        return;
    struct redis_job *job = pop(&n->sent);
    const redisReply *reply = answer;
    n->failures = reply->type == REDIS_REPLY_ERROR ? n->failures : 0;
    n->common->answered(n->common->owner, n, job, answer);
    if (n->context == context && n->state == NODE_LEAVING && !n->sent.head)
        give_up(n, n->leaving_for, false);
}

static void on_asking(redisAsyncContext *context, void *answer, void *unused)
{
    (void)context, (void)answer, (void)unused; /* the command behind it tells */
}

/* By which name it is called is known only now: the command's head is written into the room left for it. */
static struct str head_of(const struct node *n, struct redis_job *job)
{
    bool by_function = n->greeting.functions;
    const struct script_names *names = by_function ? &n->common->functions : &n->common->shas;
    char head[REDIS_JOB_HEAD_BYTES + 1];
    int len = snprintf(head, sizeof(head), "*%u\r\n%s\r\n$40\r\n", job->words,
                       by_function ? "$5\r\nFCALL" : "$7\r\nEVALSHA");
    size_t from = REDIS_JOB_HEAD_BYTES - (size_t)len;
    memcpy(job->command.at + from, head, (size_t)len);
    memcpy(job->command.at + REDIS_JOB_HEAD_BYTES, names->of[job->script], SCRIPT_NAME_BYTES);
    return str_from(buf_view(&job->command), from);
}

static void put(struct node *n, struct redis_job *job)
{
    struct str command = head_of(n, job);
    if (job->asking)
        redisAsyncCommand(n->context, on_asking, NULL, "ASKING");
    job->asking = false;
    redisAsyncFormattedCommand(n->context, on_reply, NULL, command.at, command.len);
    push(&n->sent, job);
}

bool node_send(struct node *n, struct redis_job *job, bool waits)
{
    bool soon = waits && (n->state == NODE_FINDING || n->state == NODE_GREETING);
    if (n->state == NODE_UP && sdslen(n->context->c.obuf) + job->command.len <= REDIS_UNSENT_MAX_BYTES)
        put(n, job);
    else if (soon)
        push(&n->waiting, job);
    else
        return false;
    watch_deadline(n);
    return true;
}

void node_leave(struct node *n, const char *why)
{
    if (n->state != NODE_UP)
        return;
    n->state = NODE_LEAVING;
    snprintf(n->leaving_for, sizeof(n->leaving_for), "%s", why);
}

void node_reload(struct node *n)
{
    if (n->state == NODE_UP)
        greeting_load_scripts(&n->greeting, n->context);
}

/* ---- connecting ----------------------------------------------------------------- */

static void on_connected(const redisAsyncContext *context, int status)
{
    struct node *n = context->data;
    if (n && status != REDIS_OK)
        give_up(n, context->errstr ? context->errstr : "it cannot be reached", true);
}

static void on_gone(const redisAsyncContext *context, int status)
{
    struct node *n = context->data;
    char why[WHY_BYTES];
    (void)status;
    if (n)
        give_up(n, hearing_why(context, why, sizeof(why)), true);
}

static void greeted(void *owner, const char *why)
{
    struct node *n = owner;
    struct redis_job *job;
    explicit_bzero(n->password, sizeof(n->password));
    if (why) {
        give_up(n, why, false);
        return;
    }
    n->state = NODE_UP;
    timer_clear(&n->pause);
    while ((job = pop(&n->waiting)))
        put(n, job);
    if (n->lookout)
        lookout_start(n->lookout, &n->place);
    n->common->up(n->common->owner, n);
}

/* The file's first line; a password that is renewed there is used from the next connection on. */
static bool read_password(struct node *n, char *why, size_t size)
{
    const char *path = n->common->options->password_file;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, n->password, sizeof(n->password) - 1);
    if (len < 0)
        snprintf(why, size, "its password_file %s cannot be read: %s", path, strerror(errno));
    else
        n->password[strcspn(n->password, "\r\n")] = '\0';
    if (fd >= 0)
        close(fd);
    return len >= 0;
}

static void greet(struct node *n)
{
    const struct address *first = n->common->options->address; /* a cluster has one password for all */
    n->state = NODE_GREETING;
    n->greeting.user = first->user;
    n->greeting.password = n->common->options->password_file ? str_of(n->password) : first->password;
    n->greeting.db = first->db;
    n->greeting.name = n->common->options->name;
    n->greeting.libraries = &n->common->functions;
    n->greeting.shas = &n->common->shas;
    n->greeting.over = greeted;
    n->greeting.owner = n;
    greeting_begin(&n->greeting, n->context);
}

static void connect_to(void *owner, const struct place *place, const struct why *why)
{
    struct node *n = owner;
    char trouble[WHY_BYTES];
    if (!place) {
        give_up(n, why->text, false);
        return;
    }
    n->place = *place;
    memset(n->password, 0, sizeof(n->password));
    if (n->common->options->password_file && !read_password(n, trouble, sizeof(trouble))) {
        give_up(n, trouble, false);
        return;
    }
    redisAsyncContext *context =
        place->port ? redisAsyncConnect(place->host, place->port) : redisAsyncConnectUnix(place->host);
    if (!context || context->err) {
        snprintf(trouble, sizeof(trouble), "%s", context ? context->errstr : "no memory for a connection");
        if (context)
            redisAsyncFree(context);
        give_up(n, trouble, false);
        return;
    }
    n->context = context;
    context->data = n;
    attach(n->common->options->loop, context);
    redisAsyncSetConnectCallback(context, on_connected);
    redisAsyncSetDisconnectCallback(context, on_gone);
    greet(n);
}

void node_wake(struct node *n)
{
    struct loop *loop = n->common->options->loop;
    bool pausing = timer_is_set(&n->pause);
    if (n->state != NODE_OFF || pausing)
        return;
    n->state = NODE_FINDING;
    timer_set(&n->pause, loop, REDIS_GREETING_MS, took_too_long, n);
    finder_free(n->finder);
    n->finder = finder_new(loop, n->address, connect_to, n);
    finder_start(n->finder);
}

/* What it has not answered yet it may still: nothing of it outlives its learning of this. */
static void has_moved(void *owner)
{
    struct node *n = owner;
    if (n->state == NODE_UP || n->state == NODE_LEAVING)
        give_up(n, "another server is the master now, as its sentinels say", false);
}

/* ---- from outside ---------------------------------------------------------------- */

struct node *node_new(struct node_common *common, const struct address *address, bool keeps)
{
    struct node *n = calloc(1, sizeof(*n));
    if (!n)
        abort();
    n->common = common;
    n->address = address;
    n->keeps = keeps;
    if (address->kind == ADDRESS_SENTINEL)
        n->lookout = lookout_new(common->options->loop, address, has_moved, n);
    return n;
}

void node_free(struct node *n)
{
    if (!n)
        return;
    finder_free(n->finder);
    lookout_free(n->lookout);
    timer_clear(&n->deadline);
    timer_clear(&n->pause);
    if (n->context) {
        n->context->data = NULL;
        redisAsyncFree(n->context);
    }
    explicit_bzero(n->password, sizeof(n->password));
    free(n);
}

const struct address *node_address(const struct node *n)
{
    return n->address;
}

enum node_state node_state(const struct node *n)
{
    return n->state;
}

const struct server_facts *node_facts(const struct node *n)
{
    return &n->greeting.facts;
}
