/*
 * The life of a call, from top to bottom:
 *
 *   1 known    does the tool exist, for this peer            ─┐
 *   2 shape    coerce, JSON Schema: all problems at once      │ whatever they find,
 *   3 meaning  rules, normalise, shape of ids                 │ the call goes to admit:
 *   4 admit    budgets, loops, seen ids ◀──▶ ledger          ◀┘ refusals are counted too
 *   5 check    the policy, with the session's snapshot
 *   6 run      Lua, or the agent itself
 *   7 judge    output schema, policy, coverage
 *   8 settle   what happened ───▶ ledger
 *
 * tools/call takes all of it, toolgate/check stops after 5, toolgate/report
 * enters at 7. A stage either goes on or waits; what was decided is a verdict,
 * and stages that a decision makes pointless are passed over by the table at
 * the end of this file.
 */
#include "gate/call.h"

#include "base/arena.h"
#include "base/clock.h"
#include "gate/arguments.h"
#include "gate/audit.h"
#include "gate/feedback.h"
#include "gate/ids.h"
#include "gate/known.h"
#include "gate/metrics.h"
#include "gate/result.h"
#include "json/build.h"
#include "json/canonical.h"
#include "json/write.h"

#include <stdio.h>
#include <stdlib.h>

#define CALL_TRACES_MAX 8u

enum step { GO_ON, WAIT };

struct call {
    struct gate *gate;
    struct generation *generation;
    struct arena *arena;
    struct call_request request;
    call_done *done;
    call_progress *progress;
    void *owner, *progress_owner;

    uint64_t admission;
    const struct tool *tool; /* NULL until known */
    struct arguments args;
    struct id_candidates ids;
    struct hash128 fingerprint;
    struct ledger_place place;
    struct ledger_answer answer;
    struct ledger_settled settled;
    struct result result;
    struct verdict verdict; /* VERDICT_PASS, CLASS_OK until something decides otherwise */
    struct str quoted;      /* the tool's own words, for the feedback */
    struct str warning;     /* for the model, beside a result that is delivered all the same */
    struct str text, advice;
    bool admitted, ran, settling, empty, finished;

    size_t stage;
    struct call_trace traces[CALL_TRACES_MAX];
    size_t trace_count;
    int64_t stage_began;
};

/* ---- deciding ------------------------------------------------------------- */

static bool is_decided(const struct call *c)
{
    return c->verdict.class != CLASS_OK;
}

static void decide(struct call *c, enum error_class class, struct str code, struct str detail,
                   struct str hint)
{
    struct verdict *v = &c->verdict;
    v->class = class;
    v->kind = class_info(class)->verdict;
    v->code = code;
    v->detail = detail;
    v->hint = hint;
}

static void decide_broken(struct call *c, const struct why *why)
{
    audit_policy_error(c->request.tool, why->text);
    if (c->tool->policy->fails_open)
        return;
    decide(
        c, CLASS_POLICY_ERROR, STR_LIT("policy_broke"), arena_dup(c->arena, str_of(why->text)),
        STR_LIT(
            "This is a fault in the gateway's policy, not in your call: do not repeat it; use another tool "
            "or tell the user."));
}

/* Shadow mode: remember what would have been said, and go on with what was sent as if nothing was. */
static void forget_in_shadow(struct call *c)
{
    if (!c->tool || c->tool->mode != POLICY_SHADOW || c->ran)
        return;
    c->args.now = c->args.sent;
    if (!is_decided(c))
        return;
    struct str code = c->verdict.code;
    c->verdict.would = code.len ? code : str_of(class_info(c->verdict.class)->name);
    c->verdict.class = CLASS_OK;
    c->verdict.kind = VERDICT_PASS;
    c->verdict.code = c->verdict.detail = c->verdict.hint = STR_NONE;
    problems_init(&c->verdict.problems, c->arena);
}

