/*
 * The life of a call, from top to bottom:
 *
 *   1 known    does the tool exist, for this peer            ─┐
 *   2 shape    coerce, JSON Schema: all problems at once      │ whatever they find,
 *   3 meaning  rules, normalise, shape of ids                 │ the call goes to admit:
 *   4 admit    budgets, loops, seen ids ◀──▶ ledger          ◀┘ refusals are counted too
 *   5 check    the policy, with the session's snapshot
 *   6 run      Lua, or an upstream ◀──▶ outside; or the agent itself   ◀─┐
 *   7 judge    output schema, policy, coverage                           │ after a pause
 *     again    it failed for the moment, and its policy says try again  ─┘
 *   8 settle   what happened ───▶ ledger
 *
 * tools/call takes all of it, toolgate/check stops after 5, toolgate/report
 * enters at 7. A stage goes on, waits or goes back; what was decided is a
 * verdict, and stages that a decision makes pointless are passed over by the
 * table at the end of this file. How a call is run, and run again, stands in
 * call_run.c, how its result is judged in call_judge.c, what the ledger is
 * told of it at its end in call_settle.c.
 */
#include "gate/call_state.h"

#include "base/arena.h"
#include "base/clock.h"
#include "gate/decision_log.h"
#include "catalog/catalog.h"
#include "gate/verdict_from.h"
#include "gate/feedback.h"
#include "gate/tool_lookup.h"
#include "gate/metrics.h"
#include "json/build.h"
#include "json/canonical.h"
#include "upstream/upstream.h"

#include <stdlib.h>

#define SETTLING_MS 1000u /* from the end of a run until the ledger has heard of it */

/* What no mode can pass over: a tool that is not there, or not here, and arguments that cannot be read. */
static bool must_be_felt(const struct call *c)
{
    return !c->tool || c->verdict.class == CLASS_AGENT_RUNS_THIS || c->args.unreadable;
}

/* Only what is enforced is felt. Shadow mode remembers what would have been said, off not even that; both go
 * on with what was sent as if nothing was. */
void call_discard_unless_enforced(struct call *c)
{
    if (must_be_felt(c) || c->tool->mode == POLICY_ENFORCE)
        return;
    c->args.now = c->args.raw;
    verdict_discard(&c->verdict, c->arena, c->tool->mode == POLICY_SHADOW);
}

static const struct json *of_type(const struct json *snapshot, enum json_type type)
{
    return json_is(snapshot, type) ? snapshot : NULL;
}

struct str call_goal(const struct call *c)
{
    return c->request.goal.len ? c->request.goal : c->answer.goal;
}

struct policy_call call_for_policy(struct call *c)
{
    const struct call_request *r = &c->request;
    return (struct policy_call){
        .tool = c->tool->name,
        .session = r->session,
        .goal = call_goal(c),
        .step = r->step,
        .user = r->peer ? str_of(r->peer->user) : STR_NONE,
        .uid = r->peer ? r->peer->uid : 0,
        .turn = c->answer.turn ? c->answer.turn : r->turn,
        .attempt = c->answer.attempt,
        .history = of_type(&c->answer.history, JSON_ARRAY),
        .facts = r->facts ? r->facts : of_type(&c->answer.facts, JSON_OBJECT),
        .owner = c->listener,
        .progress = c->progress,
        .log = c->log,
    };
}

/* ---- 1 known -------------------------------------------------------------- */

/* Of an alias, too, the rest speaks by the name that the tool has now: budgets and ids are the same. */
static void take_name(struct call *c)
{
    if (!c->tool || str_eq(c->tool->name, c->request.tool))
        return;
    c->called = c->request.tool;
    c->request.tool = c->tool->name;
}

