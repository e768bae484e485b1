/*
 * The life of a call, from top to bottom:
 *
 *   1 known    find the tool, if this client may call it         ─┐
 *   2 schema   coerce, JSON Schema: all problems at once          │ even if they refuse, the call
 *   3 rules    policy rules, normalise, format of ids             │ goes on to admit: the ledger
 *   4 admit    budgets, loops, seen ids ◀──▶ ledger              ◀┘ counts refused calls too
 *     known    again, if another daemon has changed the session since 1
 *   5 check    the policy's check hook
 *   6 run      Lua, or an upstream; the agent itself before a report     ◀─┐ after a pause,
 *   7 judge    output schema, the policy's result hook, coverage           │ with retry in
 *     retry    a transient failure                                        ─┘ the policy
 *   8 settle   what happened ───▶ ledger
 *
 * tools/call passes all of it, toolgate/check skips 6 and 7, toolgate/report skips 2 to 6. A stage returns
 * what comes next (enum step) and writes what it decides to the verdict; the table below skips the stages
 * that a decision makes pointless. Stage 5 is in call_ask.c, stage 6 with the retries in call_run.c, stage 7
 * in call_judge.c.
 */
#include "gate/call_state.h"

#include "ledger/approvals.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "catalog/catalog.h"
#include "gate/busy.h"
#include "gate/decision_log.h"
#include "gate/feedback.h"
#include "gate/metrics.h"
#include "json/build.h"
#include "json/parse.h"
#include "json/write.h"
#include "policy/peer.h"
#include "result/result.h"

#include <math.h>

#define SETTLE_MS 1000u /* from the end of a run until the ledger has settled it */

/* ---- 1 known ---- */

/* A report is of the session that its callId names, which may be known by its hash only; if it names one,
 * too, call_read_id has compared them. */
static void set_place(struct call *c)
{
    const struct call_request *r = &c->request;
    const struct config *config = &c->generation->config;
    bool reports = r->mode == CALL_REPORT;
    struct str key = STR_NONE;
    if (!reports || !r->session.len)
        key = call_session_key(c->arena, config, r->peer, r->session, r->connection);
    c->place = (struct ledger_place){
        .session = reports ? STR_NONE : key,
        .uid = r->peer ? r->peer->uid : 0,
        .session_id = r->check.session,
        .anonymous = !r->session.len && (!reports || call_is_of(key, r->check.session)),
        .anonymous_repeats = config->anonymous_repeats,
        .turn = r->turn,
        .turn_text = r->turn_text,
        .turn_idle_s = config->turn_idle_s,
        .step = r->step,
        .batch = r->batch,
        .agent = r->agent.len ? ledger_turn_text(r->agent) : 0,
        .by_person = r->by_person,
    };
}

/* What the ledger knows of the session, and of the call that is reported. */
static void read_past(struct call *c)
{
    struct call_request *r = &c->request;
    const struct ledger_open_call *open = &c->peek->open;
    struct json kept;
    struct json_error fault;
    r->past = c->peek;
    r->goal = c->told_goal.len ? c->told_goal : c->peek->goal;
    if (r->mode != CALL_REPORT)
        return;
    if (!r->tool.len)
        r->tool = open->tool;
    const char *owner_end = open->session.len ? memchr(open->session.at, '/', open->session.len) : NULL;
    if (!r->session.len && owner_end && !str_starts(open->session, "anonymous/"))
        r->session = str_from(open->session, (size_t)(owner_end + 1 - open->session.at));
    if (!r->arguments && open->arguments.len &&
        json_parse(c->arena, open->arguments, NULL, &kept, &fault) == OK)
        r->arguments = json_keep(c->arena, kept);
}

/* The page names any user: all those that it names are one. */
static uid_t busy_user(const struct call *c)
{
    const struct peer *peer = c->request.peer;
    return peer && peer->is_example ? (uid_t)-1 : c->place.uid;
}