static struct policy_call hook_view(struct call *c)
{
    const struct call_request *r = &c->request;
    return (struct policy_call){
        .tool = c->tool->name,
        .session = r->session,
        .goal = r->goal.len ? r->goal : c->answer.goal,
        .step = r->step,
        .user = r->peer ? str_of(r->peer->user) : STR_NONE,
        .uid = r->peer ? r->peer->uid : 0,
        .turn = c->answer.turn ? c->answer.turn : r->turn,
        .attempt = c->answer.attempt,
        .history = r->history                                ? r->history
                   : json_is(&c->answer.history, JSON_ARRAY) ? &c->answer.history
                                                             : NULL,
        .facts = r->facts                                 ? r->facts
                 : json_is(&c->answer.facts, JSON_OBJECT) ? &c->answer.facts
                                                          : NULL,
        .owner = c->progress_owner,
        .progress = c->progress,
    };
}

/* ---- 1 known -------------------------------------------------------------- */

static enum step known(struct call *c)
{
    c->tool = known_find(c->arena, c->generation, &c->request);
    if (!c->tool)
        decide(c, CLASS_UNKNOWN_TOOL, STR_LIT("unknown_tool"), STR_NONE, STR_NONE);
    else if (c->request.mode == CALL_RUN && c->tool->runner == RUNNER_AGENT)
        decide(c, CLASS_AGENT_RUNS_THIS, STR_LIT("agent_runs_this"), STR_NONE, STR_NONE);
    return GO_ON;
}

/* ---- 2 shape -------------------------------------------------------------- */

static void decide_invalid(struct call *c)
{
    c->verdict.problems = c->args.problems;
    if (c->args.broke.text[0])
        decide_broken(c, &c->args.broke);
    else if (c->args.problems.errors)
        decide(c, CLASS_INVALID_ARGUMENTS, STR_LIT("invalid_arguments"), STR_NONE, STR_NONE);
}

static enum step shape(struct call *c)
{
    arguments_read(&c->args, c->arena, c->request.arguments, c->request.arguments_fault,
                   generation_config(c->generation));
    if (c->tool->mode != POLICY_OFF)
        arguments_shape(&c->args, c->arena, c->tool);
    decide_invalid(c);
    return GO_ON;
}

/* ---- 3 meaning ------------------------------------------------------------ */

/* An id of impossible shape was never given by anything: it wins over whatever else could be repaired. */
static void refuse_misshapen_id(struct call *c)
{
    struct id_fault fault;
    if (!ids_misshapen(c->arena, c->tool->policy, c->args.now, &fault))
        return;
    decide(c, CLASS_FABRICATED_ID, STR_LIT("impossible_id"),
           arena_printf(c->arena, "'" STR_FMT "': " STR_FMT " cannot be an id of this tool; ids look like %s",
                        STR_ARG(fault.path), STR_ARG(fault.got), fault.wanted),
           STR_NONE);
}

static enum step meaning(struct call *c)
{
    struct policy_call view = hook_view(c);
    arguments_meaning(&c->args, c->arena, c->tool, &view);
    decide_invalid(c);
    if (c->tool->policy && c->tool->mode != POLICY_OFF)
        refuse_misshapen_id(c);
    forget_in_shadow(c);
    c->verdict.valid = !is_decided(c);
    c->verdict.rewrites = arguments_rewrites(&c->args, c->arena);
    return GO_ON;
}

/* ---- 4 admit -------------------------------------------------------------- */

static enum ledger_so_far so_far(const struct call *c)
{
    switch (c->verdict.class) {
    case CLASS_OK:
        return LEDGER_SO_FAR_VALID;
    case CLASS_INVALID_ARGUMENTS:
        return LEDGER_SO_FAR_INVALID;
    case CLASS_FABRICATED_ID:
        return LEDGER_SO_FAR_FABRICATED;
    default:
        return LEDGER_SO_FAR_REFUSED;
    }
}

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
        .step = r->step,
    };
}

