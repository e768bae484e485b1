/*
 * Playing examples: each is a session of its own in a throwaway ledger whose
 * clock stands still, so that one never sees what another left behind.
 */
#include "gate/examples.h"

#include "base/arena.h"
#include "base/clock.h"
#include "gate/call.h"
#include "gate/ids.h"
#include "json/write.h"

#include <stdlib.h>

#define EXAMPLE_TIME_MS 1780000000000 /* an ordinary day in 2026 */

static int64_t still_clock(void)
{
    return EXAMPLE_TIME_MS;
}

struct play {
    struct gate gate;
    struct arena *arena;
    const struct policy *policy;
    const struct policy_example *example;
    struct str session;
    struct call *call;
};

static void see_ids(struct play *p)
{
    struct str key =
        call_session_key(p->arena, generation_config(p->gate.generation), NULL, p->session, STR_NONE);
    const struct json *seen = p->example->seen;
    for (uint32_t i = 0; json_is(seen, JSON_ARRAY) && i < seen->len; i++) {
        struct hash128 hash = id_hash(&seen->items[i]);
        ledger_see(p->gate.ledger, key, &hash, 1);
    }
}

static void never(void *owner, struct call *call)
{
    (void)owner, (void)call; /* the local ledger answers at once */
}

static void start(struct play *p, const struct call_request *request)
{
    if (p->call)
        call_free(p->call);
    p->call = call_new(&p->gate, p->arena, request);
    call_start(p->call, never, NULL);
}

/* A tool that the agent runs is checked, and where the example has a result, reported. */
static void play(struct play *p)
{
    const struct policy_example *e = p->example;
    bool runs_here = p->policy->hooks[HOOK_RUN];
    struct call_request request = {.mode = runs_here ? CALL_RUN : CALL_CHECK,
                                   .tool = p->policy->name,
                                   .arguments = e->args,
                                   .session = p->session,
                                   .goal = e->goal,
                                   .stands_for_result = e->result,
                                   .history = e->history,
                                   .facts = e->facts,
                                   .unhidden = true};
    see_ids(p);
    start(p, &request);
    if (runs_here || !e->result || call_verdict(p->call)->kind != VERDICT_PASS)
        return;
    request.mode = CALL_REPORT;
    request.call_id = call_id(p->call);
    request.arguments = call_arguments(p->call);
    request.result = e->result;
    start(p, &request);
}

/* ---- comparing ------------------------------------------------------------ */

static bool word_fits(struct str word, const struct verdict *v)
{
    return str_is(word, verdict_name(v->kind)) || str_is(word, class_info(v->class)->name) ||
           str_eq(word, v->code);
}

/* Every word of `gives` names the verdict, its class or its code. */
static bool gives_fits(struct str gives, const struct verdict *v)
{
    while (gives.len) {
        size_t n = 0;
        while (n < gives.len && gives.at[n] != ' ')
            n++;
        if (n && !word_fits((struct str){gives.at, n}, v))
            return false;
        gives = str_from(gives, n + 1);
    }
    return true;
}

static struct str what_was_said(const struct play *p)
{
    struct str text = call_text(p->call);
    return text.len ? text : call_advice(p->call);
}

static void line(struct buf *out, const char *key, struct str value)
{
    buf_printf(out, "  %-8s " STR_FMT "\n", key, STR_ARG(value));
}

static void json_line(struct buf *out, const char *key, const struct json *value)
{
    struct buf text = {0};
    json_write(&text, value);
    line(out, key, buf_view(&text));
    buf_clear(&text);
}

static struct str verdict_words(const struct play *p)
{
    const struct verdict *v = call_verdict(p->call);
    const char *class = class_info(v->class)->name;
    bool coded = v->code.len && !str_is(v->code, class);
    return arena_printf(p->arena, "%s %s%s" STR_FMT, verdict_name(v->kind), class, coded ? " " : "",
                        STR_ARG(coded ? v->code : STR_NONE));
}