/* Of a tool whose policy was late in the last calls. Not for a report: its tool has run. */
static void refuse_busy(struct call *c)
{
    bool dry = c->request.dry_run;
    int64_t left_ms =
        c->gate->busy ? busy_left_ms(&c->gate->busy[dry], busy_user(c), c->tool->name, call_mono_ms()) : 0;
    if (!left_ms)
        return;
    bool enforces =
        dry || c->tool->mode == POLICY_ENFORCE; /* a dry run without its hooks would show nothing */
    for (size_t i = 0; i < c->tool->overlay_count; i++)
        enforces |= c->tool->overlays[i].mode == POLICY_ENFORCE;
    if (!enforces) { /* then its hooks are left out instead */
        struct tool *tool = arena_alloc(c->arena, sizeof(*tool));
        *tool = *c->tool;
        tool->mode = POLICY_OFF;
        tool->overlay_count = 0;
        c->tool = tool;
        return;
    }
    c->busy = true;
    verdict_set(&c->verdict, CLASS_TRANSIENT, STR_LIT("busy"),
                STR_LIT("it was not run, since the gateway's policy for it used up its time in the last "
                        "calls"),
                STR_NONE);
    c->verdict.after_s = (left_ms + 999) / 1000;
}

/* False: the answer comes later. */
static bool look(struct call *c, bool newest)
{
    struct ledger_call *request = ARENA_NEW(c->arena, struct ledger_call);
    *request =
        (struct ledger_call){.place = c->place, .newest = newest, .admission = c->request.check.admission};
    if (c->request.mode != CALL_REPORT)
        catalog_wants(c->generation, request);
    c->peek = ARENA_NEW(c->arena, struct ledger_answer);
    c->peek_is_newest = newest;
    return ledger_ask(c->gate->ledger, LEDGER_LOOK, request, c->arena, c->peek, call_resume, c) ==
           LEDGER_DONE;
}

static enum step find_tool(struct call *c)
{
    struct call_request *r = &c->request;
    if (c->peek)
        read_past(c);
    c->tool = tool_lookup_find(c, r);
    if (!c->tool && c->peek && !c->peek_is_newest) /* another daemon may have changed the session since */
        return look(c, true) ? find_tool(c) : STEP_WAIT;
    if (!c->tool) {
        bool forgotten = r->mode == CALL_REPORT && !r->tool.len;
        verdict_set(&c->verdict, CLASS_UNKNOWN_TOOL,
                    forgotten ? STR_LIT("call_forgotten") : STR_LIT("unknown_tool"), STR_NONE, STR_NONE);
        return STEP_NEXT;
    }
    if (!str_eq(c->tool->name, r->tool)) { /* an alias: the ledger counts under the tool's name */
        c->outcome.alias = r->tool;
        r->tool = c->tool->name;
    }
    if (r->force_enforce)
        c->tool = tool_as_enforced(c->arena, c->tool, r->enforced_overlay);
    if (c->tool->held && r->mode != CALL_REPORT) {
        /* Also in shadow mode: the operator has not accepted the current definition. */
        bool changed = c->tool->held == TOOL_HELD_CHANGED;
        verdict_set(&c->verdict, CLASS_UNAVAILABLE,
                    changed ? STR_LIT("definition_changed") : STR_LIT("definition_new"),
                    changed
                        ? STR_LIT("its server has changed its definition, and the operator has not accepted "
                                  "that yet (toolgate pins); it was not run")
                        : STR_LIT("the operator has not accepted its definition yet (toolgate pins); it was "
                                  "not run"),
                    STR_NONE);
    } else if (r->mode == CALL_RUN && c->tool->runner == RUNNER_AGENT) {
        verdict_set(&c->verdict, CLASS_AGENT_RUNS_THIS, STR_LIT("agent_runs_this"), STR_NONE, STR_NONE);
    } else if (r->mode != CALL_REPORT) {
        refuse_busy(c);
    }
    return STEP_NEXT;
}

/* Prepare hooks decide by what the ledger knows of the session. A report that does not repeat its call takes
 * it from there, too: from what the check, perhaps of another daemon, has left. */
static enum step known(struct call *c)
{
    const struct call_request *r = &c->request;
    bool reports = r->mode == CALL_REPORT;
    set_place(c);
    c->told_goal = r->goal;
    bool looks = reports ? !(r->tool.len && r->arguments)
                         : !r->ignore_prepare && catalog_may_hide(c->generation, r->client_tools, r->tool);
    if (!r->dry_run && looks && !look(c, false))
        return STEP_WAIT;
    return find_tool(c);
}

/* ---- 2 schema ---- */

static enum step check_schema(struct call *c)
{
    arguments_read(&c->args, c->arena, c->tool, c->request.arguments, c->request.arguments_fault,
                   &c->generation->config);
    if (c->tool->mode != POLICY_OFF)
        arguments_check_schema(&c->args);
    verdict_from_arguments(&c->verdict, c->tool, NULL, c->arena, &c->args);
    return STEP_NEXT;
}