/* "Look it up with …" may be repaired once; "invented" is only said where nothing can have been missed. */
static void judge_unseen(struct call *c)
{
    struct str goal = c->request.goal.len ? c->request.goal : c->answer.goal;
    for (size_t i = 0; i < c->ids.count; i++) {
        if (!(c->answer.unseen >> i & 1) || ids_in_goal(c->ids.values[i], goal))
            continue;
        struct buf id = buf_in(c->arena);
        json_write(&id, c->ids.values[i]);
        const struct policy_id *from = c->ids.from[i];
        struct str detail = arena_printf(
            c->arena, "'" STR_FMT "': %.*s came neither from an earlier result nor from the user",
            STR_ARG(from->path), (int)str_cut(buf_view(&id), PROBLEM_GOT_MAX_BYTES).len, id.at);
        struct str hint = from->look_up.len ? arena_printf(c->arena, "Look the id up first with " STR_FMT ".",
                                                           STR_ARG(from->look_up))
                                            : STR_LIT("Look the id up first; never make one up.");
        if (goal.len && c->answer.ids_complete)
            decide(c, CLASS_FABRICATED_ID, STR_LIT("unseen_id"), detail, hint);
        else if (c->answer.attempt <= 1)
            decide(c, CLASS_INVALID_ARGUMENTS, STR_LIT("unseen_id"), detail, hint);
        return;
    }
}

static bool is_loop(struct str code)
{
    return str_is(code, "loop") || str_is(code, "cycle");
}

/* What the ledger's word means for the model. A refusal of invalid arguments keeps its problems. */
static void heed_ledger(struct call *c)
{
    const struct ledger_answer *a = &c->answer;
    struct verdict *v = &c->verdict;
    v->attempt = a->attempt;
    v->attempts_left = a->attempts_left;
    v->has_budget = v->class == CLASS_INVALID_ARGUMENTS;
    v->repeats = a->repeats;
    v->would = a->would.len ? a->would : v->would;
    if (a->error != OK) {
        decide(c, CLASS_UNAVAILABLE, STR_LIT("ledger_unavailable"), STR_NONE, STR_NONE);
    } else if (a->says == LEDGER_HALT) {
        decide(c, CLASS_LOOP, a->code, STR_NONE, STR_NONE);
        v->kind = VERDICT_HALT;
    } else if (a->says == LEDGER_REFUSE && is_loop(a->code)) {
        decide(c, CLASS_LOOP, a->code, STR_NONE, STR_NONE);
    } else if (a->says == LEDGER_REFUSE && v->class == CLASS_INVALID_ARGUMENTS) {
        v->kind = VERDICT_REFUSE;
        v->code = STR_LIT("retry_budget_exceeded");
    } else if (a->says == LEDGER_REFUSE && v->class == CLASS_OK) {
        decide(c, CLASS_RETRY_BUDGET, a->code, STR_NONE, STR_NONE);
    } else if (a->says == LEDGER_RUN && v->class == CLASS_OK) {
        c->admitted = true;
        judge_unseen(c);
    }
}

static enum step admitted(struct call *c)
{
    heed_ledger(c);
    forget_in_shadow(c);
    return GO_ON;
}

static void resume(void *owner);

static enum step admit(struct call *c)
{
    take_place(c);
    fingerprint(c);
    c->verdict.engine = c->request.dry ? "none" : ledger_engine(c->gate->ledger);
    if (c->tool && c->tool->policy && !is_decided(c))
        ids_candidates(c->tool->policy, c->args.now, &c->ids);
    const struct ledger_limits *limits = c->tool ? &c->tool->limits : &ledger_default_limits;
    if (c->request.dry) {
        bool invalid = c->verdict.class == CLASS_INVALID_ARGUMENTS;
        c->answer = (struct ledger_answer){
            .says = invalid ? LEDGER_REPAIR : LEDGER_RUN, .attempt = 1, .attempts_left = limits->repair};
        return admitted(c);
    }
    struct ledger_admit *request = ARENA_NEW(c->arena, struct ledger_admit);
    *request = (struct ledger_admit){
        .place = c->place,
        .admission = c->admission,
        .tool = c->request.tool,
        .arguments = c->fingerprint,
        .so_far = so_far(c),
        .refused_as = str_of(class_info(c->verdict.class)->name),
        .limits = limits,
        .ids = c->ids.hashes,
        .id_count = c->ids.count,
        .wants_history = c->tool && c->tool->policy && c->tool->policy->wants_history,
        .wants_facts = c->tool && c->tool->policy && c->tool->policy->wants_facts,
    };
    if (ledger_admit(c->gate->ledger, request, c->arena, &c->answer, resume, c) == LEDGER_PENDING)
        return WAIT;
    return admitted(c);
}

