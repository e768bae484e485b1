/*
 * The parts of `make bench-ledger` that must be the daemon's own code; ledger.lua starts the servers, runs
 * these in turn and prints the results. Each prints numbers under names.
 *
 *   ledger local SESSIONS PAIRS ROUNDS   µs of an admit and a settle in the memory store, one line per round
 *   ledger memory SESSIONS CALLS         bytes of a session in the memory store after so many calls
 *   ledger flight SOCKET N SECONDS       pairs per second with N in flight, in Redis, as a daemon sends them
 */
#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "io/conn.h"
#include "ledger/ledger.h"

#include <stdio.h>
#include <stdlib.h>

#define TURN_CALLS    12u /* then the user speaks */
#define IN_FLIGHT_MAX 256u
#define LATENCY_MAX   100000u /* µs; slower ones share the last place */
#define WARM_S        1.0     /* of flight: windows and journals are full then */
#define MEMORY_BYTES  1073741824u

static void fail(const char *doing, const char *why)
{
    fprintf(stderr, "bench of the ledger: %s: %s\n", doing, why);
    exit(1);
}

/* ---- the work: what agents do, every call with arguments of its own ---- */

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

static struct ledger_call admit_of(struct talk *t)
{
    size_t tool = t->calls % TOOLS;
    t->limits = ledger_default_limits;
    t->limits.effects = tools[tool].reads ? LEDGER_EFFECTS_READ : LEDGER_EFFECTS_WRITE;
    return (struct ledger_call){.place = place_of(t),
                                .admission = ((uint64_t)t->number << 32 | t->calls) + 1,
                                .tool = str_of(tools[tool].name),
                                .arguments = hash_of(t, 0),
                                .limits = &t->limits};
}

static struct ledger_call settle_of(struct talk *t)
{
    struct ledger_call admitted = admit_of(t);
    return (struct ledger_call){.place = admitted.place,
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

/* ---- the memory store ---- */

static void pair_here(struct ledger *ledger, struct talk *t)
{
    struct arena *arena = arena_new();
    struct ledger_answer answer;
    struct ledger_answer settled;
    struct ledger_call admit = admit_of(t);
    ledger_ask(ledger, LEDGER_ADMIT, &admit, arena, &answer, NULL, NULL);
    must_run(&answer);
    struct ledger_call settle = settle_of(t);
    ledger_ask(ledger, LEDGER_SETTLE, &settle, arena, &settled, NULL, NULL);
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

static struct ledger *ledger_in_memory(void)
{
    struct ledger_options options = {.memory_bytes = MEMORY_BYTES};
    return ledger_new_local(&options);
}

static int bench_local(char **argv)
{
    uint32_t sessions = (uint32_t)atoi(argv[0]), pairs = (uint32_t)atoi(argv[1]),
             rounds = (uint32_t)atoi(argv[2]);
    struct arena *arena = arena_new();
    uint32_t *calls = ARENA_ARRAY(arena, uint32_t, sessions);
    struct ledger *ledger = ledger_in_memory();
    for (uint32_t i = 0; i < sessions * 40 || i < 100000; i++) /* windows are full, what is hot is compiled */
        pair_of(ledger, calls, i % sessions);
    for (uint32_t round = 0; round < rounds; round++) {
        int64_t from = clock_mono_ns();
        for (uint32_t i = 0; i < pairs; i++)
            pair_of(ledger, calls, (uint32_t)((uint64_t)i * 7919 % sessions));
        printf("pair_us=%.3f\n", (double)(clock_mono_ns() - from) / 1000 / pairs);
    }
    ledger_free(ledger);
    arena_free(arena);
    return 0;
}

static int bench_memory(char **argv)
{
    uint32_t sessions = (uint32_t)atoi(argv[0]), pairs = (uint32_t)atoi(argv[1]);
    struct arena *arena = arena_new();
    uint32_t *calls = ARENA_ARRAY(arena, uint32_t, sessions);
    struct ledger *ledger = ledger_in_memory();
    struct ledger_status status;
    for (uint32_t i = 0; i < sessions * pairs; i++)
        pair_of(ledger, calls, i % sessions);
    ledger_status(ledger, &status);
    printf("session_bytes=%zu\n", status.bytes / status.sessions);
    ledger_free(ledger);
    arena_free(arena);
    return 0;
}

/* ---- calls in flight, as a daemon has them ---- */

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
    struct ledger_call admit;
    struct ledger_call settle;
    struct ledger_answer answer;
    struct ledger_answer settled;
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
    ledger_ask(agent->flight->ledger, LEDGER_SETTLE, &agent->settle, agent->arena, &agent->settled,
               on_settled, agent);
}

static void begin_pair(struct agent *agent)
{
    agent->arena = arena_new();
    agent->began_us = clock_mono_us();
    agent->admit = admit_of(&agent->talk);
    ledger_ask(agent->flight->ledger, LEDGER_ADMIT, &agent->admit, agent->arena, &agent->answer, on_admitted,
               agent);
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
    struct ledger_options options = {
        .on_outage = LEDGER_OUTAGE_CLOSED, .loop = loop, .address = address, .timeout_ms = 5000};
    struct arena *arena = arena_new();
    struct why why;
    if (count > IN_FLIGHT_MAX)
        fail("flight", "at most 256");
    if (ledger_new_redis(&options, &flight.ledger, &why) != OK)
        fail("Redis", why.text);
    while (!ledger_is_settled(flight.ledger))
        loop_turn(loop, true);
    for (uint32_t i = 0; i < count; i++) {
        agents[i].flight = &flight;
        agents[i].talk = talk_of(arena, i + (uint32_t)(hash_random() & 0xffffff));
        begin_pair(&agents[i]);
    }
    spin(loop, WARM_S);
    flight.counting = true;
    double took = spin(loop, atof(argv[2]));
    printf("pairs_s=%.0f p50_us=%u p99_us=%u\n", (double)flight.pairs / took, percentile(&flight, 0.50),
           percentile(&flight, 0.99));
    return 0; /* calls are still in flight: the process ends with them */
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int args;
        int (*run)(char **argv);
    } kinds[] = {{"local", 3, bench_local}, {"memory", 2, bench_memory}, {"flight", 3, bench_flight}};
    for (size_t i = 0; argc > 1 && i < sizeof(kinds) / sizeof(*kinds); i++)
        if (strcmp(argv[1], kinds[i].name) == 0 && argc == kinds[i].args + 2)
            return kinds[i].run(argv + 2);
    fprintf(stderr, "usage: see the head of tests/bench/ledger.c\n");
    return 2;
}
