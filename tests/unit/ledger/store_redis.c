/*
 * The Redis store against a redis-server that this test starts: commits, conflicts, parts, rates, what
 * becomes of requests when functions, replies or the server are gone, the server's clock, the shared key, a
 * cluster. Each case of `both` is run with functions, and with scripts by SHA1 as before Redis 7. Skipped
 * with a message if there is no redis-server.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <hiredis/hiredis.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/hash.h"
#include "io/conn.h"
#include "ledger/codec.h"
#include "ledger/session_parts.h"
#include "ledger/ledger.h"
#include "ledger/store_redis.h"

#define PATIENCE_MS 10000
#define TTL_S       1000u

/* ---- a server ---- */

struct server {
    char folder[64], path[96], port[8], address[256];
    pid_t pid;
    redisContext *admin;
};

static void launch(struct server *s, bool cluster)
{
    s->pid = fork();
    if (s->pid == 0) {
        int null = open("/dev/null", O_WRONLY);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        execlp("redis-server", "redis-server", "--port", s->port, "--unixsocket", s->path, "--save", "",
               "--dir", s->folder, "--cluster-enabled", cluster ? "yes" : "no", (char *)NULL);
        _exit(127);
    }
    for (int waited_ms = 0; waited_ms < PATIENCE_MS; waited_ms += 5) {
        s->admin = redisConnectUnix(s->path);
        redisReply *pong = s->admin && !s->admin->err ? redisCommand(s->admin, "PING") : NULL;
        freeReplyObject(pong);
        if (pong) /* all its ports are bound */
            return;
        redisFree(s->admin);
        s->admin = NULL;
        if (waitpid(s->pid, NULL, WNOHANG) == s->pid)
            return; /* there is none, or its port is taken */
        usleep(5000);
    }
}

static bool start(struct server *s, bool cluster)
{
    *s = (struct server){.port = "0"};
    for (int attempt = 0; attempt < 5 && !s->admin; attempt++) {
        if (cluster) /* its bus listens at port + 10000, below the ports of outgoing connections */
            snprintf(s->port, sizeof(s->port), "%u", 10000 + (unsigned)(hash_random() % 12000));
        snprintf(s->folder, sizeof(s->folder), "/tmp/toolgate-redis-XXXXXX");
        assert_non_null(mkdtemp(s->folder));
        snprintf(s->path, sizeof(s->path), "%s/s", s->folder);
        snprintf(s->address, sizeof(s->address), "unix:%s", s->path);
        launch(s, cluster);
    }
    return s->admin;
}

static void stop(struct server *s)
{
    char command[96];
    redisFree(s->admin);
    kill(s->pid, SIGKILL);
    waitpid(s->pid, NULL, 0);
    snprintf(command, sizeof(command), "rm -rf %s", s->folder);
    assert_int_equal(system(command), 0);
}