/* ---- 5 check -------------------------------------------------------------- */

static void take_check(struct call *c, struct policy_outcome *said)
{
    switch (said->said) {
    case SAID_REPAIR:
        c->args.problems = c->verdict.problems = said->problems;
        decide(c, CLASS_INVALID_ARGUMENTS, said->code.len ? said->code : STR_LIT("invalid_arguments"),
               said->detail, said->hint);
        c->verdict.valid = false;
        break;
    case SAID_REFUSE:
        decide(c, CLASS_FORBIDDEN, said->code, said->detail, said->hint);
        break;
    case SAID_ASK:
        decide(c, CLASS_NEED_USER_INPUT, said->code, said->detail, said->hint);
        c->verdict.choices = said->choices;
        c->verdict.coverage = STR_LIT("NEED_USER_INPUT");
        break;
    case SAID_BROKE:
        decide_broken(c, &said->why);
        break;
    default:
        break;
    }
}

static enum step check(struct call *c)
{
    if (!c->tool->policy || !c->tool->policy->hooks[HOOK_CHECK] || c->tool->mode == POLICY_OFF)
        return GO_ON;
    struct policy_outcome said;
    struct policy_call view = hook_view(c);
    policy_check(c->tool->policy, &view, c->args.now, c->arena, &said);
    take_check(c, &said);
    forget_in_shadow(c);
    return GO_ON;
}

/* ---- 6 run ---------------------------------------------------------------- */

static void take_failure(struct call *c, enum error_class class, struct policy_outcome *said)
{
    c->quoted = said->detail;
    decide(c, class, said->code, STR_NONE, said->hint);
    c->verdict.after_s = class == CLASS_TRANSIENT ? said->after_s : -1;
}

static void take_run(struct call *c, struct policy_outcome *said)
{
    switch (said->said) {
    case SAID_VALUE:
    case SAID_NOTHING:
        result_make(c->arena, said->value, said->content, said->metadata, c->tool->output != NULL,
                    &c->result);
        break;
    case SAID_RETRY:
        decide(c, CLASS_INVALID_ARGUMENTS, STR_LIT("retry"), said->detail, said->hint);
        break;
    case SAID_TRANSIENT:
        take_failure(c, CLASS_TRANSIENT, said);
        break;
    case SAID_FAILED:
        take_failure(c, CLASS_TOOL_ERROR, said);
        break;
    case SAID_BROKE:
        decide_broken(c, &said->why);
        break;
    default: /* repair, refuse, ask mean the same here as in check */
        take_check(c, said);
        break;
    }
}

static enum step run(struct call *c)
{
    c->ran = true;
    if (c->request.stands_for_result) {
        result_read(c->arena, c->request.stands_for_result, &c->result);
        return GO_ON;
    }
    struct policy_outcome said;
    struct policy_call view = hook_view(c);
    policy_run(c->tool->policy, &view, c->args.now, c->arena, &said);
    take_run(c, &said);
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
    c->quoted = r->error_message;
    decide(c, r->error_transient ? CLASS_TRANSIENT : CLASS_TOOL_ERROR, STR_NONE, STR_NONE, STR_NONE);
}

/* A text that should have been JSON and breaks off is the tool's fault, and said apart from wrong fields. */
static struct str unreadable_code(const struct call *c)
{
    struct str text = str_trim(c->result.error_text);
    bool began = text.len && (text.at[0] == '{' || text.at[0] == '[');
    bool closed = began && text.at[text.len - 1] == (text.at[0] == '{' ? '}' : ']');
    return began && !closed ? STR_LIT("truncated_response") : STR_LIT("invalid_json");
}

