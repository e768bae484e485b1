/*
 * Replays every recorded session through admit and settle: runaway sessions are
 * stopped, and sessions without errors are not. Reads the corpus beside the
 * repository; skipped with a message if it is absent.
 */
#include <glob.h>

#include "ledger/ledger_case.h"

#include "base/map.h"
#include "json/write.h"
#include "json/parse.h"

#define CORPUS            "../shared/data/corpus/trajectories-*.ndjson"
#define FILE_MAX_BYTES    (64u << 20)
#define RUNAWAY_REPEATS   64u /* identical calls of a session that make it a runaway */
#define RUNAWAYS_EXPECTED 6u
#define TURN_IDLE_S       90u
#define CALL_MS           1000   /* between two calls of a turn */
#define SILENCE_MS        120000 /* while the user writes */

struct call {
    struct str tool, env;
    uint32_t turn, step;
    struct hash128 arguments, result;
    struct str text; /* of the arguments, to be shown */
    bool refused;    /* by the ledger */
};

struct session {
    struct str name;
    struct call *calls;
    size_t count, cap;
    bool calm;      /* the environment reported no error */
    size_t repeats; /* of its most frequent call */
    size_t refusals, first_refusal;
    struct str code; /* of the first refusal */
};

struct corpus {
    struct arena *arena;
    struct map *by_name;
    struct session *sessions[4096];
    size_t count;
};

/* ---- reading -------------------------------------------------------------- */

static struct session *session_named(struct corpus *corpus, struct str name)
{
    struct session *session = map_get(corpus->by_name, name);
    if (!session) {
        assert_true(corpus->count < sizeof(corpus->sessions) / sizeof(*corpus->sessions));
        session = ARENA_NEW(corpus->arena, struct session);
        session->name = name;
        session->calm = true;
        map_add(corpus->by_name, name, session);
        corpus->sessions[corpus->count++] = session;
    }
    return session;
}

static struct call *new_call(struct arena *arena, struct session *session)
{
    if (session->count == session->cap) {
        size_t cap = session->cap ? session->cap * 2 : 16;
        struct call *calls = ARENA_ARRAY(arena, struct call, cap);
        if (session->count)
            memcpy(calls, session->calls, session->count * sizeof(*calls));
        session->calls = calls;
        session->cap = cap;
    }
    return &session->calls[session->count++];
}

static uint32_t number(const struct json *row, const char *key)
{
    int64_t n = 0;
    json_int(json_get_text(row, key), &n);
    return (uint32_t)n;
}

static void read_row(struct corpus *corpus, struct str line)
{
    struct json row;
    struct json_error fault;
    if (json_parse(corpus->arena, line, NULL, &row, &fault) != OK)
        fail_msg("%s", fault.text);
    struct session *session = session_named(corpus, json_str(json_get_text(&row, "session")));
    struct call *call = new_call(corpus->arena, session);
    const struct json *arguments = json_get_text(&row, "arguments");
    *call = (struct call){
        .tool = json_str(json_get_text(&row, "tool")),
        .env = json_str(json_get_text(&row, "env")),
        .turn = number(&row, "turn"),
        .step = number(&row, "step"),
        .arguments = json_fingerprint(corpus->arena, arguments, NULL, 0),
        .result = json_fingerprint(corpus->arena, json_get_text(&row, "result"), NULL, 0),
        .text = {arguments->raw, arguments->raw_len},
    };
    if (!str_is(call->env, "ok"))
        session->calm = false;
}

static void read_file(struct corpus *corpus, const char *path)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *text = arena_alloc(corpus->arena, FILE_MAX_BYTES);
    size_t len = fread(text, 1, FILE_MAX_BYTES, file);
    fclose(file);
    for (char *at = text, *end = text + len; at < end;) {
        char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop ? stop : end;
        if (stop > at)
            read_row(corpus, (struct str){at, (size_t)(stop - at)});
        at = stop + 1;
    }
}

static bool same_call(const struct call *a, const struct call *b)
{
    return str_eq(a->tool, b->tool) && memcmp(&a->arguments, &b->arguments, sizeof(a->arguments)) == 0;
}

static void count_repeats(struct session *session)
{
    for (size_t i = 0; i < session->count; i++) {
        size_t same = 0;
        for (size_t j = 0; j < session->count; j++)
            same += same_call(&session->calls[i], &session->calls[j]);
        session->repeats = same > session->repeats ? same : session->repeats;
    }
}

static bool read_corpus(struct corpus *corpus)
{
    glob_t files;
    bool found = glob(CORPUS, 0, NULL, &files) == 0;
    corpus->arena = arena_new();
    corpus->by_name = map_new(corpus->arena);
    for (size_t i = 0; found && i < files.gl_pathc; i++)
        read_file(corpus, files.gl_pathv[i]);
    for (size_t i = 0; i < corpus->count; i++)
        count_repeats(corpus->sessions[i]);
    globfree(&files);
    return found;
}

/* ---- replaying ------------------------------------------------------------ */

static enum ledger_so_far so_far_of(const struct call *call)
{
    if (str_is(call->env, "argument_error"))
        return LEDGER_SO_FAR_INVALID;
    return str_is(call->env, "unknown_tool") ? LEDGER_SO_FAR_REFUSED : LEDGER_SO_FAR_VALID;
}

static enum ledger_class class_of(const struct call *call)
{
    if (str_is(call->env, "ok"))
        return LEDGER_CLASS_OK;
    return str_is(call->env, "transient") ? LEDGER_CLASS_TRANSIENT : LEDGER_CLASS_TOOL_ERROR;
}

static bool refused_by_ledger(const struct ledger_answer *answer)
{
    return answer->says == LEDGER_HALT || (answer->says == LEDGER_REFUSE && answer->code.len);
}

