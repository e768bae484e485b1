/* The policies are loaded from their texts, whole calls from a temporary folder, as a daemon would load it.
 */
#include "subjects.h"

#include "base/arena.h"
#include "base/clock.h"
#include "policy_folder.h"
#include "gate/call.h"
#include "gate/verdict.h"
#include "gate/generation_load.h"
#include "gate/verdict.h"
#include "json/parse.h"
#include "policy/policy_hooks.h"
#include "policy/policy_set.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char empty_text[] = "return tool \"empty\" { check = function(args, call) end }";
static const char same_text[] = "return tool \"same\" { normalise = function(args) return args end }";
static const char change_text[] =
    "return tool \"change\" { normalise = function(args) args.people = 4 return args end }";

static const char six_arguments[] =
    "{\"room\":\"Amber\",\"start\":\"2026-05-04T09:00:00Z\",\"end\":\"2026-05-04T10:30:00Z\","
    "\"people\":6,\"layout\":\"table\",\"title\":\"Review of the quarter\"}";
static const char a_result[] =
    "{\"id\":\"b-7301\",\"room\":\"Amber\",\"start\":\"2026-05-04T09:00:00Z\",\"waiting\":false}";

struct subjects {
    struct arena *arena;
    struct policy_set *empty, *same, *change, *typical;
    struct json no_arguments, arguments, result;
    struct gate one, among; /* a generation with one policy and a tool without; one with many */
    struct policy_call call;
    struct peer peer;
};

/* ---- doing ---- */

static const struct policy *only(const struct policy_set *policies)
{
    return policy_set_at(policies, 0);
}

static bool check_empty(struct subjects *s, struct arena *arena, struct policy_outcome *said)
{
    policy_check(only(s->empty), &s->call, &s->no_arguments, arena, said);
    return said->kind == OUTCOME_PASS;
}

static bool check_six(struct subjects *s, struct arena *arena, struct policy_outcome *said)
{
    policy_check(only(s->empty), &s->call, &s->arguments, arena, said);
    return said->kind == OUTCOME_PASS;
}

static bool normalise_same(struct subjects *s, struct arena *arena, struct policy_outcome *said)
{
    policy_normalise(only(s->same), &s->call, &s->arguments, arena, said);
    return said->args == &s->arguments;
}

static bool normalise_change(struct subjects *s, struct arena *arena, struct policy_outcome *said)
{
    policy_normalise(only(s->change), &s->call, &s->arguments, arena, said);
    return said->kind == OUTCOME_PASS && said->args != &s->arguments;
}

static bool rules(struct subjects *s, struct arena *arena, struct policy_outcome *said)
{
    policy_normalise(only(s->typical), &s->call, &s->arguments, arena, said);
    return said->args == &s->arguments;
}

static bool twenty_lines(struct subjects *s, struct arena *arena, struct policy_outcome *said)
{
    if (!rules(s, arena, said))
        return false;
    policy_check(only(s->typical), &s->call, said->args, arena, said);
    return said->kind == OUTCOME_PASS;
}

static bool judge(struct subjects *s, struct arena *arena, struct policy_outcome *said)
{
    policy_judge(only(s->typical), &s->call, &s->arguments, &s->result, arena, said);
    return said->kind == OUTCOME_OK;
}

static bool whole_check(struct subjects *s, struct gate *gate, const char *tool, struct arena *arena)
{
    struct call_request request = {.mode = CALL_CHECK,
                                   .tool = str_of(tool),
                                   .arguments = &s->arguments,
                                   .session = STR_LIT("bench"),
                                   .connection = STR_LIT("bench"),
                                   .peer = &s->peer,
                                   .dry_run = true};
    struct call *call = call_new(gate, arena, &request);
    bool passed = call_start(call, NULL, NULL) && call_outcome(call)->verdict->kind == VERDICT_PASS;
    call_free(call);
    return passed;
}

static bool check_plain(struct subjects *s, struct arena *arena, struct policy_outcome *said)
{
    (void)said;
    return whole_check(s, &s->one, BENCH_PLAIN_TOOL, arena);
}

static bool check_whole(struct subjects *s, struct arena *arena, struct policy_outcome *said)
{
    (void)said;
    return whole_check(s, &s->one, BENCH_TYPICAL_TOOL, arena);
}

static bool check_among(struct subjects *s, struct arena *arena, struct policy_outcome *said)
{
    (void)said;
    return whole_check(s, s->among.generation ? &s->among : &s->one, BENCH_TYPICAL_TOOL, arena);
}

static bool (*const doing[SUBJECT_COUNT])(struct subjects *, struct arena *, struct policy_outcome *) = {
    [SUBJECT_EMPTY] = check_empty,     [SUBJECT_PUSH] = check_six,
    [SUBJECT_BRIDGE] = normalise_same, [SUBJECT_CHANGE] = normalise_change,
    [SUBJECT_RULES] = rules,           [SUBJECT_TWENTY] = twenty_lines,
    [SUBJECT_RESULT] = judge,          [SUBJECT_PLAIN] = check_plain,
    [SUBJECT_WHOLE] = check_whole,     [SUBJECT_AMONG] = check_among,
};