static enum step known(struct call *c)
{
    if (c->peek) {
        c->request.goal = c->request.goal.len ? c->request.goal : c->peek->goal;
        c->request.session_stuck = c->peek->stuck;
    }
    c->tool = tool_lookup_find(c->arena, c->generation, &c->request);
    take_name(c);
    if (c->tool && c->request.force_enforce)
        c->tool = tool_as_enforced(c->arena, c->tool);
    if (!c->tool)
        verdict_set(&c->verdict, CLASS_UNKNOWN_TOOL, STR_LIT("unknown_tool"), STR_NONE, STR_NONE);
    else if (c->request.mode == CALL_RUN && c->tool->runner == RUNNER_AGENT)
        verdict_set(&c->verdict, CLASS_AGENT_RUNS_THIS, STR_LIT("agent_runs_this"), STR_NONE, STR_NONE);
    return GO_ON;
}

static void take_place(struct call *c);

/* Hooks may hide a tool by the goal, and show it to a session that is stuck: both are told by the ledger,
 * where every worker finds them. Without such hooks nobody asks. */
static enum step look_first(struct call *c)
{
    const struct call_request *r = &c->request;
    if (r->dry_run || r->ignore_prepare || !catalog_may_hide(c->generation, r->tool))
        return known(c);
    take_place(c);
    c->peek = ARENA_NEW(c->arena, struct ledger_peek);
    if (ledger_peek(c->gate->ledger, c->place.session, c->arena, c->peek, call_resume, c) == LEDGER_PENDING)
        return WAIT;
    return known(c);
}

/* ---- 2 shape -------------------------------------------------------------- */

static enum step shape(struct call *c)
{
    arguments_read(&c->args, c->arena, c->request.arguments, c->request.arguments_fault,
                   generation_config(c->generation));
    if (c->tool->mode != POLICY_OFF)
        arguments_check_schema(&c->args, c->arena, c->tool);
    verdict_from_arguments(&c->verdict, c->tool, c->arena, &c->args);
    return GO_ON;
}

/* ---- 3 meaning ------------------------------------------------------------ */

/* Where the schema has found problems the rules still add theirs, and an id of impossible shape, which
 * nothing can have given, wins over whatever could be repaired. */
static enum step meaning(struct call *c)
{
    struct policy_call view = call_for_policy(c);
    struct id_fault fault;
    bool judged = c->tool->policy && c->tool->mode != POLICY_OFF;
    arguments_check_rules(&c->args, c->arena, c->tool, &view);
    verdict_from_arguments(&c->verdict, c->tool, c->arena, &c->args);
    if (judged && ids_find_malformed(c->arena, c->tool->policy, c->args.now, &fault))
        verdict_from_malformed_id(&c->verdict, c->arena, &fault);
    call_discard_unless_enforced(c);
    c->verdict.valid = !verdict_is_decided(&c->verdict);
    c->verdict.rewrites = arguments_rewrites(&c->args, c->arena);
    return GO_ON;
}

/* ---- 4 admit -------------------------------------------------------------- */

static void fingerprint(struct call *c)
{
    const struct policy *policy = c->tool ? c->tool->policy : NULL;
    const struct json *args = c->args.now ? c->args.now : c->request.arguments;
    c->fingerprint = json_fingerprint(c->arena, args, policy ? policy->volatiles : NULL,
                                      policy ? policy->volatile_count : 0);
}

static void take_place(struct call *c)
{
    const struct call_request *r = &c->request;
    const struct config *config = generation_config(c->generation);
    c->place = (struct ledger_place){
        .session = call_session_key(c->arena, config, r->peer, r->session, r->connection),
        .anonymous = !r->session.len,
        .anonymous_repeats = config->anonymous_repeats,
        .turn = r->turn,
        .turn_idle_s = config->turn_idle_s,
        .step = r->step,
    };
}

/* "Invented" is only said where nothing can have been missed; else the model is asked, once, to look the id
 * up. */
static void judge_unseen(struct call *c)
{
    struct id_fault fault;
    struct str goal = call_goal(c);
    const struct policy_id *from = ids_find_unseen(c->arena, c->ids, &c->answer, goal, &fault);
    bool certain = goal.len && c->answer.ids_complete;
    if (from && (certain || c->answer.attempt <= 1))
        verdict_from_unseen_id(&c->verdict, c->arena, &fault, from, certain);
}