/* ---- 3 rules ---- */

/* Rules add to the problems that the schema has found. A malformed id makes the class
 * fabricated_id even if there are repairable problems, too. */
static enum step check_rules(struct call *c)
{
    struct policy_call view = call_for_policy(c);
    struct id_fault fault;
    bool has_rules = c->tool->policy && c->tool->mode != POLICY_OFF;
    arguments_check_rules(&c->args, &view);
    verdict_from_arguments(&c->verdict, c->tool, c->tool->policy, c->arena, &c->args);
    if (has_rules && ids_find_malformed(c->arena, c->tool->policy, c->args.now, &fault))
        verdict_from_malformed_id(&c->verdict, c->arena, &fault);
    call_discard_unless_enforced(c);
    if (c->tool->overlay_count)
        overlays_check_rules(c);
    c->verdict.valid = !verdict_is_decided(&c->verdict);
    c->verdict.rewrites = arguments_rewrites(&c->args);
    c->verdict.changes = c->args.whole == c->args.sent ? c->verdict.rewrites : arguments_changes(&c->args);
    c->verdict.arguments = &c->args;
    return c->verdict.valid || c->tool->schema_mode != SCHEMA_LEARN ? STEP_NEXT : call_lax_ask(c);
}

/* ---- 4 admit ---- */

static enum step admit_answered(struct call *c)
{
    const struct ledger_answer *answer = c->answer;
    if (c->rated) /* not since it was asked: Redis took it later, and would get less back than it took */
        c->rated_ns = clock_mono_ns();
    c->verdict.engine = answer->engine;
    verdict_from_ledger(&c->verdict, answer);
    if (answer->lax)
        call_lax_pass(c);
    c->admitted = answer->error == OK && answer->says == LEDGER_RUN && !verdict_is_decided(&c->verdict);
    bool reads = c->tool && c->tool->limits->effects == LEDGER_EFFECTS_READ; /* then it finds out itself */
    if (c->admitted && c->ids && c->ids->too_many && !reads) {
        verdict_from_many_ids(&c->verdict, c->arena, c->ids->too_many);
    } else if (c->admitted && c->ids && answer->unseen) {
        /* If the ledger's record is incomplete, or there is no goal, the id may be known after all: the model
         * is asked to look it up, and may insist on it. What destroys data is then for the user to decide. */
        struct str goal = call_goal(c);
        struct id_fault fault;
        bool certain = goal.len && answer->ids_complete;
        const struct policy_id *id =
            ids_find_unseen(c->arena, c->ids, answer, certain ? 0 : answer->insisted, goal, &fault);
        if (id)
            verdict_from_unseen_id(&c->verdict, c->arena, &fault, id, certain);
        else
            call_ask_unseen(c, goal);
    }
    call_discard_unless_enforced(c);
    return STEP_NEXT;
}

/* How long the ledger holds the reservation: as long as the upstream may take, retries included. 0 for a tool
 * that runs in Lua or in the agent: the ledger's own time. */
static uint32_t reservation_ms(const struct call *c)
{
    bool runs_upstream = c->request.mode == CALL_RUN && c->tool && c->tool->runner == RUNNER_UPSTREAM;
    if (!runs_upstream || !c->gate->upstreams)
        return 0;
    uint32_t ms = upstream_max_duration_ms(c->gate->upstreams, &c->tool->target);
    if (c->request.elicit && ms < UINT32_MAX - UPSTREAM_ASK_MS)
        ms += UPSTREAM_ASK_MS;
    if (c->tool->retry.times && c->tool->retry.within_ms > ms)
        ms = c->tool->retry.within_ms;
    return ms < UINT32_MAX - SETTLE_MS ? ms + SETTLE_MS : UINT32_MAX;
}

/* The ledger keeps the arguments of a check for the result hook: the report need not repeat them. */
static struct str open_arguments(const struct call *c)
{
    if (c->request.mode != CALL_CHECK || (verdict_is_decided(&c->verdict) && !c->lax))
        return STR_NONE;
    struct str text = json_to_str(c->arena, c->lax ? c->lax->args : c->args.now);
    return text.len <= LEDGER_OPEN_ARGUMENTS_MAX_BYTES ? text : STR_NONE;
}