/* Sends a command; an error fails the test unless `may_fail`. The reply lives until the next. */
static redisReply *does(struct server *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
static redisReply *does(struct server *s, const char *format, ...)
{
    static redisReply *reply;
    char command[256];
    va_list list;
    freeReplyObject(reply);
    va_start(list, format);
    vsnprintf(command, sizeof(command), format, list);
    va_end(list);
    reply = redisCommand(s->admin, command);
    if (!reply)
        fail_msg("%s: %s", command, s->admin->errstr);
    if (reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s: %s", command, reply->str);
    return reply;
}

/* ---- a store ---- */

struct daemon {
    struct loop *loop;
    struct arena *arena;
    struct session_store *store;
    int ups, aways;
    char why[512];
};

static void on_up(void *owner)
{
    struct daemon *d = owner;
    d->ups++;
}

static void on_away(void *owner, const char *why)
{
    struct daemon *d = owner;
    d->aways++;
    snprintf(d->why, sizeof(d->why), "%s", why);
}

static const struct redis_hooks hooks = {on_up, on_away};

static void open_store(struct daemon *d, const char *address, uint32_t timeout_ms)
{
    struct redis_address *a;
    struct why why;
    *d = (struct daemon){.loop = loop_new(), .arena = arena_new()};
    a = ARENA_NEW(d->arena, struct redis_address);
    assert_int_equal(redis_address_parse(d->arena, str_of(address), a, &why), OK);
    struct redis_options options = {.loop = d->loop, .address = a, .name = "test", .timeout_ms = timeout_ms};
    d->store = store_redis_new(&options, &hooks, d);
}

static void close_store(struct daemon *d)
{
    d->store->kind->free(d->store);
    loop_free(d->loop);
    arena_free(d->arena);
}

static void turn_until(struct daemon *d, const int *count, int least)
{
    int64_t began_ms = clock_mono_us() / 1000;
    while (*count < least) {
        if (clock_mono_us() / 1000 - began_ms > PATIENCE_MS)
            fail_msg("nothing happened: %s", d->why);
        loop_turn(d->loop, false);
        usleep(200);
    }
}

/* ---- requests ---- */

/* A request and a copy of where it ended. */
struct asked {
    struct store_request request;
    int ended;
    enum store_result result;
    char why[256];
    struct buf core, journal, ids, fields; /* fields: name=value; */
};

static void on_ended(struct store_request *request)
{
    struct asked *a = (struct asked *)request;
    a->ended++;
    a->result = request->result;
    snprintf(a->why, sizeof(a->why), "%s", request->why ? request->why : "");
    a->core.len = a->journal.len = a->ids.len = a->fields.len = 0;
    buf_str(&a->core, request->stored[PART_CORE]);
    buf_str(&a->journal, request->stored[PART_JOURNAL]);
    buf_str(&a->ids, request->stored[PART_IDS]);
    struct str rest = request->stored[PART_DETAILS];
    struct detail detail;
    while (detail_next(&rest, &detail))
        buf_printf(&a->fields, STR_FMT "=" STR_FMT ";", STR_ARG(detail.name), STR_ARG(detail.value));
}

static const struct hash128 session = {0x0001020304050607, 0x08090a0b0c0d0e0f};
#define STEM "tg2:{AAECAwQFBgcICQoLDA0ODw}"

static struct asked asked_for(struct daemon *d)
{
    return (struct asked){.request = {.id = session, .ended = on_ended},
                          .core = buf_in(d->arena),
                          .journal = buf_in(d->arena),
                          .ids = buf_in(d->arena),
                          .fields = buf_in(d->arena)};
}

static void finish(struct daemon *d, struct asked *a,
                   bool (*begin)(struct session_store *, struct store_request *))
{
    a->ended = 0;
    if (begin(d->store, &a->request))
        on_ended(&a->request);
    turn_until(d, &a->ended, 1);
    assert_int_equal(a->ended, 1);
}

#define ALL_PARTS (PART_BIT(PART_JOURNAL) | PART_BIT(PART_IDS) | PART_BIT(PART_DETAILS))

/* `writes` ends with one without a value and a name. The first is of the core if it is set. */
static enum store_result commits(struct daemon *d, struct asked *a, const char *guard,
                                 const struct store_write *writes, uint32_t ttl_s)
{
    bool core = writes && writes->kind == WRITE_SET && writes->part == PART_CORE && writes->value.at;
    a->request.guard = str_of(guard);
    a->request.parts[PART_CORE] = core ? writes->value : STR_NONE;
    a->request.writes = writes ? writes + core : NULL;
    a->request.renew_ttl_s = ttl_s;
    a->request.with = ALL_PARTS;
    writes = a->request.writes;
    for (a->request.write_count = 0; writes && (writes->value.at || writes->name.at); writes++)
        a->request.write_count++;
    finish(d, a, d->store->kind->commit);
    return a->result;
}

static enum store_result loads(struct daemon *d, struct asked *a, unsigned with)
{
    a->request.with = with;
    finish(d, a, d->store->kind->load);
    return a->result;
}

#define CORE "version-1 and the rest"

static const struct store_write whole[] = {
    {.kind = WRITE_SET, .part = PART_CORE, .value = STR(CORE)},
    {.kind = WRITE_SET, .part = PART_JOURNAL, .value = STR("note1")},
    {.kind = WRITE_SET, .part = PART_IDS, .value = STR("ids")},
    {.kind = WRITE_FIELD, .part = PART_DETAILS, .name = STR("goal"), .value = STR("a goal")},
    {.kind = WRITE_SET}};

static void assert_str(const struct buf *got, const char *expected)
{
    struct str text = buf_view(got);
    if (!str_is(text, expected))
        fail_msg("expected \"%s\", got \"" STR_FMT "\"", expected, STR_ARG(text));
}

/* ---- one server for all cases ---- */

static struct server server;
static bool by_sha, has_functions; /* has_functions: from Redis 7 on */

/* A user who may not bring functions is served by scripts. */
static void begin(struct daemon *d)
{
    does(&server, "FLUSHALL");
    if (has_functions)
        does(&server, "ACL SETUSER default %cfunction|load", by_sha ? '-' : '+');
    open_store(d, server.address, 2000);
    turn_until(d, &d->ups, 1);
    does(&server, "CONFIG RESETSTAT");
}

static void commits_and_loads_every_part(void **state)
{
    struct daemon d;
    (void)state;
    begin(&d);
    struct asked a = asked_for(&d);
    assert_int_equal(loads(&d, &a, 0), STORE_DONE);
    assert_int_equal(a.core.len, 0);
    assert_int_equal(commits(&d, &a, "", whole, TTL_S), STORE_DONE);
    assert_int_equal(loads(&d, &a, ALL_PARTS), STORE_DONE);
    assert_str(&a.core, CORE);
    assert_str(&a.journal, "note1");
    assert_str(&a.ids, "ids");
    assert_str(&a.fields, "goal=a goal;");
    assert_int_equal(loads(&d, &a, PART_BIT(PART_DETAILS) | PART_BIT(PART_IDS)), STORE_DONE);
    assert_str(&a.core, CORE);
    assert_int_equal(a.journal.len, 0);
    assert_str(&a.ids, "ids");
    assert_str(&a.fields, "goal=a goal;");
    assert_int_equal(loads(&d, &a, PART_BIT(PART_DETAILS)), STORE_DONE);
    assert_str(&a.fields, "goal=a goal;");
    redisReply *info = does(&server, "INFO commandstats");
    assert_non_null(strstr(info->str, by_sha ? "cmdstat_evalsha:" : "cmdstat_fcall:"));
    assert_null(strstr(info->str, by_sha ? "cmdstat_fcall:" : "cmdstat_evalsha:"));
    close_store(&d);
}

static void writes_in_place(void **state)
{
    static const struct store_write parts[] = {
        {.kind = WRITE_SET, .part = PART_CORE, .value = STR("version-2")},
        {.kind = WRITE_AT, .part = PART_JOURNAL, .at = 4, .value = STR("X")},
        {.kind = WRITE_FIELD, .part = PART_DETAILS, .name = STR("fact"), .value = STR("")},
        {.kind = WRITE_NO_FIELD, .part = PART_DETAILS, .name = STR("goal")},
        {.kind = WRITE_SET}};
    struct daemon d;
    (void)state;
    begin(&d);
    struct asked a = asked_for(&d);
    commits(&d, &a, "", whole, TTL_S);
    assert_int_equal(commits(&d, &a, "version-1", parts, 0), STORE_DONE);
    assert_int_equal(loads(&d, &a, ALL_PARTS), STORE_DONE);
    assert_str(&a.core, "version-2");
    assert_str(&a.journal, "noteX");
    assert_str(&a.fields, "fact=;");
    close_store(&d);
}

static void a_conflict_writes_nothing_and_gives_what_is_there(void **state)
{
    static const struct store_write other[] = {{.kind = WRITE_SET, .part = PART_CORE, .value = STR("other")},
                                               {.kind = WRITE_SET}};
    struct daemon d;
    (void)state;
    begin(&d);
    struct asked a = asked_for(&d);
    assert_int_equal(commits(&d, &a, "version-1", other, TTL_S), STORE_CONFLICT);
    assert_int_equal(a.core.len, 0);
    commits(&d, &a, "", whole, TTL_S);
    assert_int_equal(commits(&d, &a, "version-0", other, TTL_S), STORE_CONFLICT);
    assert_str(&a.core, CORE);
    assert_int_equal(commits(&d, &a, "", other, TTL_S), STORE_CONFLICT);
    assert_str(&a.core, CORE);
    loads(&d, &a, 0);
    assert_str(&a.core, CORE);
    close_store(&d);
}

static void forgets_all_parts_whatever_is_there(void **state)
{
    struct daemon d;
    (void)state;
    begin(&d);
    struct asked a = asked_for(&d);
    commits(&d, &a, "", whole, TTL_S);
    a.request.forget = true;
    assert_int_equal(commits(&d, &a, "version-0", NULL, 0), STORE_DONE);
    assert_int_equal(does(&server, "DBSIZE")->integer, 1); /* the call ids' key */
    does(&server, "RPUSH " STEM "s x");
    assert_int_equal(commits(&d, &a, "version-0", NULL, 0), STORE_DONE);
    assert_int_equal(does(&server, "DBSIZE")->integer, 1);
    close_store(&d);
}

static void renews_all_parts_when_asked(void **state)
{
    static const char letters[] = "sjid";
    struct daemon d;
    (void)state;
    begin(&d);
    struct asked a = asked_for(&d);
    commits(&d, &a, "", whole, TTL_S);
    for (int i = 0; i < 4; i++)
        assert_in_range(does(&server, "TTL " STEM "%c", letters[i])->integer, TTL_S - 10, TTL_S);
    static const struct store_write head[] = {
        {.kind = WRITE_SET, .part = PART_CORE, .value = STR("version-2")}, {.kind = WRITE_SET}};
    commits(&d, &a, "version-1", head, 0);
    assert_in_range(does(&server, "TTL " STEM "s")->integer, TTL_S - 10, TTL_S);
    commits(&d, &a, "version-2", head, 2 * TTL_S);
    for (int i = 0; i < 4; i++)
        assert_in_range(does(&server, "TTL " STEM "%c", letters[i])->integer, 2 * TTL_S - 10, 2 * TTL_S);
    commits(&d, &a, "version-2", whole, 0); /* a whole value keeps it, too */
    assert_in_range(does(&server, "TTL " STEM "s")->integer, 2 * TTL_S - 10, 2 * TTL_S);
    close_store(&d);
}

/* FUNCTION FLUSH, SCRIPT FLUSH: what is missing is loaded again, and the request repeated. */
static void loads_lost_scripts_again(void **state)
{
    struct daemon d;
    (void)state;
    begin(&d);
    struct asked a = asked_for(&d);
    if (has_functions)
        does(&server, "FUNCTION FLUSH");
    does(&server, "SCRIPT FLUSH");
    assert_int_equal(commits(&d, &a, "", whole, TTL_S), STORE_DONE);
    if (has_functions)
        does(&server, "FUNCTION FLUSH");
    does(&server, "SCRIPT FLUSH");
    assert_int_equal(loads(&d, &a, ALL_PARTS), STORE_DONE);
    assert_str(&a.core, CORE);
    assert_int_equal(d.aways, 0);
    close_store(&d);
}

static void a_key_of_another_type_is_refused(void **state)
{
    struct daemon d;
    (void)state;
    begin(&d);
    struct asked a = asked_for(&d);
    does(&server, "RPUSH " STEM "s x");
    assert_int_equal(commits(&d, &a, "", whole, TTL_S), STORE_REFUSED);
    assert_non_null(strstr(a.why, "WRONGTYPE"));
    assert_int_equal(loads(&d, &a, 0), STORE_REFUSED);
    assert_int_equal(d.aways, 0);
    close_store(&d);
}

/* Many at once; an order of their own for those of one session. */
static void keeps_the_order_of_requests(void **state)
{
    enum { COUNT = 300 };
    static struct asked a[COUNT];
    static char guards[COUNT + 1][16];
    struct daemon d;
    (void)state;
    begin(&d);
    int ended = 0;
    for (int i = 0; i < COUNT; i++) {
        snprintf(guards[i + 1], sizeof(guards[i + 1]), "v%08d", i + 1);
        a[i] = asked_for(&d);
        a[i].request.guard = str_of(guards[i]);
        a[i].request.parts[PART_CORE] = str_of(guards[i + 1]);
        a[i].request.renew_ttl_s = TTL_S;
        assert_false(d.store->kind->commit(d.store, &a[i].request));
    }
    turn_until(&d, &a[COUNT - 1].ended, 1);
    for (int i = 0; i < COUNT; i++)
        ended += a[i].ended == 1 && a[i].result == STORE_DONE;
    assert_int_equal(ended, COUNT);
    close_store(&d);
}

/* ---- rates ---- */

struct rated {
    struct store_rate_request request;
    int ended;
};

static void on_rated(struct store_rate_request *request)
{
    ((struct rated *)request)->ended++;
}

static uint32_t takes(struct daemon *d, uint64_t admission, uint32_t count, uint32_t window_s,
                      uint32_t count2, uint32_t window2_s)
{
    struct rated r = {.request = {.bucket = session,
                                  .admission = admission,
                                  .rates = {{count, window_s}, {count2, window2_s}},
                                  .rate_count = count2 ? 2 : 1,
                                  .ended = on_rated}};
    assert_false(d->store->kind->rate(d->store, &r.request));
    turn_until(d, &r.ended, 1);
    if (r.request.result != STORE_DONE)
        fail_msg("rate: %s", r.request.why);
    return r.request.wait_ms;
}

static void a_rate_takes_as_many_as_it_has_room_for(void **state)
{
    struct daemon d;
    (void)state;
    begin(&d);
    for (uint64_t i = 1; i <= 3; i++)
        assert_int_equal(takes(&d, i, 3, 60, 0, 0), 0);
    assert_in_range(takes(&d, 4, 3, 60, 0, 0), 15000, 20000);
    assert_in_range(takes(&d, 5, 3, 60, 0, 0), 15000, 20000); /* what was refused took nothing */
    for (uint64_t i = 1; i <= 3; i++)
        assert_int_equal(takes(&d, i, 3, 60, 0, 0), 0); /* asked again after a lost reply */
    assert_in_range(does(&server, "PTTL " STEM "r")->integer, 50000, 60000);
    close_store(&d);
}

static void room_comes_back_with_time(void **state)
{
    struct daemon d;
    (void)state;
    begin(&d);
    assert_int_equal(takes(&d, 1, 2, 1, 0, 0), 0);
    assert_int_equal(takes(&d, 2, 2, 1, 0, 0), 0);
    uint32_t wait_ms = takes(&d, 3, 2, 1, 0, 0);
    assert_in_range(wait_ms, 1, 500);
    usleep(wait_ms * 1000 + 1000);
    assert_int_equal(takes(&d, 3, 2, 1, 0, 0), 0);
    close_store(&d);
}

static void all_rates_of_a_bucket_must_have_room(void **state)
{
    struct daemon d;
    (void)state;
    begin(&d);
    assert_int_equal(takes(&d, 1, 2, 60, 100, 3600), 0);
    assert_int_equal(takes(&d, 2, 2, 60, 100, 3600), 0);
    assert_in_range(takes(&d, 3, 2, 60, 100, 3600), 20000, 30000);
    does(&server, "HDEL " STEM "r 2/60");
    assert_int_equal(takes(&d, 4, 2, 60, 100, 3600), 0);
    does(&server, "DEL " STEM "r");
    assert_int_equal(takes(&d, 5, 9, 60, 1, 3600), 0);
    assert_in_range(takes(&d, 6, 9, 60, 1, 3600), 3590000, 3600000);
    close_store(&d);
}

static void a_bucket_remembers_the_last_admissions(void **state)
{
    struct daemon d;
    (void)state;
    begin(&d);
    for (uint64_t i = 1; i <= STORE_RATE_ADMISSIONS + 1; i++)
        assert_int_equal(takes(&d, i, STORE_RATE_ADMISSIONS + 1, 3600, 0, 0), 0);
    assert_int_equal(does(&server, "HSTRLEN " STEM "r taken")->integer, 8 * STORE_RATE_ADMISSIONS);
    assert_int_equal(takes(&d, 2, STORE_RATE_ADMISSIONS + 1, 3600, 0, 0), 0);
    assert_int_not_equal(takes(&d, 1, STORE_RATE_ADMISSIONS + 1, 3600, 0, 0), 0);
    close_store(&d);
}

/* ---- outages ---- */

static void a_reply_that_does_not_come_in_time_is_lost(void **state)
{
    struct daemon d;
    (void)state;
    does(&server, "FLUSHALL");
    open_store(&d, server.address, 50);
    turn_until(&d, &d.ups, 1);
    struct asked a = asked_for(&d), b = asked_for(&d);
    kill(server.pid, SIGSTOP);
    b.request.with = 0;
    int64_t began_us = clock_mono_us();
    assert_false(d.store->kind->load(d.store, &b.request));
    assert_int_equal(commits(&d, &a, "", whole, TTL_S), STORE_LOST);
    assert_in_range(clock_mono_us() - began_us, 45000, 1000000);
    assert_int_equal(b.result, STORE_UNDONE);
    assert_int_equal(d.aways, 1);
    assert_false(store_redis_is_up(d.store));
    assert_int_equal(commits(&d, &a, "", whole, TTL_S), STORE_UNDONE);
    assert_int_equal(a.ended, 1);
    kill(server.pid, SIGCONT);
    turn_until(&d, &d.ups, 2);
    /* It may have landed before the old connection was ended: then it is a conflict with itself. */
    enum store_result result = commits(&d, &a, "", whole, TTL_S);
    assert_true(result == STORE_DONE || result == STORE_CONFLICT);
    assert_int_equal(loads(&d, &a, 0), STORE_DONE);
    assert_str(&a.core, CORE);
    close_store(&d);
}

static void away_requests_end_within_the_call(void **state)
{
    struct daemon d;
    (void)state;
    open_store(&d, "unix:/tmp/toolgate-no-such-redis", 50);
    turn_until(&d, &d.aways, 1);
    assert_true(store_redis_is_settled(d.store));
    struct asked a = asked_for(&d);
    a.request.with = 0;
    assert_true(d.store->kind->load(d.store, &a.request));
    assert_int_equal(a.ended, 0);
    assert_int_equal(a.request.result, STORE_UNDONE);
    assert_non_null(strstr(a.request.why, "No such file"));
    struct rated r = {.request = {.rates = {{1, 1}}, .rate_count = 1, .ended = on_rated}};
    assert_true(d.store->kind->rate(d.store, &r.request));
    assert_int_equal(r.ended, 0);
    assert_int_equal(r.request.result, STORE_UNDONE);
    unsigned char key[STORE_REDIS_KEY_BYTES];
    assert_false(store_redis_key(d.store, key));
    assert_in_range(llabs(d.store->kind->now_ms(d.store) - clock_wall_ms()), 0, 5);
    close_store(&d);
}

/* Short of memory a server refuses writes: nothing was written, and the connection is given up. */
static void out_of_memory_is_an_outage(void **state)
{
    struct daemon d;
    (void)state;
    begin(&d);
    struct asked a = asked_for(&d);
    does(&server, "CONFIG SET maxmemory 1");
    assert_int_equal(commits(&d, &a, "", whole, TTL_S), STORE_UNDONE);
    assert_non_null(strstr(a.why, "OOM"));
    turn_until(&d, &d.aways, 1);
    does(&server, "CONFIG SET maxmemory 0");
    turn_until(&d, &d.ups, 2);
    assert_int_equal(commits(&d, &a, "", whole, TTL_S), STORE_DONE);
    close_store(&d);
}

/* ---- rights ---- */

static void missing_rights_are_found_at_connect(void **state)
{
    static const struct {
        const char *rights, *names;
    } cases[] = {{"-fcall", "fcall"},           {"-getrange", "GETRANGE"}, {"-set", "'set'"},
                 {"-setrange", "SETRANGE"},     {"-hset", "HSET"},         {"-hdel", "HDEL"},
                 {"-expire", "EXPIRE"},         {"-hgetall", "HGETALL"},   {"-time", "TIME"},
                 {"-pexpire", "PEXPIRE"},       {"-del", "'del'"},         {"-get", "GET"},
                 {"resetkeys ~tg1:*", "access"}};
    char address[sizeof(server.address) + 16];
    (void)state;
    if (!has_functions)
        skip();
    does(&server, "FLUSHALL");
    snprintf(address, sizeof(address), "%s", server.address);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct daemon d;
        char command[128];
        snprintf(command, sizeof(command), "ACL SETUSER default resetkeys ~tg2:* %s", cases[i].rights);
        does(&server, "%s", command);
        open_store(&d, address, 2000);
        turn_until(&d, &d.aways, 1);
        if (d.ups || !strstr(d.why, cases[i].names) || !strstr(d.why, "give its user the rights"))
            fail_msg("%s: %s", cases[i].rights, d.why);
        close_store(&d);
        does(&server, "ACL SETUSER default +@all ~*");
    }
    struct daemon d;
    begin(&d);
    assert_int_equal(d.aways, 0);
    close_store(&d);
}

/* ---- the clock ---- */

static int64_t server_ms(void)
{
    redisReply *time = does(&server, "TIME");
    return strtoll(time->element[0]->str, NULL, 10) * 1000 + strtoll(time->element[1]->str, NULL, 10) / 1000;
}

static void now_is_the_servers_time(void **state)
{
    struct daemon d;
    (void)state;
    begin(&d);
    assert_in_range(llabs(d.store->kind->now_ms(d.store) - server_ms()), 0, 20);
    struct asked a = asked_for(&d);
    does(&server, "CONFIG RESETSTAT");
    for (int i = 0; i < 20; i++)
        loads(&d, &a, 0);
    redisReply *info = does(&server, "INFO commandstats");
    assert_non_null(strstr(info->str, "cmdstat_time:calls=1,")); /* at most once a second */
    assert_in_range(llabs(d.store->kind->now_ms(d.store) - server_ms()), 0, 20);
    close_store(&d);
}

static bool read_time(struct redis_clock *clock, const char *seconds, const char *micros, int64_t asked_us)
{
    redisReply first = {
        .type = REDIS_REPLY_STRING, .str = (char *)(uintptr_t)seconds, .len = strlen(seconds)};
    redisReply second = {.type = REDIS_REPLY_STRING, .str = (char *)(uintptr_t)micros, .len = strlen(micros)};
    redisReply *items[] = {&first, &second};
    redisReply reply = {.type = REDIS_REPLY_ARRAY, .elements = 2, .element = items};
    struct redis_value value = redis_value_of(&reply);
    return redis_clock_read(clock, &value, asked_us);
}

/* A wall clock that is decades off does not matter, nor does a reading that took long. */
static void a_clock_depends_on_the_server_alone(void **state)
{
    struct redis_clock clock = {.read_us = 0}, newer;
    (void)state;
    assert_true(read_time(&clock, "4102444800", "500000", redis_clock_local_us()));
    assert_in_range(redis_clock_now_ms(&clock), 4102444800500, 4102444800600);
    /* Half a second under way: the middle is taken, and the one before is more exact. */
    assert_true(read_time(&newer, "4102444800", "400000", redis_clock_local_us() - 500000));
    assert_in_range(newer.error_us, 250000, 260000);
    redis_clock_update(&clock, &newer);
    assert_in_range(redis_clock_now_ms(&clock), 4102444800500, 4102444800600);
    /* Another server, or its clock was set: the readings contradict each other. */
    assert_true(read_time(&newer, "4102448400", "0", redis_clock_local_us() - 500000));
    redis_clock_update(&clock, &newer);
    assert_in_range(redis_clock_now_ms(&clock), 4102448400000, 4102448400400);
    assert_false(read_time(&newer, "41024484x0", "0", 0));
    assert_false(read_time(&newer, "", "0", 0));
    assert_false(read_time(&newer, "4102448400", "1000000", 0));
    assert_false(read_time(&newer, "99999999999999999999", "0", 0));
}

/* ---- the shared key ---- */

static void all_daemons_share_the_key(void **state)
{
    struct daemon one, two, three;
    unsigned char key1[STORE_REDIS_KEY_BYTES], key2[STORE_REDIS_KEY_BYTES], key3[STORE_REDIS_KEY_BYTES];
    (void)state;
    begin(&one);
    open_store(&two, server.address, 2000);
    turn_until(&two, &two.ups, 1);
    assert_true(store_redis_key(one.store, key1));
    assert_true(store_redis_key(two.store, key2));
    assert_memory_equal(key1, key2, sizeof(key1));
    /* Its data is gone: who knows the key brings it back. */
    does(&server, "FLUSHALL");
    does(&server, "CLIENT KILL TYPE normal SKIPME yes");
    turn_until(&one, &one.ups, 2);
    for (int i = 0; i < 50 && !does(&server, "EXISTS tg2:callid_key")->integer; i++) {
        loop_turn(one.loop, false);
        usleep(10000);
    }
    open_store(&three, server.address, 2000);
    turn_until(&three, &three.ups, 1);
    assert_true(store_redis_key(three.store, key3));
    assert_memory_equal(key1, key3, sizeof(key1));
    assert_int_equal(does(&server, "TTL tg2:callid_key")->integer, -1);
    close_store(&one);
    close_store(&two);
    close_store(&three);
    does(&server, "FLUSHALL");
    begin(&one);
    assert_true(store_redis_key(one.store, key2));
    assert_memory_not_equal(key1, key2, sizeof(key1));
    close_store(&one);
}

/* ---- a cluster ---- */

static bool form_cluster(struct server nodes[2])
{
    for (int i = 0; i < 2; i++)
        if (!start(&nodes[i], true))
            return false;
    does(&nodes[0], "CLUSTER ADDSLOTSRANGE 0 8191");
    does(&nodes[1], "CLUSTER ADDSLOTSRANGE 8192 16383");
    does(&nodes[0], "CONFIG SET cluster-announce-ip 127.0.0.1");
    does(&nodes[1], "CONFIG SET cluster-announce-ip 127.0.0.1");
    does(&nodes[0], "CLUSTER MEET 127.0.0.1 %s", nodes[1].port);
    for (int i = 0; i < 2; i++)
        for (int waited = 0; !strstr(does(&nodes[i], "CLUSTER INFO")->str, "cluster_state:ok") ||
                             !strstr(does(&nodes[i], "CLUSTER INFO")->str, "cluster_known_nodes:2");
             waited++) {
            assert_in_range(waited, 0, PATIENCE_MS / 20);
            usleep(20000);
        }
    return true;
}

static void a_cluster_serves_every_session_and_the_key(void **state)
{
    struct server nodes[2];
    struct daemon d[2];
    unsigned char keys[2][STORE_REDIS_KEY_BYTES];
    struct ledger_status status;
    (void)state;
    if (!has_functions) /* nor ADDSLOTSRANGE */
        skip();
    assert_true(form_cluster(nodes));
    for (int i = 0; i < 2; i++) {
        open_store(&d[i], nodes[i].address, 2000);
        turn_until(&d[i], &d[i].ups, 1);
        assert_true(store_redis_key(d[i].store, keys[i]));
    }
    assert_memory_equal(keys[0], keys[1], sizeof(keys[0]));
    for (uint64_t n = 0; n < 40; n++) {
        struct asked a = asked_for(&d[0]), b = asked_for(&d[1]);
        a.request.id = b.request.id = hash_stable((struct str){(const char *)&n, sizeof(n)});
        assert_int_equal(commits(&d[0], &a, "", whole, TTL_S), STORE_DONE);
        assert_int_equal(commits(&d[1], &b, "", whole, TTL_S), STORE_CONFLICT);
        assert_int_equal(loads(&d[1], &b, ALL_PARTS), STORE_DONE);
        assert_str(&b.fields, "goal=a goal;");
        assert_int_equal(loads(&d[0], &a, PART_BIT(PART_JOURNAL)), STORE_DONE);
        assert_str(&a.journal, "note1");
    }
    int64_t held[2] = {does(&nodes[0], "DBSIZE")->integer, does(&nodes[1], "DBSIZE")->integer};
    assert_int_equal(held[0] + held[1], 40 * 4 + 1);
    assert_true(held[0] > 1 && held[1] > 1);
    store_redis_status(d[0].store, &status);
    assert_in_range(status.nodes, 2, 3);
    for (int i = 0; i < 2; i++) {
        close_store(&d[i]);
        stop(&nodes[i]);
    }
}

/* ---- all of it ---- */

static int end_case(void **state)
{
    (void)state;
    does(&server, "CONFIG SET maxmemory 0");
    does(&server, "ACL SETUSER default +@all ~*");
    return 0;
}

static int use_functions(void **state)
{
    (void)state;
    by_sha = false;
    return 0;
}

static int use_scripts(void **state)
{
    (void)state;
    by_sha = true;
    return 0;
}

#define CASE(name) cmocka_unit_test_teardown(name, end_case)

static const struct CMUnitTest both[] = {
    CASE(commits_and_loads_every_part),
    CASE(writes_in_place),
    CASE(a_conflict_writes_nothing_and_gives_what_is_there),
    CASE(forgets_all_parts_whatever_is_there),
    CASE(renews_all_parts_when_asked),
    CASE(loads_lost_scripts_again),
    CASE(a_key_of_another_type_is_refused),
    CASE(keeps_the_order_of_requests),
    CASE(a_rate_takes_as_many_as_it_has_room_for),
    CASE(room_comes_back_with_time),
    CASE(all_rates_of_a_bucket_must_have_room),
    CASE(a_bucket_remembers_the_last_admissions),
    CASE(out_of_memory_is_an_outage),
};

static const struct CMUnitTest once[] = {
    CASE(a_reply_that_does_not_come_in_time_is_lost), CASE(away_requests_end_within_the_call),
    CASE(missing_rights_are_found_at_connect),        CASE(now_is_the_servers_time),
    CASE(a_clock_depends_on_the_server_alone),        CASE(all_daemons_share_the_key),
    CASE(a_cluster_serves_every_session_and_the_key),
};

int main(void)
{
    if (!start(&server, false)) {
        print_message("skipped: no redis-server\n");
        return 0;
    }
    has_functions = does(&server, "COMMAND INFO fcall")->element[0]->type == REDIS_REPLY_ARRAY;
    int failed = has_functions ? cmocka_run_group_tests(both, use_functions, NULL) : 0;
    failed += cmocka_run_group_tests(both, use_scripts, NULL);
    failed += cmocka_run_group_tests(once, use_functions, NULL);
    stop(&server);
    return failed;
}