static enum step admitted(struct call *c)
{
    c->verdict.engine = c->answer.engine;
    verdict_from_ledger(&c->verdict, &c->answer);
    c->admitted = c->answer.error == OK && c->answer.says == LEDGER_RUN && !verdict_is_decided(&c->verdict);
    if (c->admitted && c->ids)
        judge_unseen(c);
    call_discard_unless_enforced(c);
    return GO_ON;
}

/* While it may still run, its place is its own: as long as it, and what it does again, may take. Of what runs
 * here, or is run and reported by an agent, the ledger's own time. */
static uint32_t reservation_ms(const struct call *c)
{
    bool outside = c->request.mode == CALL_RUN && c->tool && c->tool->runner == RUNNER_UPSTREAM;
    if (!outside || !c->gate->upstreams)
        return 0;
    uint32_t ms = upstream_max_duration_ms(c->gate->upstreams, &c->tool->target);
    const struct policy_retry *again = &c->tool->again;
    if (again->times && again->within_ms > ms)
        ms = again->within_ms;
    return ms < UINT32_MAX - SETTLING_MS ? ms + SETTLING_MS : UINT32_MAX;
}

/* A dry run is told what a fresh session would be told. */
static enum step admit_dry(struct call *c, const struct ledger_limits *limits)
{
    bool invalid = c->verdict.class == CLASS_INVALID_ARGUMENTS;
    c->answer.engine = "none";
    c->answer.says = invalid ? LEDGER_REPAIR : LEDGER_RUN;
    c->answer.attempt = 1;
    c->answer.attempts_left = limits->repair;
    return admitted(c);
}

static enum step admit(struct call *c)
{
    const struct policy *policy = c->tool ? c->tool->policy : NULL;
    const struct ledger_limits *limits = c->tool ? &c->tool->limits : &ledger_default_limits;
    take_place(c);
    fingerprint(c);
    if (policy && policy->id_count && !verdict_is_decided(&c->verdict)) {
        c->ids = arena_alloc(c->arena, sizeof(*c->ids));
        ids_collect(policy, c->args.now, c->ids);
    }
    if (c->request.dry_run)
        return admit_dry(c, limits);
    struct ledger_admit *request = ARENA_NEW(c->arena, struct ledger_admit);
    *request = (struct ledger_admit){
        .place = c->place,
        .admission = c->admission,
        .tool = c->request.tool,
        .ext = c->request.ext,
        .arguments = c->fingerprint,
        .so_far = error_class_info(c->verdict.class)->admitted_as,
        .refused_as = str_of(error_class_info(c->verdict.class)->name),
        .limits = limits,
        .ids = c->ids ? c->ids->hashes : NULL,
        .id_count = c->ids ? c->ids->count : 0,
        .wants_history = policy && policy->wants_history,
        .wants_facts = policy && policy->wants_facts,
        .reservation_ms = reservation_ms(c),
    };
    if (ledger_admit(c->gate->ledger, request, c->arena, &c->answer, call_resume, c) == LEDGER_PENDING)
        return WAIT;
    return admitted(c);
}

/* ---- 5 check -------------------------------------------------------------- */

static enum step check(struct call *c)
{
    const struct policy *policy = c->tool->policy;
    if (!policy || !policy->hooks[HOOK_CHECK] || c->tool->mode == POLICY_OFF)
        return GO_ON;
    struct policy_outcome said;
    struct policy_call view = call_for_policy(c);
    policy_check(policy, &view, c->args.now, c->arena, &said);
    if (said.kind == OUTCOME_POLICY_ERROR)
        verdict_from_broken_hook(&c->verdict, c->tool, c->arena, said.why.text);
    else
        verdict_from_hook(&c->verdict, c->arena, &said);
    call_discard_unless_enforced(c);
    return GO_ON;
}

/* ---- 7 judge -------------------------------------------------------------- */