static enum step admit(struct call *c)
{
    const struct ledger_limits *limits = c->tool ? c->tool->limits : &ledger_default_limits;
    const struct error_class_info *class = error_class_info(c->verdict.class);
    const struct json *now = c->args.now;
    const struct peer *peer = c->request.peer;
    bool by_user = peer && limits->rate_count && limits->rate_by == LEDGER_RATE_BY_USER;
    bool are_arguments_lost =
        class->admitted_as == LEDGER_SO_FAR_INVALID &&
        (str_is(c->verdict.code, "cut_off") || (json_is(now, JSON_OBJECT) && !now->len));
    size_t problem_count;
    if (c->busy)
        return STEP_NEXT;
    const struct ledger_problem *problems = call_problems(c, &problem_count);
    c->fingerprint = call_fingerprint(c);
    c->fingerprinted = now ? now : c->request.arguments;
    if (c->tool && c->tool->takes_ids && (!verdict_is_decided(&c->verdict) || c->lax)) {
        c->ids = arena_alloc(c->arena, sizeof(*c->ids));
        c->ids->count = 0;
        c->ids->too_many = NULL;
        if (c->tool->policy)
            ids_collect(c->arena, c->tool->policy, now, c->ids);
        for (size_t i = 0; i < c->tool->overlay_count; i++)
            if (c->tool->overlays[i].mode == POLICY_ENFORCE)
                ids_collect(c->arena, c->tool->overlays[i].policy, now, c->ids);
    }
    struct ledger_answer *answer = arena_alloc(c->arena, sizeof(*answer));
    LEDGER_CLEAR(answer);
    c->answer = answer;
    if (c->request.dry_run) { /* as if it were a new session's first call */
        answer->engine = "none";
        answer->says = c->verdict.class == CLASS_INVALID_ARGUMENTS ? LEDGER_REPAIR : LEDGER_RUN;
        answer->attempt = 1;
        answer->attempts_left = limits->repair;
        return admit_answered(c);
    }
    struct ledger_call *request = arena_alloc(c->arena, sizeof(*request));
    *request = (struct ledger_call){
        .place = c->place,
        .admission = c->admission,
        .tool = c->request.tool,
        .call = c->request.label,
        .problems = problems,
        .problem_count = problem_count,
        .lax = c->lax != NULL,
        .lax_known = c->lax ? c->lax->known : 0,
        .open_arguments = open_arguments(c),
        /* whose calls share the tool's rates */
        .peer = by_user ? arena_printf(c->arena, "uid:%u", (unsigned)peer->uid) : STR_NONE,
        .ext = c->request.ext,
        .arguments = c->fingerprint,
        .arguments_lost = are_arguments_lost,
        .so_far = class->admitted_as,
        .refused_as = str_of(class->name),
        .limits = limits,
        .ids = c->ids ? c->ids->hashes : NULL,
        .id_count = c->ids ? c->ids->count : 0,
        .wants_history = c->tool && c->tool->wants.history,
        .wants_facts = c->tool && c->tool->wants.facts,
        .reservation_ms = reservation_ms(c),
        .not_enforced = c->tool && c->tool->mode == POLICY_SHADOW,
    };
    c->rated = limits->rate_count && request->so_far == LEDGER_SO_FAR_VALID ? request : NULL;
    if (ledger_ask(c->gate->ledger, LEDGER_ADMIT, request, c->arena, answer, call_resume, c) != LEDGER_DONE)
        return STEP_WAIT;
    return admit_answered(c);
}

/* Nothing was asked to run it. */
static void give_rate_back(struct call *c)
{
    if (c->rated && !c->ran && !c->upstream && !str_is(c->answer->code, "rate_limit"))
        ledger_give_rate_back(c->gate->ledger, c->rated, (uint64_t)(clock_mono_ns() - c->rated_ns) / 1000);
    c->rated = NULL;
}

/*
 * ---- 1 known, again ----
 *
 * Another daemon may have changed the session after the prepare hooks of stage 1 saw it. They then run once
 * more, so that a tool that they hide now does not run.
 */

static enum step shown_still(struct call *c)
{
    c->request.past = c->peek;
    if (!tool_lookup_find(c, &c->request))
        verdict_set(&c->verdict, CLASS_UNKNOWN_TOOL, STR_LIT("unknown_tool"), STR_NONE, STR_NONE);
    return STEP_NEXT;
}

