/*
 * The parts of `make bench-ledger` that have to be the daemon's own code; ledger.lua starts the servers, runs
 * these in turn and tells what came out. Each prints numbers under names, one line a round.
 *
 *   ledger local SESSIONS PAIRS ROUNDS      µs of an admit and a settle in the local engine
 *   ledger scripts SOCKET SESSIONS ROUNDS   µs of each in Redis, as Redis counts; bytes a session
 *   ledger flight SOCKET N SECONDS          pairs a second with N calls in flight, as a daemon sends them
 *   ledger library                          the scripts' library, and in it what redis-benchmark runs: the
 * same pair
 */
#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "io/conn.h"
#include "ledger/ledger.h"
#include "ledger/pack.h"
#include "ledger/script.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>

#define TURN_CALLS    12u  /* then the user speaks */
#define WINDOW_PAIRS  120u /* a session's window and journal are full then */
#define IN_FLIGHT_MAX 256u
#define LATENCY_MAX   100000u /* µs; slower ones share the last place */
#define MEMORY_BYTES  1073741824u

static void fail(const char *doing, const char *why)
{
    fprintf(stderr, "bench of the ledger: %s: %s\n", doing, why);
    exit(1);
}

/* ---- the work: what agents do, every call with arguments of its own ---------------------------------------
 */

static const struct {
    const char *name;
    bool reads;
} tools[] = {{"search_orders", true},
             {"get_order", true},
             {"get_customer", true},
             {"update_order", false},
             {"send_message", false}};
#define TOOLS (sizeof(tools) / sizeof(*tools))

struct talk {
    struct str session;
    uint32_t number, calls; /* of the session; made in it so far */
    struct ledger_limits limits;
};

static struct talk talk_of(struct arena *arena, uint32_t number)
{
    return (struct talk){.session = arena_printf(arena, "uid:1000/bench-%u", number), .number = number};
}

/* What a daemon has computed before it comes to the ledger; here it must not cost. */
static struct hash128 hash_of(const struct talk *t, uint64_t what)
{
    uint64_t n = ((uint64_t)t->number << 32 | t->calls) + what;
    return (struct hash128){n * 0xbf58476d1ce4e5b9u, n * 0x9e3779b97f4a7c15u ^ n >> 7};
}

static struct ledger_place place_of(const struct talk *t)
{
    return (struct ledger_place){.session = t->session, .turn = t->calls / TURN_CALLS + 1};
}

static struct ledger_admit admit_of(struct talk *t)
{
    size_t tool = t->calls % TOOLS;
    t->limits = ledger_default_limits;
    t->limits.effects = tools[tool].reads ? LEDGER_EFFECTS_READ : LEDGER_EFFECTS_WRITE;
    return (struct ledger_admit){.place = place_of(t),
                                 .admission = ((uint64_t)t->number << 32 | t->calls) + 1,
                                 .tool = str_of(tools[tool].name),
                                 .arguments = hash_of(t, 0),
                                 .limits = &t->limits};
}

static struct ledger_settle settle_of(struct talk *t)
{
    struct ledger_admit admitted = admit_of(t);
    return (struct ledger_settle){.place = admitted.place,
                                  .admission = admitted.admission,
                                  .tool = admitted.tool,
                                  .arguments = admitted.arguments,
                                  .class = LEDGER_CLASS_OK,
                                  .label = STR_LIT("ok"),
                                  .result = hash_of(t, 1ull << 63),
                                  .limits = &t->limits};
}

static void must_run(const struct ledger_answer *answer)
{
    if (answer->error != OK)
        fail("admit", answer->why.text);
    if (answer->says != LEDGER_RUN)
        fail("admit", "a call was refused, so it is not the work that was to be measured");
}

/* ---- the local engine
 * -------------------------------------------------------------------------------------- */

static void pair_here(struct ledger *ledger, struct talk *t)
{
    struct arena *arena = arena_new();
    struct ledger_answer answer;
    struct ledger_settled settled;
    struct ledger_admit admit = admit_of(t);
    ledger_admit(ledger, &admit, arena, &answer, NULL, NULL);
    must_run(&answer);
    struct ledger_settle settle = settle_of(t);
    ledger_settle(ledger, &settle, arena, &settled, NULL, NULL);
    if (settled.error != OK)
        fail("settle", settled.why.text);
    t->calls++;
    arena_free(arena);
}