static void read_report(struct call *c)
{
    const struct call_request *r = &c->request;
    c->ran = true;
    c->verdict.valid = true;
    arguments_read(&c->args, c->arena, r->arguments, STR_NONE, generation_config(c->generation));
    take_place(c);
    fingerprint(c);
    if (!r->has_error) {
        result_read(c->arena, r->result, &c->result);
        return;
    }
    if (!r->error_transient_given) {
        verdict_from_error_message(&c->verdict, c->tool, c->arena, r->error_message);
        return;
    }
    c->verdict.quoted = r->error_message;
    verdict_set(&c->verdict, r->error_transient ? CLASS_TRANSIENT : CLASS_TOOL_ERROR, STR_NONE, STR_NONE,
                STR_NONE);
}

/* A report has run elsewhere: it comes in here. */
static enum step judge(struct call *c)
{
    if (c->request.mode == CALL_REPORT)
        read_report(c);
    return call_judge(c);
}

/* ---- the stages in their order ------------------------------------------- */

#define RUNS(mode) (1u << (mode))
#define ALWAYS     (RUNS(CALL_RUN) | RUNS(CALL_CHECK) | RUNS(CALL_REPORT))
#define BEFORE     (RUNS(CALL_RUN) | RUNS(CALL_CHECK))

static const struct stage {
    const char *name;
    unsigned modes;      /* which kinds of call go through it */
    bool after_decision; /* it has work to do even when the verdict stands */
    enum step (*enter)(struct call *c);
    enum step (*resumed)(struct call *c); /* after WAIT: ledger or upstream has answered, the pause is over */
} stages[] = {
    {"known", ALWAYS, true, look_first, known},
    {"shape", BEFORE, false, shape, NULL},
    {"meaning", BEFORE, true, meaning, NULL},
    {"admit", BEFORE, true, admit, admitted},
    {"check", BEFORE, false, check, NULL},
    {"run", RUNS(CALL_RUN), false, call_run, call_upstream_answered},
    {"judge", RUNS(CALL_RUN) | RUNS(CALL_REPORT), false, judge, NULL},
    {"again", RUNS(CALL_RUN), true, call_retry, call_retry_due}, /* back to run */
    {"settle", ALWAYS, true, call_settle, call_settle_answered},
};
#define STAGE_COUNT (sizeof(stages) / sizeof(stages[0]))

static bool applies(const struct call *c, const struct stage *stage)
{
    bool without_tool = stage->enter == meaning && (!c->tool || !c->args.now);
    return (stage->modes & RUNS(c->request.mode)) &&
           (stage->after_decision || !verdict_is_decided(&c->verdict)) && !without_tool;
}

static void trace(struct call *c, const struct stage *stage)
{
    if (!c->request.trace || c->trace_count == CALL_TRACES_MAX)
        return;
    const struct verdict *v = &c->verdict;
    struct str decision = STR_LIT("pass");
    if (verdict_is_decided(&c->verdict) && v->problems.errors)
        decision = arena_printf(c->arena, "%s: %zu problem%s", verdict_name(v->kind),
                                v->problems.errors + v->problems.more,
                                v->problems.errors + v->problems.more == 1 ? "" : "s");
    else if (verdict_is_decided(&c->verdict))
        decision = arena_printf(c->arena, "%s: %s", verdict_name(v->kind), error_class_info(v->class)->name);
    c->traces[c->trace_count++] =
        (struct call_trace){stage->name, decision, clock_mono_ns() - c->stage_began};
}

/* The stage that decided is known by being the first to leave a decision behind. */
static void leave(struct call *c, const struct stage *stage)
{
    if (verdict_is_decided(&c->verdict) && !c->verdict.stage)
        c->verdict.stage = stage->name;
    trace(c, stage);
}

/* The only way back there is: to the stage that runs it. */
static void go_back(struct call *c)
{
    while (stages[c->stage].enter != call_run)
        c->stage--;
}