static enum step look_again(struct call *c)
{
    if (!c->peek || c->peek->version == c->answer->version)
        return STEP_NEXT;
    return look(c, true) ? shown_still(c) : STEP_WAIT;
}

/*
 * ---- 8 settle ----
 *
 * Reports to the ledger how a call ended. An admitted call is settled exactly once: with its result, with the
 * agent's report, or as released if it was cancelled.
 */

static struct ledger_call *settle_request(struct call *c, enum ledger_class class)
{
    struct ledger_call *request = arena_alloc(c->arena, sizeof(*request));
    const struct verdict *v = &c->verdict;
    bool failed =
        v->class == CLASS_TOOL_ERROR || v->class == CLASS_TRANSIENT || v->class == CLASS_SCHEMA_MISMATCH;
    struct str said = str_trim(v->quoted.len ? v->quoted : v->detail);
    const struct hash128 *ids = NULL;
    size_t id_count = 0, problem_count;
    const struct ledger_problem *problems = call_problems(c, &problem_count);
    uint64_t refused = call_lax_refused(c);
    if (refused) {
        problems = c->lax->problems;
        problem_count = c->lax->problem_count;
    }
    const struct json *compared = NULL;
    if (c->result.value)
        compared = result_compared(c->arena, c->tool->policy, c->tool->limits, c->result.value);
    double cost = c->verdict.cost; /* from the policy, else from the result's _meta */
    if (cost < 0 &&
        (!json_double(json_get_text(c->result.metadata, CALL_COST_KEY), &cost) || cost > POLICY_COST_MAX))
        cost = -1;
    c->verdict.cost = cost;
    if (c->ran && c->tool->policy && c->tool->policy->gives_id_count && c->result.value)
        id_count = ids_in_result(c->arena, c->tool->policy, c->result.value, &ids);
    *request = (struct ledger_call){
        .place = c->place,
        .admission = c->admission,
        .tool = c->request.tool,
        .ext = c->request.ext,
        .call = c->request.label,
        .problems = problems,
        .problem_count = problem_count,
        .arguments = c->fingerprint,
        .fingerprint = c->request.mode == CALL_REPORT ? call_fingerprint : NULL,
        .of = c,
        .class = class == LEDGER_CLASS_OK && c->uninformative ? LEDGER_CLASS_GARBAGE : class,
        /* what a refusal of the same call will quote */
        .error = failed ? str_cut(said, LEDGER_ERROR_MAX_BYTES) : STR_NONE,
        .label = str_of(error_class_info(v->class)->name),
        .limits = c->tool->limits,
        .gives_ids = ids,
        .gives_id_count = id_count,
        .facts = json_is(v->facts, JSON_OBJECT) ? v->facts : NULL,
        .refused = refused,
        .uncounted = c->answer->uncounted,
        .not_enforced = v->would.len || c->request.check.marks & CALL_NOT_ENFORCED,
        .approved = (c->request.consent_count || c->request.check.marks & CALL_APPROVED) &&
                    v->class != CLASS_FORBIDDEN,
        .declined = v->class == CLASS_FORBIDDEN && str_is(v->code, "declined"),
        .not_begun = v->class == CLASS_UNAVAILABLE,
        .cost_told = cost >= 0,
        .cost = cost >= 0 ? (uint64_t)llround(cost * LEDGER_COST_UNIT) : 0,
    };
    if (class == LEDGER_CLASS_OK || class == LEDGER_CLASS_PARTIAL)
        request->under_way = c->under_way =
            call_under_way(c->arena, c->tool->limits, c->args.now, &c->result);
    call_compare(c, c->arena, compared, call_failure_text(c), request);
    return request;
}

/* A repair chain has ended with the call; an empty outcome: none has. */
static void end_chain(const struct call *c, struct str outcome, uint32_t retries)
{
    if (!outcome.len)
        return;
    metrics_count_chain(c->gate->metrics, c->request.tool, outcome);
    ledger_log_chain(c->request.tool, c->request.ext, outcome, retries);
}

static enum step settle_answered(struct call *c)
{
    const struct ledger_answer *settled = c->settled;
    if (settled->error != OK)
        log_event(LOG_WARN, "ledger_settle_failed", LOG_STR("tool", c->request.tool),
                  LOG_TEXT("why", settled->why.text));
    end_chain(c, settled->chain, settled->chain_retries);
    verdict_from_settle(&c->verdict, settled, c->ran);
    if (c->under_way)
        c->verdict.asked = settled->asked;
    if (settled->lax_learnt)
        call_lax_settled(c);
    return STEP_NEXT;
}