/* One of many; all that is kept of it is how often it called, so that only the ledger's memory is large. */
static void pair_of(struct ledger *ledger, uint32_t *calls, uint32_t number)
{
    static struct talk talk;
    static char name[] = "uid:1000/bench-00000000";
    for (uint32_t i = 0; i < 8; i++)
        name[sizeof(name) - 2 - i] = "0123456789abcdef"[number >> 4 * i & 15];
    talk.session = str_of(name);
    talk.number = number;
    talk.calls = calls[number]++;
    pair_here(ledger, &talk);
}

static int bench_local(char **argv)
{
    uint32_t sessions = (uint32_t)atoi(argv[0]), pairs = (uint32_t)atoi(argv[1]),
             rounds = (uint32_t)atoi(argv[2]);
    struct ledger_options options = {.memory_bytes = MEMORY_BYTES};
    struct arena *arena = arena_new();
    uint32_t *calls = ARENA_ARRAY(arena, uint32_t, sessions);
    struct ledger *ledger;
    struct ledger_status status;
    struct why why;
    if (ledger_new_local(&options, &ledger, &why) != OK)
        fail("local engine", why.text);
    for (uint32_t i = 0; i < sessions * 40 || i < 100000; i++) /* windows are full, what is hot is compiled */
        pair_of(ledger, calls, i % sessions);
    for (uint32_t round = 0; round < rounds; round++) {
        int64_t from = clock_mono_ns();
        for (uint32_t i = 0; i < pairs; i++)
            pair_of(ledger, calls, (uint32_t)((uint64_t)i * 7919 % sessions));
        printf("pair_us=%.3f\n", (double)(clock_mono_ns() - from) / 1000 / pairs);
    }
    ledger_status(ledger, &status);
    printf("sessions=%zu bytes=%zu\n", status.sessions, status.bytes);
    ledger_free(ledger);
    arena_free(arena);
    return 0;
}

/* ---- the scripts in Redis
 * ---------------------------------------------------------------------------------- */

struct server {
    redisContext *context;
    struct script_names names;
};

static redisReply *ask(struct server *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *reply = redisvCommand(s->context, format, args);
    va_end(args);
    if (!reply || reply->type == REDIS_REPLY_ERROR)
        fail(format, reply ? reply->str : s->context->errstr);
    return reply;
}

static void tell(struct server *s, const char *command)
{
    freeReplyObject(ask(s, command));
}

static struct server connect_to(const char *path)
{
    struct server s = {.context = redisConnectUnix(path)};
    struct arena *arena = arena_new();
    if (!s.context || s.context->err)
        fail(path, s.context ? s.context->errstr : "no memory");
    struct str library = script_library(arena, "", &s.names);
    redisReply *reply = redisCommand(s.context, "FUNCTION LOAD REPLACE %b", library.at, library.len);
    if (!reply || reply->type == REDIS_REPLY_ERROR)
        fail("FUNCTION LOAD", reply ? reply->str : s.context->errstr);
    freeReplyObject(reply);
    arena_free(arena);
    return s;
}

static void send_run(struct server *s, const struct script_run *run)
{
    const char *words[3 + SCRIPT_KEYS + SCRIPT_ARGS_MAX] = {"FCALL", s->names.of[run->script], "4"};
    size_t lens[3 + SCRIPT_KEYS + SCRIPT_ARGS_MAX] = {5, SCRIPT_NAME_BYTES, 1}, count = 3;
    for (size_t i = 0; i < SCRIPT_KEYS; i++, count++) {
        words[count] = run->keys[i].at;
        lens[count] = run->keys[i].len;
    }
    for (size_t i = 0; i < run->arg_count; i++, count++) {
        words[count] = run->args[i].len ? run->args[i].at : "";
        lens[count] = run->args[i].len;
    }
    redisAppendCommandArgv(s->context, (int)count, words, lens);
}