static void compare(struct play *p, struct example_outcome *outcome)
{
    const struct policy_example *e = p->example;
    const struct verdict *v = call_verdict(p->call);
    struct buf expected = buf_in(p->arena), got = buf_in(p->arena);
    if (e->gives.len && !gives_fits(e->gives, v)) {
        line(&expected, "gives", e->gives);
        line(&got, "gives", verdict_words(p));
    }
    if (e->becomes && !json_equal(e->becomes, call_arguments(p->call))) {
        json_line(&expected, "becomes", e->becomes);
        json_line(&got, "becomes", call_arguments(p->call));
    }
    if (e->says.len && !str_contains_nocase(what_was_said(p), e->says))
        line(&expected, "says", e->says);
    if (e->status.len && !str_eq(e->status, v->coverage)) {
        line(&expected, "status", e->status);
        line(&got, "status", v->coverage);
    }
    outcome->passed = expected.len == 0;
    if (!outcome->passed)
        line(&got, "said", what_was_said(p));
    outcome->expected = buf_view(&expected);
    outcome->got = buf_view(&got);
}

/* ---- all of them ---------------------------------------------------------- */

static void report_failure(struct generation_report *report, const struct example_outcome *o)
{
    if (o->passed || !report)
        return;
    generation_report_error(report,
                            STR_FMT ":%d: example '" STR_FMT "'\n expected:\n" STR_FMT " got:\n" STR_FMT,
                            STR_ARG(o->policy->file), o->example->line, STR_ARG(o->example->name),
                            STR_ARG(o->expected), STR_ARG(o->got));
}

struct examples {
    struct gate gate; /* its ledger NULL: it could not be had, and that is a failure */
    struct generation_report *report;
    example_seen *seen;
    void *owner;
    size_t policy, example; /* the next one */
    size_t failed;
};

static bool run_one(const struct examples *run, const struct policy *policy, size_t at)
{
    struct arena *arena = arena_new();
    struct play p = {.gate = run->gate, .arena = arena, .policy = policy, .example = &policy->examples[at]};
    struct example_outcome outcome = {.policy = policy, .example = p.example};
    int64_t began = clock_mono_us();
    p.session = arena_printf(arena, STR_FMT "#%zu", STR_ARG(policy->file), at);
    play(&p);
    outcome.us = clock_mono_us() - began;
    compare(&p, &outcome);
    report_failure(run->report, &outcome);
    if (run->seen)
        run->seen(run->owner, &outcome);
    call_free(p.call);
    arena_free(arena);
    return outcome.passed;
}

struct examples *examples_begin(struct generation *generation, struct generation_report *report,
                                example_seen *seen, void *owner)
{
    struct examples *run = calloc(1, sizeof(*run));
    struct ledger_options options = {.now_ms = still_clock};
    struct why why;
    if (!run)
        abort();
    *run = (struct examples){
        .gate = {.generation = generation, .admissions = 1}, .report = report, .seen = seen, .owner = owner};
    if (ledger_new_local(&options, &run->gate.ledger, &why) == OK)
        return run;
    run->failed = 1;
    if (report)
        generation_report_error(report, "the examples could not be run: %s", why.text);
    return run;
}

bool examples_step(struct examples *run)
{
    const struct policies *policies = generation_policies(run->gate.generation);
    while (run->policy < policies_count(policies) &&
           run->example == policies_at(policies, run->policy)->example_count) {
        run->policy++;
        run->example = 0;
    }
    if (!run->gate.ledger || run->policy == policies_count(policies))
        return false;
    enum log_level level = log_quiet(); /* an example's refusal is no event of the daemon */
    run->failed += !run_one(run, policies_at(policies, run->policy), run->example++);
    log_level_set(level);
    if (run->report)
        run->report->example_count++;
    return true;
}

size_t examples_end(struct examples *run)
{
    size_t failed = run->failed;
    if (run->gate.ledger)
        ledger_free(run->gate.ledger);
    free(run);
    return failed;
}

size_t examples_run(struct generation *generation, struct generation_report *report, example_seen *seen,
                    void *owner)
{
    struct examples *run = examples_begin(generation, report, seen, owner);
    while (examples_step(run))
        continue;
    return examples_end(run);
}