/* Only an admitted call or a report has something to settle; a check that passed keeps its reservation until
 * its report. */
static enum step settle(struct call *c)
{
    struct verdict *v = &c->verdict;
    if (c->request.dry_run) {
        v->has_budget = v->class == CLASS_INVALID_ARGUMENTS;
        return STEP_NEXT;
    }
    end_chain(c, c->answer->chain, c->answer->chain_retries);
    if (verdict_is_decided(v))
        give_rate_back(c);
    bool reserved = c->request.mode == CALL_CHECK && !verdict_is_decided(v);
    if (reserved || !(c->admitted || c->request.mode == CALL_REPORT) || !c->tool)
        return STEP_NEXT;
    /* If the upstream gave a retry time, the call counts as transient, so that a retry is no loop. */
    bool transient = v->class == CLASS_UNAVAILABLE && v->after_s >= 0;
    enum ledger_class class = transient ? LEDGER_CLASS_TRANSIENT : error_class_info(v->class)->settled_as;
    if (v->class == CLASS_NEED_USER_INPUT && call_ask_counts(c))
        class = LEDGER_CLASS_REFUSED;
    if (v->class == CLASS_POLICY_ERROR &&
        str_is(v->code, VERDICT_RESULT_UNCHECKED)) /* it ran: its budget stays spent */
        class = LEDGER_CLASS_SCHEMA_MISMATCH;
    c->settle_started = true;
    c->settled = arena_alloc(c->arena, sizeof(*c->settled)); /* ledger_ask fills it in */
    if (ledger_ask(c->gate->ledger, LEDGER_SETTLE, settle_request(c, class), c->arena, c->settled,
                   call_resume, c) == LEDGER_PENDING)
        return STEP_WAIT;
    return settle_answered(c);
}

/* ---- the stages in their order ---- */

#define IN(mode)   (1u << (mode))
#define ALL_MODES  (IN(CALL_RUN) | IN(CALL_CHECK) | IN(CALL_REPORT))
#define BEFORE_RUN (IN(CALL_RUN) | IN(CALL_CHECK))
#define AFTER_RUN  (IN(CALL_RUN) | IN(CALL_REPORT))

static const struct stage {
    const char *name;
    unsigned modes;
    bool if_decided; /* runs even if an earlier stage has decided */
    bool needs_args; /* runs only if the tool was found and its arguments read */
    enum call_part part;
    enum step (*enter)(struct call *c);
    enum step (*resume)(struct call *c); /* after STEP_WAIT; NULL: goes on to the next stage */
} stages[] = {
    {"known", ALL_MODES, true, false, CALL_PART_POLICY, known, find_tool},
    {"schema", BEFORE_RUN, false, false, CALL_PART_SCHEMA, check_schema, NULL},
    {"rules", BEFORE_RUN, true, true, CALL_PART_POLICY, check_rules, NULL},
    {"admit", BEFORE_RUN, true, false, CALL_PART_LEDGER, admit, admit_answered},
    {"known", BEFORE_RUN, false, false, CALL_PART_POLICY, look_again, shown_still},
    {"check", BEFORE_RUN, false, false, CALL_PART_POLICY, call_check, call_ask_answered},
    {"run", IN(CALL_RUN), false, false, CALL_PART_UPSTREAM, call_run, call_run_answered},
    {"judge", AFTER_RUN, false, false, CALL_PART_POLICY, call_judge, NULL},
    {"retry", IN(CALL_RUN), true, false, CALL_PART_UPSTREAM, call_retry, call_retry_due},
    {"settle", ALL_MODES, true, false, CALL_PART_LEDGER, settle, settle_answered},
};
#define STAGE_COUNT (sizeof(stages) / sizeof(stages[0]))

/* ---- where the time went ---- */

/* Consecutive stages of one part need one reading of the clock. */
static void enter_part(struct call *c, enum call_part part)
{
    if (!c->part_began_ns || part == c->part)
        return;
    int64_t now_ns = clock_mono_ns();
    c->timing.part_ns[c->part] += now_ns - c->part_began_ns;
    c->part_began_ns = now_ns;
    c->part = part;
}