static void hear(struct server *s, size_t count)
{
    while (count--) {
        void *reply;
        if (redisGetReply(s->context, &reply) != REDIS_OK)
            fail("Redis", s->context->errstr);
        if (((redisReply *)reply)->type == REDIS_REPLY_ERROR)
            fail("Redis", ((redisReply *)reply)->str);
        freeReplyObject(reply);
    }
}

static const struct pack_options pack_options = {.ttl_s = LEDGER_TTL_S_DEFAULT,
                                                 .history = LEDGER_HISTORY_DEFAULT};

/* One of each session's, in one pipeline. */
static void run_all(struct server *s, enum script script, struct talk *talks, uint32_t sessions)
{
    struct arena *arena = arena_new();
    for (uint32_t i = 0; i < sessions; i++) {
        char keys[SCRIPT_KEYS][SCRIPT_KEY_BYTES];
        struct script_run run;
        struct ledger_admit admit = admit_of(&talks[i]);
        struct ledger_settle settle = settle_of(&talks[i]);
        script_begin(&run, script, talks[i].session, keys);
        if (script == SCRIPT_ADMIT)
            pack_admit(&run, &admit, &pack_options, arena);
        else
            pack_settle(&run, &settle, &pack_options, arena);
        send_run(s, &run);
        talks[i].calls += script == SCRIPT_SETTLE;
    }
    arena_free(arena);
    hear(s, sessions);
}

/* µs per command, by the statistics of the server since they were reset. */
static double own_us(struct server *s)
{
    redisReply *reply = ask(s, "INFO commandstats");
    const char *at = strstr(reply->str, "cmdstat_fcall:");
    const char *us = at ? strstr(at, "usec_per_call=") : NULL;
    double value = us ? strtod(us + strlen("usec_per_call="), NULL) : 0;
    freeReplyObject(reply);
    return value;
}

static double timed(struct server *s, enum script script, struct talk *talks, uint32_t sessions)
{
    tell(s, "CONFIG RESETSTAT");
    run_all(s, script, talks, sessions);
    return own_us(s);
}

static double bytes_of(struct server *s, struct talk *talks, uint32_t sessions, unsigned key)
{
    long long sum = 0;
    for (uint32_t i = 0; i < sessions; i++) {
        char keys[SCRIPT_KEYS][SCRIPT_KEY_BYTES];
        struct script_run run;
        script_begin(&run, SCRIPT_VIEW, talks[i].session, keys);
        redisReply *reply = ask(s, "MEMORY USAGE %b", keys[key], (size_t)SCRIPT_KEY_BYTES);
        sum += reply->type == REDIS_REPLY_INTEGER ? reply->integer : 0;
        freeReplyObject(reply);
    }
    return (double)sum / sessions;
}

static int bench_scripts(char **argv)
{
    uint32_t sessions = (uint32_t)atoi(argv[1]), rounds = (uint32_t)atoi(argv[2]);
    struct server s = connect_to(argv[0]);
    struct arena *arena = arena_new();
    struct talk *talks = ARENA_ARRAY(arena, struct talk, sessions);
    tell(&s, "FLUSHALL");
    for (uint32_t i = 0; i < sessions; i++)
        talks[i] = talk_of(arena, i);
    for (uint32_t i = 0; i < WINDOW_PAIRS; i++) {
        run_all(&s, SCRIPT_ADMIT, talks, sessions);
        run_all(&s, SCRIPT_SETTLE, talks, sessions);
    }
    for (uint32_t round = 0; round < rounds; round++) {
        double admit = timed(&s, SCRIPT_ADMIT, talks, sessions);
        double settle = timed(&s, SCRIPT_SETTLE, talks, sessions);
        printf("admit_us=%.2f settle_us=%.2f\n", admit, settle);
    }
    printf("hot_bytes=%.0f journal_bytes=%.0f names_bytes=%.0f\n", bytes_of(&s, talks, sessions, 0),
           bytes_of(&s, talks, sessions, 1), bytes_of(&s, talks, sessions, 2));
    redisFree(s.context);
    arena_free(arena);
    return 0;
}

/* ---- calls in flight, as a daemon has them
 * --------------------------------------------------------------------- */

