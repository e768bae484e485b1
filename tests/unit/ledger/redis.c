/*
 * Sends the same requests to the local engine and to a Redis that this test
 * starts: every reply is compared byte for byte, and at the end every session.
 * The test has its own clock, which jumps, also back; the TTLs of Redis' keys
 * are adjusted to it. It sends TOOLGATE_LEDGER_OPERATIONS requests, by default
 * 20,000. Skipped with a message if there is no redis-server.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ledger/ledger_case.h"

#include "base/buf.h"
#include "json/parse.h"
#include "ledger/local.h"
#include "ledger/pack.h"

#define REQUESTS  20000
#define SESSIONS  12
#define TTL_S     3600
#define UNSURE_MS 50 /* a key with a shorter TTL may or may not have expired */

/* Redis' own clock would differ from the test's: this prefix of the scripts takes the time from two more
 * keys. */
static const char test_clock[] = "local server = redis\n"
                                 "local redis = { call = function(name, ...)\n"
                                 "  if name == 'TIME' then return { KEYS[5], KEYS[6] } end\n"
                                 "  return server.call(name, ...)\n"
                                 "end }\n";

struct redis {
    char folder[64], socket_path[96];
    pid_t pid;
    int fd;
    FILE *in;
    struct script_names shas, functions;
    int64_t adjusted_ms; /* Redis' clock at the last adjustment */
};

/* ---- a server, and its protocol ------------------------------------------- */

static bool is_ready(int from)
{
    FILE *out = fdopen(from, "r");
    char line[512];
    bool ready = false;
    while (!ready && fgets(line, sizeof(line), out))
        ready = strstr(line, "ready to accept connections") || strstr(line, "Ready to accept connections");
    fclose(out);
    return ready;
}