static void judge_output(struct call *c)
{
    if (!c->tool->output_schema || schema_accepts(c->tool->output_schema, c->result.value) == SCHEMA_VALID)
        return;
    struct problems *problems = &c->verdict.problems;
    problems_init(problems, c->arena);
    schema_explain(c->tool->output_schema, c->result.value, problems);
    bool unstructured =
        !c->result.structured && c->result.error_text.len && json_get_text(c->result.value, "text") != NULL;
    decide(c, CLASS_SCHEMA_MISMATCH, unstructured ? unreadable_code(c) : STR_LIT("schema_violation"),
           STR_NONE, STR_NONE);
}

/* A policy names what changes ({page = 2}); the model is given the whole call. */
static const struct json *whole_next_args(struct call *c, const struct json *changes)
{
    struct json *next = arena_alloc(c->arena, sizeof(*next));
    *next = *c->args.now;
    for (uint32_t i = 0; i < changes->len; i++)
        *next = json_with(c->arena, next, changes->members[i].key, changes->members[i].value);
    return next;
}

static void take_coverage(struct call *c, const struct policy_outcome *said)
{
    c->verdict.coverage = said->coverage;
    c->verdict.facts = said->facts;
    c->verdict.follow_up = said->follow_up;
    c->verdict.next_args = json_is(said->next_args, JSON_OBJECT) ? whole_next_args(c, said->next_args) : NULL;
}

static struct str result_text(struct call *c)
{
    struct buf text = buf_in(c->arena);
    if (c->result.error_text.len)
        return c->result.error_text;
    if (c->result.value)
        json_write(&text, c->result.value);
    return buf_view(&text);
}

static void take_judgement(struct call *c, struct policy_outcome *said)
{
    take_coverage(c, said);
    switch (said->said) {
    case SAID_PARTIAL:
        decide(c, CLASS_PARTIAL_DATA, said->code, said->detail, said->hint);
        break;
    case SAID_GARBAGE:
        decide(c, CLASS_SEMANTIC_GARBAGE, said->code, said->detail, said->hint);
        c->quoted = result_text(c);
        break;
    case SAID_BROKEN:
        decide(c, CLASS_SCHEMA_MISMATCH, said->code, said->detail, said->hint);
        break;
    case SAID_TRANSIENT:
        take_failure(c, CLASS_TRANSIENT, said);
        break;
    case SAID_FAILED:
        take_failure(c, CLASS_TOOL_ERROR, said);
        c->verdict.coverage = STR_LIT("FAILED");
        break;
    case SAID_ASK:
        take_check(c, said);
        break;
    case SAID_BROKE: /* a side effect has happened: the result is never hidden */
        audit_policy_error(c->tool->name, said->why.text);
        c->warning = STR_LIT("The gateway's check of this result failed; judge the result yourself.");
        break;
    default:
        break;
    }
}

static void judge_by_policy(struct call *c)
{
    const struct policy *policy = c->tool->policy;
    if (is_decided(c) || !policy || !policy->hooks[HOOK_RESULT] || c->tool->mode != POLICY_ENFORCE)
        return;
    struct policy_outcome said;
    struct policy_call view = hook_view(c);
    policy_judge(policy, &view, c->args.now, c->result.value, c->arena, &said);
    take_judgement(c, &said);
}

static enum step judge(struct call *c)
{
    if (c->request.mode == CALL_REPORT)
        read_report(c);
    if (!is_decided(c) && c->result.is_error) {
        c->quoted = c->result.error_text;
        decide(c, CLASS_TOOL_ERROR, STR_NONE, STR_NONE, STR_NONE);
    }
    if (!is_decided(c) && c->tool->mode == POLICY_ENFORCE)
        judge_output(c);
    judge_by_policy(c);
    c->empty = c->result.value && result_is_empty(c->result.value);
    c->verdict.final = c->tool->policy && c->tool->policy->final && !class_info(c->verdict.class)->is_error;
    return GO_ON;
}

/* ---- 8 settle ------------------------------------------------------------- */

/* What the ledger knows only now: attempts of a chain that check or retry began, and whether anything
 * changed. */
