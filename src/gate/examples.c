/*
 * Playing examples: each is a session of its own in a throwaway ledger whose
 * clock stands still, so that one never sees what another left behind.
 */
#include "gate/examples.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "gate/examples_sample.h"
#include "gate/simulator.h"
#include "gate/verdict.h"
#include "json/write.h"

#include <stdlib.h>

struct examples {
    struct gate gate; /* its ledger NULL: it could not be had, and that is a failure */
    struct generation_report *report;
    struct examples_options options;
    size_t policy, example; /* the next one */
    struct examples_count count;
};

/* One of them, being played. */
struct playing {
    struct arena *arena;
    const struct policy_example *example;
    struct example_outcome *outcome;
    struct why why;
    struct call *call;
    struct peer peer;
};

/* A tool may be hidden from some users: where an example names one, it sees what they see. */
static void play_example(struct examples *run, struct playing *p)
{
    const struct policy_example *e = p->example;
    const struct policy *policy = p->outcome->policy;
    struct call_request request = {.tool = e->called.len ? e->called : policy->name,
                                   .arguments = e->args,
                                   .session = arena_printf(p->arena, STR_FMT ":%d " STR_FMT,
                                                           STR_ARG(policy->file), e->line, STR_ARG(e->name)),
                                   .goal = e->goal,
                                   .turn = e->turn,
                                   .facts = e->facts,
                                   .ignore_prepare = !e->user.len,
                                   .force_enforce = true};
    if (e->user.len) {
        peer_init_example(&p->peer, e->user);
        request.peer = &p->peer;
    }
    simulator_set_clock(SIMULATOR_TIME_MS);
    simulator_add_seen_ids(&run->gate, p->arena, &request, e->seen);
    simulator_add_history(&run->gate, p->arena, &request, e->history, &p->why);
    p->call = play(&run->gate, p->arena, &request, e->result);
}

/* ---- comparing ------------------------------------------------------------ */