static bool start_server(struct redis *redis)
{
    int out[2];
    snprintf(redis->folder, sizeof(redis->folder), "/tmp/toolgate-redis-XXXXXX");
    assert_non_null(mkdtemp(redis->folder));
    snprintf(redis->socket_path, sizeof(redis->socket_path), "%s/s", redis->folder);
    assert_int_equal(pipe(out), 0);
    redis->pid = fork();
    if (redis->pid == 0) {
        dup2(out[1], STDOUT_FILENO);
        dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
        close(out[0]);
        /* Redis orders a hash with one long value differently; the order has no meaning. */
        execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", redis->socket_path, "--save",
               "", "--dir", redis->folder, "--hash-max-listpack-value", "65536",
               "--hash-max-listpack-entries", "65536", (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    return is_ready(out[0]);
}

static void stop_server(struct redis *redis)
{
    if (redis->in)
        fclose(redis->in);
    kill(redis->pid, SIGKILL);
    waitpid(redis->pid, NULL, 0);
    unlink(redis->socket_path);
    rmdir(redis->folder);
}

static void connect_to(struct redis *redis)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", redis->socket_path);
    redis->fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(connect(redis->fd, (struct sockaddr *)&address, sizeof(address)), 0);
    redis->in = fdopen(redis->fd, "r");
}

static void put(struct buf *buf, struct str s)
{
    buf_printf(buf, "$%zu\r\n", s.len);
    buf_str(buf, s);
    buf_text(buf, "\r\n");
}

/* The script's name, as a function of the library or as a hash. */
static struct str name_of(const struct redis *redis, enum script script, bool by_function)
{
    const struct script_names *names = by_function ? &redis->functions : &redis->shas;
    return (struct str){names->of[script], SCRIPT_NAME_BYTES};
}

/* Reads one bulk string; any other reply fails the test with the server's error. */
static struct str read_reply(struct redis *redis, struct arena *arena)
{
    char line[1024];
    assert_non_null(fgets(line, sizeof(line), redis->in));
    if (line[0] != '$')
        fail_msg("redis: %s", line);
    size_t len = strtoul(line + 1, NULL, 10);
    char *at = arena_alloc(arena, len + 2);
    assert_int_equal(fread(at, 1, len + 2, redis->in), len + 2);
    return (struct str){at, len};
}

static struct str ask(struct redis *redis, struct arena *arena, const struct str *words, size_t count)
{
    struct buf buf = buf_in(arena);
    buf_printf(&buf, "*%zu\r\n", count);
    for (size_t i = 0; i < count; i++)
        put(&buf, words[i]);
    assert_int_equal(write(redis->fd, buf.at, buf.len), buf.len);
    return read_reply(redis, arena);
}

static void load_scripts(struct redis *redis)
{
    struct arena *arena = arena_new();
    for (int i = 0; i < SCRIPT_COUNT; i++) {
        struct str script = script_text(arena, (enum script)i);
        struct str text = arena_printf(arena, "%s" STR_FMT, test_clock, STR_ARG(script));
        struct str words[] = {STR("SCRIPT"), STR("LOAD"), text};
        struct str sha = ask(redis, arena, words, 3);
        assert_int_equal(sha.len, SCRIPT_NAME_BYTES);
        memcpy(redis->shas.of[i], sha.at, SCRIPT_NAME_BYTES);
    }
    struct str library = script_library(arena, test_clock, &redis->functions);
    struct str words[] = {STR("FUNCTION"), STR("LOAD"), library};
    ask(redis, arena, words, 3);
    arena_free(arena);
}

static struct str redis_run(struct redis *redis, const struct script_run *run, int64_t now_ms,
                            bool by_function, struct arena *arena)
{
    struct str words[3 + SCRIPT_KEYS + 2 + SCRIPT_ARGS_MAX];
    size_t count = 0;
    words[count++] = by_function ? STR_LIT("FCALL") : STR_LIT("EVALSHA");
    words[count++] = name_of(redis, run->script, by_function);
    words[count++] = STR_LIT("6");
    for (size_t i = 0; i < SCRIPT_KEYS; i++)
        words[count++] = run->keys[i];
    words[count++] = arena_printf(arena, "%lld", (long long)(now_ms / 1000));
    words[count++] = arena_printf(arena, "%lld", (long long)(now_ms % 1000 * 1000));
    for (size_t i = 0; i < run->arg_count; i++)
        words[count++] = run->args[i];
    return ask(redis, arena, words, count);
}

/* ---- time ----------------------------------------------------------------- */

/* Adjusts the TTLs of Redis' keys by the difference between its clock and the test's. Returns the shortest
 * TTL. */
static const char shorten_lives[] =
    "local least = 9999999\n"
    "for _, key in ipairs(redis.call('KEYS', '*')) do\n"
    "  local left = redis.call('PTTL', key)\n"
    "  if left >= 0 then\n"
    "    left = left - tonumber(ARGV[1])\n"
    "    if left <= 0 then redis.call('DEL', key) else redis.call('PEXPIRE', key, left) end\n"
    "    if left > 0 and left < least then least = left end\n"
    "  end\n"
    "end\n"
    "return tostring(least)\n";

static int64_t real_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Advances the test's clock by `ms`, minus the time that has passed on Redis' clock. */
static long pass(struct redis *redis, int64_t ms, struct arena *arena)
{
    int64_t now = real_ms();
    struct str words[] = {STR("EVAL"), STR_LIT(shorten_lives), STR("0"),
                          arena_printf(arena, "%lld", (long long)(ms - (now - redis->adjusted_ms)))};
    redis->adjusted_ms = now;
    return strtol(arena_dup(arena, ask(redis, arena, words, 4)).at, NULL, 10);
}

/* ---- random requests ------------------------------------------------------ */

struct world {
    uint64_t random;
    int64_t now_ms;
    uint64_t admissions;
    struct ledger_limits limits;
    const char *tool, *args;
    struct ledger_place place;
    struct buf account; /* the last account that a `leave` returned */
};

static uint32_t below(struct world *w, uint32_t n)
{
    w->random = w->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(w->random >> 33) % n;
}

static const char *one_of(struct world *w, const char *const *words, uint32_t count)
{
    return words[below(w, count)];
}

static uint32_t sometimes(struct world *w, uint32_t most)
{
    return below(w, 3) ? 0 : 1 + below(w, most);
}

/* Costs beyond 32 bits occur, because limits are in millionths. */
static uint64_t cost_of(struct world *w, uint32_t most)
{
    return (uint64_t)sometimes(w, most) * (below(w, 2) ? 1 : 3000000000);
}

static struct ledger_allowance allowance(struct world *w, uint32_t more)
{
    return (struct ledger_allowance){
        .calls_per_turn = sometimes(w, 20 * more),
        .calls_per_session = sometimes(w, 100 * more),
        .seconds_per_turn = sometimes(w, 200 * more),
        .cost_per_turn = cost_of(w, 200 * more),
        .cost_per_session = cost_of(w, 900 * more),
    };
}

/* The tool "set" mostly has limits, the session sometimes. */
static void choose_limits(struct world *w)
{
    if (w->tool[0] == 's' && below(w, 4))
        w->limits.tool = allowance(w, 1);
    if (below(w, 10) == 0)
        w->limits.session = allowance(w, 5);
    w->limits.costs = below(w, 2);
    w->limits.cost = w->limits.costs ? cost_of(w, 40) : 0;
    if (w->limits.polls || below(w, 20) == 0)
        w->limits.poll_every_ms = below(w, 3) * 1500;
}

/* Mostly a moment; sometimes longer than a reservation or a session; rarely backwards. */
static void pass_time(struct world *w)
{
    if (below(w, 300) == 0)
        w->now_ms += below(w, 2 * TTL_S * 1000);
    else if (below(w, 300) == 0)
        w->now_ms -= below(w, 5000);
    else
        w->now_ms += below(w, 20) ? below(w, 2000) : below(w, 90000);
}

static void choose(struct world *w, struct arena *arena)
{
    static const char *const tools[] = {"get", "set", "delete", "job_status", "create_task"};
    static const char *const args[] = {"{1}", "{2}", "{3}"};
    static const char *const steps[] = {"", "", "m1", "m2"};
    w->tool = one_of(w, tools, 5);
    w->args = one_of(w, args, 3);
    w->limits = ledger_default_limits;
    w->limits.effects = w->tool[0] == 'g'   ? LEDGER_EFFECTS_READ
                        : w->tool[0] == 's' ? LEDGER_EFFECTS_WRITE
                        : w->tool[0] == 'd' ? LEDGER_EFFECTS_DESTRUCTIVE
                                            : LEDGER_EFFECTS_UNKNOWN;
    w->limits.polls = w->tool[0] == 'j' && below(w, 2);
    w->limits.same_call = 1 + below(w, 5);
    choose_limits(w);
    w->place = (struct ledger_place){
        .session = arena_printf(arena, "s%u", below(w, SESSIONS)),
        .anonymous = below(w, 8) == 0,
        .anonymous_repeats = 8,
        .turn = below(w, 4) ? 0 : (uint32_t)(w->admissions / 150 + below(w, 2)),
        .turn_idle_s = below(w, 3) ? 0 : 60,
        .step = str_of(one_of(w, steps, 4)),
    };
    pass_time(w);
}

static struct hash128 *ids_of(struct world *w, struct arena *arena, size_t count)
{
    struct hash128 *ids = ARENA_ARRAY(arena, struct hash128, count + 1);
    for (size_t i = 0; i < count; i++)
        ids[i] = hash_stable(arena_printf(arena, "id%u", below(w, 900)));
    return ids;
}

static void random_admit(struct world *w, struct script_run *run, const struct pack_options *options,
                         struct arena *arena)
{
    struct ledger_admit *request = ARENA_NEW(arena, struct ledger_admit);
    *request = (struct ledger_admit){
        .place = w->place,
        .admission = below(w, 12) ? ++w->admissions : w->admissions,
        .tool = str_of(w->tool),
        .ext = STR_LIT("x"),
        .arguments = case_hash(w->args),
        .so_far = below(w, 3) ? LEDGER_SO_FAR_VALID : (enum ledger_so_far)below(w, 4),
        .refused_as = STR_LIT("forbidden"),
        .limits = &w->limits,
        .id_count = below(w, 4) ? 0 : below(w, 6),
        .wants_history = below(w, 10) == 0,
        .wants_facts = below(w, 10) == 0,
        .reservation_ms = 1 + below(w, 60000),
    };
    request->ids = ids_of(w, arena, request->id_count);
    pack_admit(run, request, options, arena);
}

static void random_settle(struct world *w, struct script_run *run, const struct pack_options *options,
                          struct arena *arena)
{
    static const char *const results[] = {"r", "r", "r", "s"};
    static const char *const facts[] = {"{\"a\":1}", "{\"a\":[2],\"b\":null}", "{\"c\":\"x\"}"};
    struct ledger_settle *request = ARENA_NEW(arena, struct ledger_settle);
    struct json *fact = ARENA_NEW(arena, struct json);
    struct json_error fault;
    json_parse(arena, str_of(one_of(w, facts, 3)), NULL, fact, &fault);
    *request = (struct ledger_settle){
        .place = w->place,
        .admission = w->admissions - below(w, below(w, 10) ? 3 : 80),
        .tool = str_of(w->tool),
        .arguments = case_hash(w->args),
        .class = below(w, 3) ? LEDGER_CLASS_OK : (enum ledger_class)below(w, LEDGER_CLASS_COUNT),
        .label = STR_LIT("ok"),
        .result = case_hash(one_of(w, results, 4)),
        .limits = &w->limits,
        .gives_id_count = below(w, 5) ? 0 : below(w, LEDGER_IDS_MAX),
        .facts = below(w, 5) ? NULL : fact,
        .cost_told = below(w, 3) == 0,
        .cost = cost_of(w, 40),
    };
    request->gives_ids = ids_of(w, arena, request->gives_id_count);
    pack_settle(run, request, options, arena);
}

/* The account of the last `leave`, or none; with doubts about recent admissions; sometimes repeated. */
static void random_merge(struct world *w, struct script_run *run, const struct pack_options *options,
                         struct arena *arena)
{
    struct buf doubts = buf_in(arena);
    for (uint32_t i = below(w, 3); i > 0; i--) {
        struct ledger_admit doubt = {
            .admission = w->admissions - below(w, 6), .tool = str_of(w->tool), .limits = &w->limits};
        pack_doubt(&doubts, &doubt);
    }
    struct str account = below(w, 4) ? buf_view(&w->account) : STR_NONE;
    pack_merge(run, w->admissions / 4, buf_view(&doubts), account, options, arena);
}

/* A settle usually follows its admit, with the same tool, arguments and session. */
static enum script random_request(struct world *w, struct script_run *run,
                                  char keys[SCRIPT_KEYS][SCRIPT_KEY_BYTES], struct arena *arena,
                                  enum script last)
{
    static const struct pack_options options = {.ttl_s = TTL_S, .history = 20};
    uint32_t dice = below(w, 100);
    enum script script = last == SCRIPT_ADMIT && dice < 85 ? SCRIPT_SETTLE
                         : dice < 88                       ? SCRIPT_ADMIT
                         : dice < 90                       ? SCRIPT_LEAVE
                         : dice < 92                       ? SCRIPT_MERGE
                         : dice < 94                       ? SCRIPT_VIEW
                         : dice < 95                       ? SCRIPT_PEEK
                         : dice < 97                       ? SCRIPT_SEE
                         : dice < 99                       ? SCRIPT_TURN
                                                           : SCRIPT_RESET;
    if (script != SCRIPT_SETTLE)
        choose(w, arena);
    script_begin(run, script, w->place.session, keys);
    switch (script) {
    case SCRIPT_ADMIT:
        random_admit(w, run, &options, arena);
        break;
    case SCRIPT_SETTLE:
        random_settle(w, run, &options, arena);
        break;
    case SCRIPT_TURN:
        pack_turn(run, below(w, 2) ? 0 : 7, STR_LIT("a goal"), &options, arena);
        break;
    case SCRIPT_SEE:
        pack_see(run, ids_of(w, arena, 9), 9, &options, arena);
        break;
    case SCRIPT_RESET:
        pack_reset(run, below(w, 3) ? str_of(w->tool) : STR_NONE, &options, arena);
        break;
    case SCRIPT_LEAVE:
        pack_leave(run, &options, arena);
        break;
    case SCRIPT_MERGE:
        random_merge(w, run, &options, arena);
        break;
    default:
        break;
    }
    return script;
}

static void compare(int at, const struct script_run *run, struct str here, struct str there)
{
    if (str_eq(here, there))
        return;
    size_t i = 0;
    while (i < here.len && i < there.len && here.at[i] == there.at[i])
        i++;
    fail_msg("request %d, %s: byte %zu of %zu here, %zu in Redis differs", at, script_name(run->script), i,
             here.len, there.len);
}

static void both_engines_reply_the_same(void **state)
{
    (void)state;
    const char *told = getenv("TOOLGATE_LEDGER_OPERATIONS");
    int requests = told ? atoi(told) : REQUESTS;
    struct redis redis = {.fd = -1};
    struct local *local;
    struct why why;
    if (!start_server(&redis)) {
        stop_server(&redis);
        print_message("skipped: no redis-server\n");
        skip();
    }
    connect_to(&redis);
    load_scripts(&redis);
    assert_int_equal(local_new(LEDGER_MEMORY_BYTES, &local, &why), OK);
    struct world w = {.random = hash_random(), .now_ms = 1700000000000, .place = {.session = STR("s0")}};
    print_message("seed %llu, %d requests\n", (unsigned long long)w.random, requests);
    struct arena *arena = arena_new(), *last_arena = NULL;
    enum script last = SCRIPT_VIEW;
    redis.adjusted_ms = real_ms();
    for (int i = 0; i < requests; i++) {
        char keys[SCRIPT_KEYS][SCRIPT_KEY_BYTES];
        struct script_run run;
        struct str here, there;
        int64_t before = w.now_ms;
        last = random_request(&w, &run, keys, arena, last);
        long least = pass(&redis, w.now_ms - before, arena);
        for (; least < UNSURE_MS; w.now_ms += 2 * UNSURE_MS)
            least = pass(&redis, 2 * UNSURE_MS, arena);
        if (local_run(local, &run, w.now_ms, arena, &here, &why) != OK)
            fail_msg("request %d: %s", i, why.text);
        there = redis_run(&redis, &run, w.now_ms, below(&w, 2), arena);
        compare(i, &run, here, there);
        if (last == SCRIPT_LEAVE) {
            w.account.len = 0;
            buf_str(&w.account, here);
        }
        if (last != SCRIPT_ADMIT) { /* a settle still names its session */
            arena_free(last_arena);
            last_arena = arena;
            arena = arena_new();
        }
    }
    for (uint32_t s = 0; s < SESSIONS; s++) {
        char keys[SCRIPT_KEYS][SCRIPT_KEY_BYTES];
        struct script_run run;
        struct str here;
        script_begin(&run, SCRIPT_VIEW, arena_printf(arena, "s%u", s), keys);
        assert_int_equal(local_run(local, &run, w.now_ms, arena, &here, &why), OK);
        compare(requests, &run, here, redis_run(&redis, &run, w.now_ms, true, arena));
    }
    buf_clear(&w.account);
    arena_free(last_arena);
    arena_free(arena);
    local_free(local);
    stop_server(&redis);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(both_engines_reply_the_same)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