/* What the client tells of turns and steps. Without them, a user may take longer than turn_idle_s to write,
 * or never. */
enum way { TOLD, SILENT, ENDLESS };

/* tests/golden/trajectories.txt explains each. Without turns: tau2/gpt5-toolorch-retail/9-0, too. */
static const size_t calm_refused_max[] = {[TOLD] = 4, [SILENT] = 4, [ENDLESS] = 5};

static void set_place(struct ledger_case *t, enum way way, const struct session *session, size_t at,
                      char step[16])
{
    const struct call *call = &session->calls[at];
    t->place.session = session->name;
    if (way == TOLD) {
        t->place.turn = call->turn;
        t->place.step = (struct str){step, (size_t)snprintf(step, 16, "%u", call->step)};
        return;
    }
    bool user_wrote = at > 0 && call->turn != call[-1].turn;
    case_now += way == SILENT && user_wrote ? SILENCE_MS : CALL_MS;
    t->place.turn = 0;
    t->place.step = STR_NONE;
    t->place.turn_idle_s = TURN_IDLE_S;
}

/* Replays a session as a daemon would; a refused call does not run, and the recording continues. */
static void replay_call(struct ledger_case *t, enum way way, struct session *session, size_t at)
{
    struct call *call = &session->calls[at];
    char step[16];
    set_place(t, way, session, at, step);
    struct ledger_call admit = {.place = t->place,
                                .admission = ++t->admissions,
                                .tool = call->tool,
                                .arguments = call->arguments,
                                .so_far = so_far_of(call),
                                .refused_as = STR_LIT("unknown_tool"),
                                .limits = &t->limits};
    ledger_ask(t->ledger, LEDGER_ADMIT, &admit, t->arena, &t->answer, NULL, NULL);
    if (t->answer.error != OK)
        fail_msg("%s", t->answer.why.text);
    call->refused = refused_by_ledger(&t->answer);
    if (call->refused && !session->refusals++) {
        session->first_refusal = at;
        session->code = t->answer.code;
    }
    if (t->answer.says != LEDGER_RUN)
        return;
    struct ledger_call settle = {.place = t->place,
                                 .admission = t->admissions,
                                 .tool = call->tool,
                                 .arguments = call->arguments,
                                 .class = class_of(call),
                                 .label = STR_LIT("ok"),
                                 .result = call->result,
                                 .masked = call->result,
                                 .limits = &t->limits};
    ledger_ask(t->ledger, LEDGER_SETTLE, &settle, t->arena, &t->settled, NULL, NULL);
    if (t->settled.error != OK)
        fail_msg("%s", t->settled.why.text);
}

static void show(const struct session *session)
{
    const struct call *call = &session->calls[session->first_refusal];
    print_message("  " STR_FMT ": %zu of %zu refused, first call %zu (turn %u), " STR_FMT ": " STR_FMT
                  " " STR_FMT "\n",
                  STR_ARG(session->name), session->refusals, session->count, session->first_refusal + 1,
                  call->turn, STR_ARG(session->code), STR_ARG(call->tool), STR_ARG(str_cut(call->text, 60)));
}

/* Of identical calls in a row in one turn, the third and later ones are refused; if the turns are told, no
 * others. */
static void refused_from_the_third_on(const struct session *session, enum way way)
{
    size_t row = 0;
    for (size_t i = 0; i < session->count; i++) {
        const struct call *call = &session->calls[i];
        bool goes_on = i > 0 && same_call(call, call - 1) && call->turn == call[-1].turn;
        row = goes_on ? row + 1 : 1;
        if (row >= 3 ? !call->refused : call->refused && way == TOLD)
            fail_msg(STR_FMT ": call %zu, number %zu of its row, was %s", STR_ARG(session->name), i + 1, row,
                     call->refused ? "refused" : "let run");
    }
}

static void judge_fairly(void **state, enum way way)
{
    struct ledger_case *t = *state;
    struct corpus corpus = {0};
    if (!read_corpus(&corpus)) {
        print_message("skipped: no " CORPUS "\n");
        arena_free(corpus.arena);
        skip();
    }
    size_t runaways = 0, calm = 0, calm_refused = 0, saved = 0, repeated = 0;
    for (size_t i = 0; i < corpus.count; i++)
        for (size_t at = 0; at < corpus.sessions[i]->count; at++)
            replay_call(t, way, corpus.sessions[i], at);
    for (size_t i = 0; i < corpus.count; i++) {
        const struct session *session = corpus.sessions[i];
        bool runaway = session->repeats >= RUNAWAY_REPEATS;
        if (session->refusals)
            show(session);
        if (runaway) {
            runaways++;
            refused_from_the_third_on(session, way);
            saved += session->refusals;
            repeated += session->repeats;
        } else if (session->calm) {
            calm++;
            calm_refused += session->refusals > 0;
        }
    }
    print_message(
        "%zu sessions; %zu runaways: %zu of %zu repeated calls refused; %zu of %zu calm ones saw a refusal\n",
        corpus.count, runaways, saved, repeated, calm_refused, calm);
    arena_free(corpus.arena);
    assert_int_equal(runaways, RUNAWAYS_EXPECTED);
    assert_true(calm_refused <= calm_refused_max[way]);
}

FIXTURE_OF(case_begin, case_end)

TEST(recorded_sessions_are_judged_fairly)
{
    judge_fairly(state, TOLD);
}

TEST(recorded_sessions_whose_turns_are_silences_are_judged_fairly)
{
    judge_fairly(state, SILENT);
}

TEST(recorded_sessions_without_turns_are_judged_fairly)
{
    judge_fairly(state, ENDLESS);
}