static enum step settled(struct call *c)
{
    const struct ledger_settled *s = &c->settled;
    struct verdict *v = &c->verdict;
    if (s->error != OK)
        log_event(LOG_WARN, "ledger_settle_failed", LOG_STR("tool", c->request.tool),
                  LOG_TEXT("why", s->why.text));
    audit_chain(c->gate->metrics, &c->request, s->chain, s->chain_retries);
    if (v->class == CLASS_INVALID_ARGUMENTS) {
        v->attempt = s->attempt;
        v->attempts_left = s->attempts_left;
        v->has_budget = true;
        v->valid = false;
        if (s->says == LEDGER_REFUSE) {
            v->kind = VERDICT_REFUSE;
            v->code = STR_LIT("retry_budget_exceeded");
        }
    }
    if (c->ran && s->unchanged)
        v->repeats = s->repeats;
    if (v->class == CLASS_TRANSIENT && v->after_s < 0)
        v->after_s = (int64_t)1 << (s->transient_count < 6 ? s->transient_count : 6);
    return GO_ON;
}

static struct str settle_label(const struct call *c)
{
    return str_of(class_info(c->verdict.class)->name);
}

static struct ledger_settle *settle_request(struct call *c, enum ledger_class class)
{
    struct ledger_settle *request = ARENA_NEW(c->arena, struct ledger_settle);
    struct hash128 *given = NULL;
    size_t given_count = 0;
    if (c->ran && c->tool->policy && c->tool->policy->gives_id_count && c->result.value) {
        given = ARENA_ARRAY(c->arena, struct hash128, LEDGER_IDS_MAX);
        given_count = ids_given(c->tool->policy, c->result.value, given);
    }
    *request = (struct ledger_settle){
        .place = c->place,
        .admission = c->admission,
        .tool = c->request.tool,
        .arguments = c->fingerprint,
        .class = class == LEDGER_CLASS_OK && c->empty ? LEDGER_CLASS_GARBAGE : class,
        .label = settle_label(c),
        .result = json_fingerprint(c->arena, c->result.value, NULL, 0),
        .limits = &c->tool->limits,
        .gives_ids = given,
        .gives_id_count = given_count,
        .facts = json_is(c->verdict.facts, JSON_OBJECT) ? c->verdict.facts : NULL,
    };
    return request;
}

/* Only what was admitted has something to settle; a passed check keeps its reservation until it is reported.
 */
static enum step settle(struct call *c)
{
    if (!c->request.dry)
        audit_chain(c->gate->metrics, &c->request, c->answer.chain, c->answer.chain_retries);
    bool reported = c->request.mode == CALL_REPORT;
    bool kept = c->request.mode == CALL_CHECK && !is_decided(c);
    if (c->request.dry || kept || !(c->admitted || reported) || !c->tool)
        return GO_ON;
    c->settling = true;
    const struct ledger_settle *request = settle_request(c, class_info(c->verdict.class)->settles_as);
    if (ledger_settle(c->gate->ledger, request, c->arena, &c->settled, resume, c) == LEDGER_PENDING)
        return WAIT;
    return settled(c);
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
    enum step (*resumed)(struct call *c); /* after WAIT: the ledger has answered */
} stages[] = {
    {"known", ALWAYS, true, known, NULL},
    {"shape", BEFORE, false, shape, NULL},
    {"meaning", BEFORE, true, meaning, NULL},
    {"admit", BEFORE, true, admit, admitted},
    {"check", BEFORE, false, check, NULL},
    {"run", RUNS(CALL_RUN), false, run, NULL},
    {"judge", RUNS(CALL_RUN) | RUNS(CALL_REPORT), false, judge, NULL},
    {"settle", ALWAYS, true, settle, settled},
};
#define STAGE_COUNT (sizeof(stages) / sizeof(stages[0]))

static bool applies(const struct call *c, const struct stage *stage)
{
    bool without_tool = stage->enter == meaning && (!c->tool || !c->args.now);
    return (stage->modes & RUNS(c->request.mode)) && (stage->after_decision || !is_decided(c)) &&
           !without_tool;
}