struct flight {
    struct ledger *ledger;
    uint64_t pairs;
    bool counting;
    uint32_t latencies[LATENCY_MAX + 1];
};

struct agent {
    struct flight *flight;
    struct talk talk;
    struct arena *arena;
    struct ledger_admit admit;
    struct ledger_settle settle;
    struct ledger_answer answer;
    struct ledger_settled settled;
    int64_t began_us;
};

static void begin_pair(struct agent *agent);

static void on_settled(void *owner)
{
    struct agent *agent = owner;
    struct flight *flight = agent->flight;
    if (agent->settled.error != OK)
        fail("settle", agent->settled.why.text);
    if (flight->counting) {
        int64_t us = clock_mono_us() - agent->began_us;
        flight->pairs++;
        flight->latencies[us < LATENCY_MAX ? us : LATENCY_MAX]++;
    }
    agent->talk.calls++;
    arena_free(agent->arena);
    begin_pair(agent);
}

static void on_admitted(void *owner)
{
    struct agent *agent = owner;
    must_run(&agent->answer);
    if (strcmp(agent->answer.engine, "redis") != 0)
        fail("admit", "another engine answered than Redis");
    agent->settle = settle_of(&agent->talk);
    ledger_settle(agent->flight->ledger, &agent->settle, agent->arena, &agent->settled, on_settled, agent);
}

static void begin_pair(struct agent *agent)
{
    agent->arena = arena_new();
    agent->began_us = clock_mono_us();
    agent->admit = admit_of(&agent->talk);
    ledger_admit(agent->flight->ledger, &agent->admit, agent->arena, &agent->answer, on_admitted, agent);
}

static double spin(struct loop *loop, double seconds)
{
    int64_t from = clock_mono_us(), now = from;
    while ((double)(now - from) < seconds * 1e6) {
        loop_turn(loop, true);
        now = clock_mono_us();
    }
    return (double)(now - from) / 1e6;
}

static uint32_t percentile(const struct flight *flight, double share)
{
    uint64_t wanted = (uint64_t)((double)flight->pairs * share), seen = 0;
    for (uint32_t us = 0; us <= LATENCY_MAX; us++)
        if ((seen += flight->latencies[us]) > wanted)
            return us;
    return LATENCY_MAX;
}

static int bench_flight(char **argv)
{
    static struct flight flight;
    static struct agent agents[IN_FLIGHT_MAX];
    uint32_t count = (uint32_t)atoi(argv[1]);
    char address[128];
    snprintf(address, sizeof(address), "unix:%s", argv[0]);
    struct loop *loop = loop_new();
    struct ledger_options options = {.on_outage = LEDGER_OUTAGE_CLOSED};
    struct ledger_redis redis = {.loop = loop, .address = address, .timeout_ms = 5000};
    struct arena *arena = arena_new();
    struct why why;
    if (count > IN_FLIGHT_MAX)
        fail("flight", "at most 256");
    if (ledger_new_redis(&options, &redis, &flight.ledger, &why) != OK)
        fail("Redis", why.text);
    while (!ledger_is_settled(flight.ledger))
        loop_turn(loop, true);
    for (uint32_t i = 0; i < count; i++) {
        agents[i].flight = &flight;
        agents[i].talk = talk_of(arena, i + (uint32_t)(hash_random() & 0xffffff));
        begin_pair(&agents[i]);
    }
    spin(loop, 0.3);
    flight.counting = true;
    double took = spin(loop, atof(argv[2]));
    printf("pairs_s=%.0f p50_us=%u p99_us=%u\n", (double)flight.pairs / took, percentile(&flight, 0.50),
           percentile(&flight, 0.99));
    return 0; /* calls are still in flight: the process ends with them */
}

/* ---- what redis-benchmark runs
 * ---------------------------------------------------------------------------------- */

#define BENCH_FUNCTION "tg1_bench_0123456789abcdef0123456789abcd" /* as long as ours are */
#define BENCH_SESSIONS 256u
#define ADMIT_TAIL                                                                                           \
    21u                 /* bytes of the packed argument before what is behind admission, tool and arguments  \
                         */
#define SETTLE_TAIL 27u /* and behind the result */