enum err subjects_do(struct subjects *s, enum subject_kind kind, unsigned times, struct why *why)
{
    struct policy_outcome said;
    for (unsigned i = 0; i < times; i++) {
        struct arena *arena = arena_new();
        bool fine = doing[kind](s, arena, &said);
        if (!fine && said.kind == OUTCOME_POLICY_ERROR)
            *why = said.why;
        arena_free(arena);
        if (!fine)
            return err_set(why, ERR_POLICY,
                           "a measured call did not come out as it should; is this build sound?");
    }
    return OK;
}

/* ---- making ready ---- */

static enum err load_text(const char *name, struct str text, struct arena *arena, struct policy_set **out,
                          struct why *why)
{
    struct policy_load_errors faults = {.arena = arena};
    if (policy_set_load_string(str_of(name), text, NULL, out, &faults) == OK)
        return OK;
    return err_set(why, ERR_POLICY, STR_FMT, STR_ARG(faults.list[0]));
}

static void parse(struct arena *arena, const char *text, struct json *out)
{
    struct json_error fault;
    if (json_parse(arena, str_of(text), NULL, out, &fault) != OK)
        abort(); /* our own text */
}

static enum err load_texts(struct subjects *s, struct why *why)
{
    enum err err = load_text("empty.lua", str_of(empty_text), s->arena, &s->empty, why);
    if (err == OK)
        err = load_text("same.lua", str_of(same_text), s->arena, &s->same, why);
    if (err == OK)
        err = load_text("change.lua", str_of(change_text), s->arena, &s->change, why);
    if (err == OK)
        err = load_text("book_room.lua", str_of(bench_typical_policy), s->arena, &s->typical, why);
    parse(s->arena, "{}", &s->no_arguments);
    parse(s->arena, six_arguments, &s->arguments);
    parse(s->arena, a_result, &s->result);
    return err;
}

static enum err load_gate(const char *policies, const char *tools, struct gate *gate, struct why *why)
{
    struct arena *arena = arena_new();
    struct generation_report report;
    struct config_sources sources = {.policies = policies, .tools = &tools, .tools_count = tools ? 1 : 0};
    generation_report_init(&report, arena);
    enum err err = generation_load(&sources, 1, &gate->generation, &report);
    if (err != OK)
        err_set(why, err, STR_FMT, STR_ARG(report.error_count ? report.errors[0] : STR_NONE));
    arena_free(arena);
    return err;
}

static int64_t resident_bytes(void)
{
    long long pages = 0;
    malloc_trim(0);
    FILE *file = fopen("/proc/self/statm", "re");
    if (file && fscanf(file, "%*s %lld", &pages) != 1)
        pages = 0;
    if (file)
        fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

/* The policies alone, and gone again; then all that a daemon makes of them, which stays. */
static enum err load_many(const struct bench_many *folder, size_t many, struct gate *gate,
                          struct subjects_load *load, struct why *why)
{
    struct arena *arena = arena_new();
    struct policy_load_errors faults = {.arena = arena};
    struct policy_set *policies;
    int64_t before = resident_bytes();
    enum err err = policy_set_load(folder->many, NULL, &policies, &faults);
    if (err != OK) {
        err_set(why, err, STR_FMT, STR_ARG(faults.list[0]));
        arena_free(arena);
        return err;
    }
    load->count = many;
    load->policies_bytes = resident_bytes() - before;
    policy_set_free(policies);
    arena_free(arena);
    before = resident_bytes();
    int64_t began = clock_mono_ns();
    err = load_gate(folder->many, NULL, gate, why);
    load->seconds = (double)(clock_mono_ns() - began) / 1e9;
    load->tools_bytes = resident_bytes() - before - load->policies_bytes;
    return err;
}

enum err subjects_new(size_t many, struct subjects **out, struct subjects_load *load, struct why *why)
{
    struct subjects *s = calloc(1, sizeof(*s));
    struct bench_many folder;
    if (!s)
        abort();
    *out = s;
    *load = (struct subjects_load){0};
    log_open(LOG_ERROR, LOG_FORMAT_TEXT, NULL, NULL);
    enum err err = bench_many_make(&folder, many, why);
    if (err == OK && many) /* first of all, in a heap that nothing else has touched */
        err = load_many(&folder, many, &s->among, load, why);
    if (err == OK)
        err = load_gate(folder.one, folder.tools, &s->one, why);
    bench_many_drop(&folder, many);
    s->arena = arena_new();
    s->call = (struct policy_call){.tool = STR(BENCH_TYPICAL_TOOL), .session = STR("bench"), .turn = 1};
    peer_init(&s->peer, getuid(), getgid(), getpid());
    return err == OK ? load_texts(s, why) : err;
}

void subjects_free(struct subjects *s)
{
    policy_set_free(s->empty);
    policy_set_free(s->same);
    policy_set_free(s->change);
    policy_set_free(s->typical);
    if (s->one.generation)
        generation_unref(s->one.generation);
    if (s->among.generation)
        generation_unref(s->among.generation);
    arena_free(s->arena);
    free(s);
}