static void trace(struct call *c, const struct stage *stage)
{
    if (!c->request.trace || c->trace_count == CALL_TRACES_MAX)
        return;
    const struct verdict *v = &c->verdict;
    struct str decision = STR_LIT("pass");
    if (is_decided(c) && v->problems.errors)
        decision = arena_printf(c->arena, "%s: %zu problem%s", verdict_name(v->kind),
                                v->problems.errors + v->problems.more,
                                v->problems.errors + v->problems.more == 1 ? "" : "s");
    else if (is_decided(c))
        decision = arena_printf(c->arena, "%s: %s", verdict_name(v->kind), class_info(v->class)->name);
    c->traces[c->trace_count++] =
        (struct call_trace){stage->name, decision, clock_mono_ns() - c->stage_began};
}

static void finish(struct call *c)
{
    struct str names[SUGGEST_MAX];
    struct feedback feedback = {.verdict = &c->verdict,
                                .tool = c->tool,
                                .name = c->request.tool,
                                .quoted = c->quoted,
                                .warning = c->warning,
                                .suggestions = names};
    if (c->verdict.class == CLASS_UNKNOWN_TOOL)
        feedback.suggestion_count = known_suggest(c->arena, c->generation, &c->request, names);
    if (class_info(c->verdict.class)->is_error)
        c->text = feedback_text(c->arena, &feedback);
    else
        c->advice = feedback_advice(c->arena, &feedback);
    if (c->gate->metrics && !c->request.dry)
        metrics_count(c->gate->metrics, &c->verdict);
    audit_call(generation_config(c->generation), &c->request, &c->verdict);
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
        bool undecided = !is_decided(c);
        if (stage->enter(c) == WAIT)
            return false;
        if (undecided && is_decided(c))
            c->verdict.stage = stage->name;
        trace(c, stage);
    }
    finish(c);
    return true;
}

static void resume(void *owner)
{
    struct call *c = owner;
    stages[c->stage].resumed(c);
    trace(c, &stages[c->stage]);
    c->stage++;
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
    problems_init(&c->verdict.problems, arena);
    return c;
}

void call_on_progress(struct call *c, call_progress *progress, void *owner)
{
    c->progress = progress;
    c->progress_owner = owner;
}

static void count_start(struct call *c)
{
    struct metrics *m = c->gate->metrics;
    if (!m || c->request.dry)
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
    if (c->gate->metrics)
        c->gate->metrics->cancelled++;
    if (c->admitted && !c->settling) {
        decide(c, CLASS_CANCELLED, STR_LIT("cancelled"), STR_NONE, STR_NONE);
        ledger_settle(c->gate->ledger, settle_request(c, LEDGER_CLASS_RELEASED), c->arena, &c->settled, NULL,
                      NULL);
    }
    c->finished = true;
}

void call_free(struct call *c)
{
    generation_unref(c->generation);
    c->generation = NULL;
}

const struct verdict *call_verdict(const struct call *c)
{
    return &c->verdict;
}

const struct tool *call_tool(const struct call *c)
{
    return c->tool;
}

struct str call_id(const struct call *c)
{
    return arena_printf(c->arena, "%016llx", (unsigned long long)c->admission);
}

const struct json *call_arguments(const struct call *c)
{
    return c->args.now;
}

struct str call_text(const struct call *c)
{
    return c->text;
}

struct str call_advice(const struct call *c)
{
    return c->advice;
}

const struct json *call_content(const struct call *c)
{
    return c->result.content;
}

const struct json *call_structured(const struct call *c)
{
    return c->result.structured;
}

const struct json *call_metadata(const struct call *c)
{
    return c->result.metadata;
}

size_t call_traces(const struct call *c, const struct call_trace **out)
{
    *out = c->traces;
    return c->trace_count;
}

struct str call_session_key(struct arena *arena, const struct config *config, const struct peer *peer,
                            struct str session, struct str connection)
{
    if (!session.len)
        return arena_printf(arena, "anonymous/" STR_FMT, STR_ARG(connection));
    if (config->shared_namespace || !peer)
        return arena_printf(arena, "shared/" STR_FMT, STR_ARG(session));
    return arena_printf(arena, "uid:%u/" STR_FMT, (unsigned)peer->uid, STR_ARG(session));
}