/* After the last part comes the feedback, if there is one. */
static void end_timing(struct call *c)
{
    if (!c->part_began_ns)
        return;
    int64_t now_ns = verdict_replaces_result(&c->verdict) ? clock_mono_ns() : c->part_began_ns;
    c->timing.total_ns = now_ns - c->began_ns;
    c->outcome.timing = &c->timing;
}

static void finish(struct call *c)
{
    struct str names[TOOL_LOOKUP_ALL_MAX] __attribute__((uninitialized));
    struct call_outcome *outcome = &c->outcome;
    const struct result *shown = c->compacted.done ? &c->compacted.result : &c->result;
    /* The model's provider accepts no other name of it: there is no better one to tell. */
    bool is_plain_name = c->tool && (str_eq(outcome->alias, c->tool->plain_name) ||
                                     str_eq(outcome->alias, c->tool->target.tool));
    struct feedback feedback = {.verdict = &c->verdict,
                                .tool = c->tool,
                                .name = c->request.tool,
                                .alias = is_plain_name ? STR_NONE : outcome->alias,
                                .suggestions = names};
    const struct error_class_info *class = error_class_info(c->verdict.class);
    enter_part(c, CALL_PARTS);
    if (c->verdict.class == CLASS_UNKNOWN_TOOL)
        feedback.name_count = tool_lookup_suggest(c, &c->request, names, &feedback.suggestion_count);
    c->verdict.ran = c->ran;
    if (c->ran && !c->verdict.coverage.len && class->coverage)
        c->verdict.coverage = str_of(class->coverage);
    if (verdict_replaces_result(&c->verdict))
        outcome->feedback = feedback_text(c->arena, &feedback);
    else if (c->tool && c->tool->mode == POLICY_ENFORCE)
        outcome->advice = feedback_advice(c->arena, &feedback);
    verdict_describe(&c->verdict, feedback.detail, feedback.hint);
    outcome->arguments = c->args.now;
    outcome->content = shown->content;
    outcome->structured = shown->structured;
    outcome->metadata = c->result.metadata;
    outcome->result = c->result.value;
    outcome->traces = c->traces;
    if (c->verdict.class == CLASS_NEED_USER_INPUT && c->upstream && c->request.supports_elicitation)
        outcome->input_requests = c->upstream->answer.input;
    if (outcome->input_requests || c->verdict.class == CLASS_UNAVAILABLE) /* it has not begun */
        call_ask_reopen(c);
    end_timing(c);
    if (c->gate->metrics && !c->request.dry_run)
        metrics_count_call(c->gate->metrics, c);
    bool dry = c->request.dry_run;
    if (c->gate->busy && c->time.ran &&
        busy_count(&c->gate->busy[dry], busy_user(c), c->tool->name, c->time.late != 0, call_mono_ms(),
                   dry) &&
        !dry)
        log_event(LOG_WARN, "tool_busy", LOG_STR("tool", c->tool->name), LOG_NUM("uid", c->place.uid),
                  LOG_NUM("for_s", BUSY_MS / 1000), LOG_NUM("late_calls", BUSY_LATE_IN_A_ROW));
    call_log_end(c);
    if (c->gate->decisions && !c->request.dry_run)
        decision_log_call(c->gate->decisions, c);
    if (c->span)
        call_span_end(c, NULL);
    c->finished = true;
}

/* Stages of the policy wait for what the ledger knows. */
static enum call_part waits_for(const struct stage *stage)
{
    return stage->part == CALL_PART_POLICY ? CALL_PART_LEDGER : stage->part;
}

/* Runs stages until one waits (false) or the call has finished (true). */
static bool advance(struct call *c)
{
    for (; c->stage < STAGE_COUNT; c->stage++) {
        const struct stage *stage = &stages[c->stage];
        bool applies = (stage->modes & IN(c->request.mode)) &&
                       (stage->if_decided || !verdict_is_decided(&c->verdict)) &&
                       (!stage->needs_args || (c->tool && c->args.now));
        if (!applies)
            continue;
        if (c->request.trace || c->span)
            c->stage_began_ns = clock_mono_ns();
        /* A retry takes time only if it waits, and a check that passed is settled by its report. */
        bool settled_later = c->request.mode == CALL_CHECK && !verdict_is_decided(&c->verdict);
        if (stage->enter != call_retry && !(stage->enter == settle && settled_later))
            enter_part(c, stage->part);
        if (stage->enter(c) == STEP_WAIT) {
            enter_part(c, waits_for(stage));
            return false;
        }
        call_leave_stage(c, stage->name);
    }
    finish(c);
    return true;
}