static void finish(struct call *c)
{
    struct str names[SUGGEST_MAX];
    struct feedback feedback = {.verdict = &c->verdict,
                                .tool = c->tool,
                                .name = c->request.tool,
                                .called = c->called,
                                .suggestions = names};
    if (c->verdict.class == CLASS_UNKNOWN_TOOL)
        feedback.suggestion_count = tool_lookup_suggest(c->arena, c->generation, &c->request, names);
    if (c->ran)
        verdict_set_coverage(&c->verdict);
    if (error_class_info(c->verdict.class)->is_error)
        c->text = feedback_text(c->arena, &feedback);
    else if (c->tool->mode == POLICY_ENFORCE)
        c->advice = feedback_advice(c->arena, &feedback);
    if (c->gate->metrics && !c->request.dry_run)
        metrics_count_verdict(c->gate->metrics, &c->verdict);
    decision_log_call(generation_config(c->generation), &c->request, &c->verdict);
    c->finished = true;
}

/* Runs stages until one waits. True: the call is finished. */
static bool advance(struct call *c)
{
    for (; c->stage < STAGE_COUNT; c->stage++) {
        const struct stage *stage = &stages[c->stage];
        if (!applies(c, stage))
            continue;
        if (c->request.trace)
            c->stage_began = clock_mono_ns();
        if (stage->enter(c) == WAIT)
            return false;
        leave(c, stage);
    }
    finish(c);
    return true;
}

void call_resume(void *owner)
{
    struct call *c = owner;
    if (stages[c->stage].resumed(c) == GO_BACK) {
        go_back(c);
    } else {
        leave(c, &stages[c->stage]);
        c->stage++;
    }
    if (advance(c))
        c->done(c->owner, c);
}

/* ---- from outside --------------------------------------------------------- */

/* Well spread and never repeated by one process; the seed keeps processes apart. */
static uint64_t mint_admission(struct gate *gate)
{
    if (!gate->admissions)
        gate->admissions = hash_random();
    uint64_t z = gate->admissions += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* Of a report: the id that check gave. Anything else is settled as a call nobody admitted. */
static uint64_t read_call_id(struct str id)
{
    char text[17] = {0}, *end;
    if (id.len != 16)
        return 0;
    memcpy(text, id.at, 16);
    uint64_t admission = strtoull(text, &end, 16);
    return end == text + 16 ? admission : 0;
}

struct call *call_new(struct gate *gate, struct arena *arena, const struct call_request *request)
{
    struct call *c = ARENA_NEW(arena, struct call);
    c->gate = gate;
    c->arena = arena;
    c->request = *request;
    c->generation = generation_ref(gate->generation);
    c->admission = request->mode == CALL_REPORT ? read_call_id(request->call_id) : mint_admission(gate);
    c->verdict.after_s = -1;
    c->verdict.cost = -1;
    problems_init(&c->verdict.problems, arena);
    return c;
}

void call_on_progress(struct call *c, call_progress *progress, void *owner)
{
    c->progress = progress;
    c->listener = owner;
}

void call_on_log(struct call *c, call_log *log, void *owner)
{
    c->log = log;
    c->listener = owner;
}

static void count_start(struct call *c)
{
    struct metrics *m = c->gate->metrics;
    if (!m || c->request.dry_run)
        return;
    m->calls += c->request.mode == CALL_RUN;
    m->checks += c->request.mode == CALL_CHECK;
    m->reports += c->request.mode == CALL_REPORT;
}

bool call_start(struct call *c, call_done *done, void *owner)
{
    c->done = done;
    c->owner = owner;
    count_start(c);
    return advance(c);
}

void call_cancel(struct call *c)
{
    if (c->finished)
        return;
    ledger_cancel(c->gate->ledger, c);
    if (c->gate->upstreams)
        upstream_cancel(c->gate->upstreams, c);
    if (c->gate->metrics)
        c->gate->metrics->cancelled++;
    if (c->admitted && !c->settling)
        call_release(c);
    c->finished = true;
}

void call_free(struct call *c)
{
    generation_unref(c->generation);
    c->generation = NULL;
}