static bool word_fits(struct str word, const struct verdict *v)
{
    return str_is(word, verdict_name(v->kind)) || str_is(word, error_class_info(v->class)->name) ||
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

static struct str verdict_words(struct arena *arena, const struct verdict *v)
{
    const char *class = error_class_info(v->class)->name;
    bool coded = v->code.len && !str_is(v->code, class);
    return arena_printf(arena, "%s %s%s" STR_FMT, verdict_name(v->kind), class, coded ? " " : "",
                        STR_ARG(coded ? v->code : STR_NONE));
}

static struct str json_text(struct arena *arena, const struct json *value)
{
    struct buf text = buf_in(arena);
    json_write(&text, value);
    return buf_view(&text);
}

static void differs(struct example_outcome *o, const char *field, struct str expected, struct str got)
{
    o->mismatches[o->mismatch_count++] = (struct example_mismatch){field, expected, got, NULL};
}

/* `expected` NULL: the example says nothing of it. */
static void compare_values(struct playing *p, struct example_outcome *o, const char *field,
                           const struct json *expected, const struct json *got)
{
    static const struct json none = {.type = JSON_NULL};
    got = got ? got : &none;
    if (!expected || json_equal(expected, got))
        return;
    struct json_diff_result *changes = arena_alloc(p->arena, sizeof(*changes));
    json_diff_find(p->arena, expected, got, changes);
    differs(o, field, json_text(p->arena, expected), json_text(p->arena, got));
    o->mismatches[o->mismatch_count - 1].changes = changes;
}

static void look_at(struct playing *p, struct example_outcome *o)
{
    const struct verdict *v = call_verdict(p->call);
    struct str text = call_feedback(p->call);
    o->verdict = verdict_words(p->arena, v);
    o->fault = v->class == CLASS_POLICY_ERROR && !o->sample ? v->detail : STR_NONE;
    o->said = text.len ? text : call_advice(p->call);
    o->status = v->coverage;
    o->stage = v->stage;
    const struct tool *tool = call_tool(p->call);
    o->schema_unknown = tool && !tool_is_described(tool);
    o->arguments = call_arguments(p->call);
    o->shown = call_visible_result(p->call);
}

static void compare(struct playing *p, struct example_outcome *o)
{
    const struct policy_example *e = p->example;
    if (p->why.text[0])
        differs(o, "history", STR_LIT("calls that can have been"), arena_dup(p->arena, str_of(p->why.text)));
    if (e->gives.len && !gives_fits(e->gives, call_verdict(p->call)))
        differs(o, "gives", e->gives, o->verdict);
    compare_values(p, o, "becomes", e->becomes, o->arguments);
    compare_values(p, o, "shows", e->shows, o->shown);
    if (e->says.len && !str_contains_nocase(o->said, e->says))
        differs(o, "says", e->says, STR_NONE);
    if (e->status.len && !str_eq(e->status, o->status))
        differs(o, "status", e->status, o->status);
    o->passed = !o->mismatch_count;
    o->open = !o->passed && call_tool(p->call) && call_tool(p->call)->schema_pending;
}

/* ---- all of them ---------------------------------------------------------- */

static void tell(struct examples *run, const struct example_outcome *o, struct arena *arena)
{
    if (!o->passed && run->report) {
        struct buf line = buf_in(arena);
        examples_write_line(&line, o);
        if (o->open)
            generation_report_warning(run->report, STR_FMT, STR_ARG(buf_view(&line)));
        else
            generation_report_error(run->report, STR_FMT, STR_ARG(buf_view(&line)));
    }
    if (run->options.seen)
        run->options.seen(run->options.owner, o);
}

static void run_example(struct examples *run, const struct policy *policy,
                        const struct policy_example *example, bool sample)
{
    struct example_outcome outcome = {.policy = policy, .example = example, .sample = sample};
    struct playing p = {.arena = arena_new(), .example = example, .outcome = &outcome};
    struct examples_count *count = &run->count;
    uint64_t faults = examples_sample_faults(policy);
    int64_t began = clock_mono_us();
    play_example(run, &p);
    outcome.us = clock_mono_us() - began;
    look_at(&p, &outcome);
    if (sample)
        examples_sample_check(p.arena, p.call, faults, &outcome);
    else
        compare(&p, &outcome);
    if (sample)
        *(outcome.passed ? &count->samples : &count->samples_failed) += 1;
    else
        *(outcome.passed ? &count->passed : outcome.open ? &count->open : &count->failed) += 1;
    tell(run, &outcome, p.arena);
    call_free(p.call);
    arena_free(p.arena);
}

/* `only`: a glob, or a part, of "tool: name". */
static bool is_wanted(const struct examples *run, struct str tool, struct str name)
{
    const char *only = run->options.only;
    if (!only)
        return true;
    struct buf title = {0};
    buf_printf(&title, STR_FMT ": " STR_FMT, STR_ARG(tool), STR_ARG(name));
    bool wanted =
        str_glob(str_of(only), buf_view(&title)) || str_contains_nocase(buf_view(&title), str_of(only));
    buf_clear(&title);
    return wanted;
}

struct examples *examples_begin(struct generation *generation, struct generation_report *report,
                                example_seen *seen, void *owner)
{
    struct examples *run = calloc(1, sizeof(*run));
    struct why why;
    if (!run)
        abort();
    *run = (struct examples){.gate = {.generation = generation, .admissions = 1},
                             .report = report,
                             .options = {.seen = seen, .owner = owner}};
    if (simulator_ledger(&run->gate.ledger, &why) == OK)
        return run;
    run->count.failed = 1;
    if (report)
        generation_report_error(report, "the examples could not be run: %s", why.text);
    return run;
}

static bool run_named(struct examples *run, const struct policy *policy, const struct policy_example *example,
                      bool sample)
{
    if (!is_wanted(run, policy->name, example->name))
        return false;
    enum log_level level = log_quiet(); /* an example's refusal is no event of the daemon */
    run_example(run, policy, example, sample);
    log_level_set(level);
    return true;
}

/* With all fields too, where that is another call. */
static void run_samples(struct examples *run, const struct policy *policy)
{
    const struct tool *tool = generation_find(run->gate.generation, policy->name);
    struct arena *arena = arena_new();
    struct policy_example least, most;
    bool runs = tool && tool->policy == policy && tool->runner == RUNNER_LUA;
    if (runs && examples_sample_make(arena, tool, SAMPLE_REQUIRED, &least)) {
        run_named(run, policy, &least, true);
        if (examples_sample_make(arena, tool, SAMPLE_ALL, &most) && !json_equal(least.args, most.args))
            run_named(run, policy, &most, true);
    } else if (runs) {
        run->count.unsampled++;
    }
    arena_free(arena);
}

bool examples_step(struct examples *run)
{
    const struct policy_set *policies = generation_policies(run->gate.generation);
    if (!run->gate.ledger || run->policy == policy_set_count(policies))
        return false;
    const struct policy *policy = policy_set_at(policies, run->policy);
    if (run->options.samples)
        run_samples(run, policy);
    if (run->options.samples || run->example == policy->example_count) {
        run->policy++;
        run->example = 0;
    } else if (run_named(run, policy, &policy->examples[run->example++], false) && run->report) {
        run->report->example_count++;
    }
    return true;
}

size_t examples_end(struct examples *run)
{
    size_t failed = run->count.failed;
    if (run->gate.ledger)
        ledger_free(run->gate.ledger);
    free(run);
    return failed;
}

struct examples_count examples_run(struct generation *generation, struct generation_report *report,
                                   const struct examples_options *options)
{
    struct examples *run = examples_begin(generation, report, NULL, NULL);
    run->options = *options;
    while (examples_step(run))
        continue;
    struct examples_count count = run->count;
    examples_end(run);
    return count;
}