void call_resume(void *owner)
{
    struct call *c = owner;
    const struct stage *stage = &stages[c->stage];
    enter_part(c, stage->part);
    enum step step = stage->resume ? stage->resume(c) : STEP_NEXT;
    if (step == STEP_WAIT) {
        enter_part(c, waits_for(stage));
        return;
    }
    if (step == STEP_RETRY) {
        if (c->span)
            call_span_stage(c, stage->name);
        while (stages[c->stage].enter != call_run)
            c->stage--;
    } else {
        call_leave_stage(c, stage->name);
        c->stage++;
    }
    if (advance(c))
        c->done(c->owner);
}

/* ---- new, start, cancel, free ---- */

struct call *call_new(struct gate *gate, struct arena *arena, const struct call_request *request)
{
    static const struct ledger_answer not_admitted;
    struct call *c = arena_alloc(arena, sizeof(*c));
    c->request = *request;
    memset(&c->gate, 0, sizeof(*c) - offsetof(struct call, gate));
    c->gate = gate;
    c->arena = arena;
    c->generation = generation_ref(gate->generation);
    if (!gate->admissions) /* the seed separates processes */
        gate->admissions = hash_random();
    c->admission = request->mode == CALL_REPORT ? request->check.admission : hash_next(&gate->admissions);
    c->answer = &not_admitted;
    if (request->trace)
        c->traces = ARENA_ARRAY(arena, struct call_trace, CALL_TRACES_MAX);
    c->outcome.verdict = &c->verdict;
    c->verdict.notices = request->notices;
    c->verdict.notice_count = request->notice_count;
    c->verdict.after_s = -1;
    c->verdict.cost = -1;
    problems_init(&c->verdict.problems, arena);
    return c;
}

bool call_start(struct call *c, call_done *done, void *owner)
{
    struct metrics *metrics = c->gate->metrics;
    c->done = done;
    c->owner = owner;
    if (metrics && !c->request.dry_run) {
        metrics->calls += c->request.mode == CALL_RUN;
        metrics->checks += c->request.mode == CALL_CHECK;
        metrics->reports += c->request.mode == CALL_REPORT;
    }
    if (c->gate->timed) {
        int64_t received_ns = c->request.received_ns;
        c->part_began_ns = clock_mono_ns();
        c->began_ns = received_ns ? received_ns : c->part_began_ns;
        c->timing.part_ns[CALL_PART_QUEUE] = c->part_began_ns - c->began_ns;
        c->part = CALL_PART_POLICY; /* that of stage 1 */
    }
    if (c->gate->spans)
        c->span = call_span_begin(c);
    return advance(c);
}

void call_cancel(struct call *c)
{
    if (c->finished)
        return;
    ledger_cancel(c->gate->ledger, c);
    if (c->ask)
        approvals_cancel(c->gate->approvals, c);
    if (c->gate->upstreams)
        upstream_cancel(c->gate->upstreams, c);
    if (c->gate->metrics)
        c->gate->metrics->cancelled++;
    if (c->admitted && !c->settle_started) { /* returns the reservation */
        give_rate_back(c);
        verdict_set(&c->verdict, CLASS_CANCELLED, STR_LIT("cancelled"), STR_NONE, STR_NONE);
        c->settled = arena_alloc(c->arena, sizeof(*c->settled)); /* ledger_ask fills it in */
        ledger_ask(c->gate->ledger, LEDGER_SETTLE, settle_request(c, LEDGER_CLASS_RELEASED), c->arena,
                   c->settled, NULL, NULL);
    }
    if (c->gate->decisions && !c->request.dry_run) {
        verdict_set(&c->verdict, CLASS_CANCELLED, STR_LIT("cancelled"), STR_NONE, STR_NONE);
        c->verdict.stage = stages[c->stage].name;
        enter_part(c, CALL_PARTS);
        end_timing(c);
        decision_log_call(c->gate->decisions, c);
    }
    c->cancelled = c->finished = true;
    if (c->span)
        call_span_end(c, stages[c->stage].name);
}

void call_free(struct call *c)
{
    generation_unref(c->generation);
    c->generation = NULL;
}