/*
 * redis-benchmark sends no zero bytes and always the same ones, so the packed argument is made in the server,
 * of two constants and a number: one concatenation more than what a daemon's command costs. Its commands, in
 * turn an admit and its settle, are as long as a daemon's, and the sessions as many as in `flight`.
 */
static const char wrapper[] =
    "local calls, settles, stems = 0, false, {}\n"
    "local function bench(_, _)\n"
    "  if not functions then make() end\n"
    "  if not settles then calls = calls + 1 end\n"
    "  settles = not settles\n"
    "  local n = calls %% %u\n"
    "  local keys = stems[n]\n"
    "  if not keys then\n"
    "    local stem = 'tg1:{' .. string.format('%%032d', n) .. '}:'\n"
    "    keys = { stem .. 's', stem .. 'h', stem .. 'd', stem .. 'i' }\n"
    "    stems[n] = keys\n"
    "  end\n"
    "  local a, b = calls %% 256, calls %% 65536\n"
    "  local number = string.char(calls / 16777216 %% 256, calls / 65536 %% 256, (b - a) / 256, a)\n"
    "  local tool = tools[calls %% #tools + 1]\n"
    "  local place = '%s' .. number .. tool[2] .. number .. '\\1\\2'\n"
    "  if settles then return functions[1](keys, { place .. '%s', tool[1], '', '' }) end\n"
    "  return functions[2](keys, { place .. number .. '\\1\\2' .. '%s', tool[1], '', '' })\n"
    "end\n"
    "redis.register_function('" BENCH_FUNCTION "', bench)\n";

static const char *escaped(struct arena *arena, struct str bytes)
{
    struct buf out = buf_in(arena);
    for (size_t i = 0; i < bytes.len; i++)
        buf_printf(&out, "\\%03u", (unsigned char)bytes.at[i]);
    buf_byte(&out, '\0');
    return out.at;
}

static struct script_run packed(struct arena *arena, struct talk *talk, enum script script)
{
    struct script_run run = {.script = script};
    struct ledger_admit admit = admit_of(talk);
    struct ledger_settle settle = settle_of(talk);
    if (script == SCRIPT_ADMIT)
        pack_admit(&run, &admit, &pack_options, arena);
    else
        pack_settle(&run, &settle, &pack_options, arena);
    return run;
}

static void print_tools(struct arena *arena, struct talk *talk)
{
    printf("local tools = {\n");
    for (talk->calls = 0; talk->calls < TOOLS; talk->calls++) {
        struct script_run run = packed(arena, talk, SCRIPT_ADMIT);
        struct str hash = {run.args[0].at + 12, 3};
        printf("  { '%s', '%s' },\n", tools[talk->calls].name, escaped(arena, hash));
    }
    printf("}\n");
}

static int bench_library(char **argv)
{
    struct arena *arena = arena_new();
    struct script_names names;
    struct talk talk = talk_of(arena, 1);
    (void)argv;
    struct str library = script_library(arena, "", &names);
    printf(STR_FMT, STR_ARG(library));
    print_tools(arena, &talk);
    talk.calls = 1;
    struct str admit = packed(arena, &talk, SCRIPT_ADMIT).args[0];
    struct str settle = packed(arena, &talk, SCRIPT_SETTLE).args[0];
    printf(wrapper, BENCH_SESSIONS, escaped(arena, (struct str){admit.at, 8}),
           escaped(arena, str_from(admit, ADMIT_TAIL)), escaped(arena, str_from(settle, SETTLE_TAIL)));
    arena_free(arena);
    return 0;
}

/* ----------------------------------------------------------------------------------------------------------------------
 */

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int args;
        int (*run)(char **argv);
    } kinds[] = {{"local", 3, bench_local},
                 {"scripts", 3, bench_scripts},
                 {"flight", 3, bench_flight},
                 {"library", 0, bench_library}};
    for (size_t i = 0; argc > 1 && i < sizeof(kinds) / sizeof(*kinds); i++)
        if (strcmp(argv[1], kinds[i].name) == 0 && argc == kinds[i].args + 2)
            return kinds[i].run(argv + 2);
    fprintf(stderr, "usage: see the head of tests/bench/ledger.c\n");
    return 2;
}
