/*
 * Stage 5: the check hooks, and what becomes of their questions to the user.
 *
 *   the hooks ask ──▶ has this question of this call an answer?  (the fleet's approvals)
 *        ▲              │ approved, and it counts as answered        │ denied     │ none yet
 *        └──────────────┘                                            ▼            ▼
 *   the hooks pass ──▶ spend what was approved, once ──▶ run      declined     the verdict asks
 *
 * A client that the server asks over its connection brings the answer as a consent, and nothing is kept.
 */
#include "gate/call_state.h"

#include "ledger/approvals.h"
#include "base/arena.h"
#include "base/hash.h"
#include "base/log.h"
#include "gate/call.h"
#include "gate/ids.h"
#include "json/write.h"
#include "policy/policy_hooks.h"

struct call_ask {
    struct approval_request request;
    struct consent consents[CONSENTS_MAX];
    uint64_t ids[CONSENTS_MAX]; /* of those that were approved */
    unsigned count, id_count;
    bool repeats; /* the question was put before */
    bool has_answered;
};

_Static_assert(CONSENTS_MAX <= APPROVAL_SPENDS_MAX, "what is approved for one call is spent at once");

/* ---- the user's answers: only the very question that was answered counts, and a hook that asks another one
 * asks again ---- */

/* Turns a question that was answered into a pass, or into a refusal with the code "declined". */
static void apply_consent(const struct call *c, struct policy_outcome *outcome)
{
    const struct consent *answer = NULL;
    for (size_t i = 0; i < c->request.consent_count && !answer; i++)
        if (str_eq(c->request.consents[i].question, outcome->detail))
            answer = &c->request.consents[i];
    if (outcome->kind != OUTCOME_ASK || !answer)
        return;
    outcome->kind = answer->given ? OUTCOME_PASS : OUTCOME_REFUSE;
    if (answer->given)
        return;
    struct str chose = arena_printf(c->arena, "chose \"" STR_FMT "\"", STR_ARG(answer->choice));
    bool by_operator = !answer->choice.len && answer->by.len;
    outcome->code = STR_LIT("declined");
    outcome->detail = arena_printf(c->arena, "%s was asked \"" STR_FMT "\" and " STR_FMT,
                                   by_operator ? "an operator" : "the user", STR_ARG(answer->question),
                                   STR_ARG(answer->choice.len ? chose
                                           : by_operator      ? STR_LIT("denied it")
                                                              : STR_LIT("said no")));
    outcome->hint = STR_LIT("Do not make this call again; ask the user what to do instead.");
    outcome->choices = NULL;
}

/* ---- the hooks ---- */

#define UNSEEN_NAMED_MAX 8u /* of the ids in a question */

void call_ask_unseen(struct call *c, struct str goal)
{
    const struct id_candidates *ids = c->ids;
    struct buf question = buf_in(c->arena);
    struct policy_outcome *outcome = ARENA_NEW(c->arena, struct policy_outcome);
    unsigned count = 0;
    struct str named = STR_NONE;
    problems_init(&outcome->problems, c->arena);
    outcome->after_s = outcome->cost = -1;
    buf_printf(&question, "Run " STR_FMT " with", STR_ARG(c->tool->name));
    for (size_t i = 0; i < ids->count; i++) {
        struct str id = {ids->values[i]->text, ids->values[i]->len};
        if (!(c->answer->unseen >> i & 1) || !(tool_destroys(c->tool) || c->ids->from[i]->strict) ||
            ids_in_goal(goal, id))
            continue;
        if (!outcome->hint.len && ids->from[i]->look_up.len)
            outcome->hint =
                arena_printf(c->arena, "Look ids up first with " STR_FMT ".", STR_ARG(ids->from[i]->look_up));
        if (count++ >= UNSEEN_NAMED_MAX)
            continue;
        buf_text(&question, count > 1 ? "," : "");
        if (!str_eq(ids->from[i]->path, named)) /* the ids of one list follow each other */
            buf_printf(&question, " " STR_FMT, STR_ARG(ids->from[i]->path));
        named = ids->from[i]->path;
        buf_printf(&question, " " STR_FMT, STR_ARG(ids_quoted(c->arena, ids->values[i])));
    }
    if (!count)
        return;
    if (count > UNSEEN_NAMED_MAX)
        buf_printf(&question, ", and %u more", count - UNSEEN_NAMED_MAX);
    buf_printf(&question, "? %s came neither from an earlier result nor from the user.",
               count > 1 ? "They" : "It");
    outcome->kind = OUTCOME_ASK;
    outcome->code = STR_LIT("unseen_id");
    outcome->detail = buf_view(&question);
    c->unseen = outcome;
}

void call_check_hook(struct call *c, const struct policy *policy, struct verdict *found)
{
    struct policy_outcome outcome __attribute__((uninitialized)); /* 2 KB, filled in by policy_check */
    struct policy_call view = call_for_policy(c);
    policy_check(policy, &view, c->args.now, c->arena, &outcome);
    apply_consent(c, &outcome);
    if (outcome.kind == OUTCOME_POLICY_ERROR)
        verdict_from_broken_hook(found, c->tool, policy, c->arena, outcome.why.text);
    else
        verdict_from_hook(found, c->arena, &outcome);
}

static void run_hooks(struct call *c)
{
    const struct policy *policy = c->tool->policy;
    if (c->unseen) {
        struct policy_outcome outcome = *c->unseen;
        apply_consent(c, &outcome);
        verdict_from_hook(&c->verdict, c->arena, &outcome);
        call_discard_unless_enforced(c);
        if (verdict_is_decided(&c->verdict)) /* the user has to decide first, or has said no */
            return;
    }
    if (policy && policy->hooks[HOOK_CHECK] && c->tool->mode != POLICY_OFF) {
        call_check_hook(c, policy, &c->verdict);
        call_discard_unless_enforced(c);
    }
    if (c->tool->overlay_count)
        overlays_check(c);
}

/* As if they had not asked. */
static void run_hooks_again(struct call *c)
{
    struct verdict *v = &c->verdict;
    verdict_set(v, CLASS_OK, STR_NONE, STR_NONE, STR_NONE);
    v->coverage = v->by = STR_NONE;
    v->choices = NULL;
    v->stage = NULL;
    c->request.consents = c->ask->consents;
    c->request.consent_count = c->ask->count;
    run_hooks(c);
}

/* ---- the question ---- */

static void bind_text(struct buf *out, struct str text)
{
    buf_printf(out, "%zu:" STR_FMT ",", text.len, STR_ARG(text));
}

/* A change of any of it is another question; each part is preceded by its length, so that none can pass for
 * two. The policies are known by their text: it is the same on every daemon of the fleet, in any folder. */
static void bind_call(const struct call *c, uint8_t out[SHA256_BYTES])
{
    const struct verdict *v = &c->verdict;
    const struct tool *tool = c->tool;
    struct buf text = buf_in(c->arena), arguments = buf_in(c->arena);
    uint64_t policies = tool->policy ? tool->policy->source_hash : 0;
    for (size_t i = 0; i < tool->overlay_count; i++)
        hash_add(&policies, tool->overlays[i].policy->source_hash);
    if (c->args.now)
        json_canonical(&arguments, c->args.now);
    buf_printf(&text, "%u,%016llx,%016llx,", (unsigned)c->place.uid, (unsigned long long)policies,
               (unsigned long long)json_fingerprint(c->arena, tool->input, NULL, 0).low);
    bind_text(&text, c->place.session);
    bind_text(&text, tool->name);
    bind_text(&text, v->detail);
    bind_text(&text, v->choices ? json_to_str(c->arena, v->choices) : STR_NONE);
    bind_text(&text, buf_view(&arguments));
    sha256(buf_view(&text), out);
}

static void fill_question(struct call *c, struct approval_request *request)
{
    const struct call_request *r = &c->request;
    const struct peer *peer = r->peer;
    struct consent answer = {.question = c->verdict.detail};
    request->asked = (struct approval){
        .id = hash_random() | 1,
        .of_client = r->asks == CALL_ASKS_REPLY && consent_fits_form(c->verdict.detail, c->verdict.choices),
        .session_hash = hash_stable(c->place.session).low,
        .uid = c->place.uid,
        .process = approvals_process(peer ? (uint32_t)peer->pid : 0),
        .session = c->place.session,
        .user = peer ? str_of(peer->user) : STR_NONE,
        .tool = c->tool->name,
        .arguments = c->args.now ? json_to_str(c->arena, c->args.now) : STR_LIT("{}"),
        .question = c->verdict.detail,
    };
    bind_call(c, request->asked.binding);
    /* The client's answer to the question that its state names; what fits no form is ignored. */
    if (r->answered && !c->ask->has_answered &&
        consent_read(c->arena, r->answer, c->verdict.choices, &answer)) {
        request->answers = r->answered;
        request->given = answer.given;
    }
}

/* ---- the order of steps ---- */

/* The request is about what was approved for this call. */
static void name_approved(const struct call_ask *ask, struct approval_request *request)
{
    request->id_count = ask->id_count;
    memcpy(request->ids, ask->ids, sizeof(request->ids));
}

static struct str id_text(struct arena *arena, uint64_t id)
{
    char *text = arena_alloc(arena, APPROVAL_ID_CHARS + 1);
    approvals_write_id(id, text);
    return (struct str){text, APPROVAL_ID_CHARS};
}

/* What has become of the question, or of what was to be spent. True: the hooks were asked again. */
static bool take(struct call *c)
{
    struct call_ask *ask = c->ask;
    const struct approval_request *r = &ask->request;
    bool full = r->is_full || ask->count == CONSENTS_MAX;
    if (r->kind == APPROVAL_SPEND) {
        if (!r->unavailable && r->found == APPROVAL_SPENT) {
            for (unsigned i = 0; i < ask->id_count; i++)
                log_event(LOG_INFO, "approval_spent", LOG_STR("approval", id_text(c->arena, ask->ids[i])),
                          LOG_STR("tool", c->tool->name), LOG_STR("session", c->place.session),
                          LOG_NUM("uid", c->place.uid));
            return false;
        }
        ask->id_count = ask->count =
            0; /* another call has spent it, or it has expired: this one asks again */
        run_hooks_again(c);
        return true;
    }
    ask->has_answered |= r->answers != 0;
    if (r->unavailable || full) {
        ask->repeats = true;
        c->verdict.no_approval =
            r->unavailable ? r->unavailable : "too many questions have an answer that waits";
        log_event(LOG_WARN, "approval_not_kept", LOG_STR("tool", c->tool->name), LOG_NUM("uid", c->place.uid),
                  LOG_TEXT("why", c->verdict.no_approval));
        return false;
    }
    if (r->found == APPROVAL_PENDING) {
        ask->repeats = !r->is_new;
        if (r->entry.of_client) {
            c->outcome.question = r->entry.id;
            return false;
        }
        c->verdict.approval = id_text(c->arena, r->entry.id);
        if (r->is_new)
            log_event(LOG_INFO, "approval_asked", LOG_STR("approval", c->verdict.approval),
                      LOG_STR("tool", c->tool->name), LOG_STR("session", c->place.session),
                      LOG_NUM("uid", c->place.uid));
        return false;
    }
    bool approved = r->entry.state == APPROVAL_APPROVED;
    if (approved)
        ask->ids[ask->id_count++] = r->entry.id;
    struct consent *consent = &ask->consents[ask->count++];
    *consent = (struct consent){.question = c->verdict.detail, .given = approved};
    if (!r->entry.of_client) {
        consent->id = id_text(c->arena, r->entry.id);
        consent->by = r->entry.answered_by;
    }
    run_hooks_again(c);
    return true;
}

/* Each round but the last needs an answer that was given before. */
static enum step go_on(struct call *c)
{
    const struct call_request *r = &c->request;
    bool is_kept =
        c->gate->approvals && !r->dry_run && !r->simulated_result && r->asks != CALL_ASKS_CONNECTION;
    for (;;) {
        bool question = c->verdict.class == CLASS_NEED_USER_INPUT && is_kept,
             passes = !verdict_is_decided(&c->verdict);
        if (question && !c->ask)
            c->ask = ARENA_NEW(c->arena, struct call_ask);
        if (!question && !(passes && c->ask && c->ask->id_count))
            return STEP_NEXT;
        struct approval_request *request = &c->ask->request;
        *request = (struct approval_request){.kind = question ? APPROVAL_ASK : APPROVAL_SPEND,
                                             .arena = c->arena,
                                             .done = call_resume,
                                             .owner = c};
        if (question)
            fill_question(c, request);
        else
            name_approved(c->ask, request);
        if (!approvals_do(c->gate->approvals, request))
            return STEP_WAIT;
        if (!take(c))
            return STEP_NEXT;
    }
}

enum step call_check(struct call *c)
{
    run_hooks(c);
    return c->verdict.class == CLASS_NEED_USER_INPUT ? go_on(c) : STEP_NEXT;
}

enum step call_ask_answered(struct call *c)
{
    return take(c) ? go_on(c) : STEP_NEXT;
}

bool call_ask_counts(const struct call *c)
{
    return c->ask && c->ask->repeats && !c->ran;
}

void call_ask_reopen(struct call *c)
{
    struct approval_request request = {.kind = APPROVAL_REOPEN};
    if (!c->ask || !c->ask->id_count)
        return;
    name_approved(c->ask, &request);
    approvals_do(c->gate->approvals, &request);
}

/* ---- the form of a question ---- */

static bool is_yes_or_no(const struct json *choices)
{
    return !json_is(choices, JSON_ARRAY) || !choices->len;
}

static struct str choice_text(struct arena *arena, const struct json *choice)
{
    return json_is(choice, JSON_STRING) ? json_str(choice) : json_to_str(arena, choice);
}

bool consent_fits_form(struct str question, const struct json *choices)
{
    return question.len && question.len <= CONSENT_TEXT_MAX_BYTES &&
           (is_yes_or_no(choices) || choices->len <= CONSENT_CHOICES_MAX);
}

void consent_write_form(struct json_out *out, struct arena *arena, struct str question,
                        const struct json *choices)
{
    bool yes_or_no = is_yes_or_no(choices);
    json_field_str(out, "message", question);
    json_field_open(out, "requestedSchema", '{');
    json_field_text(out, "type", "object");
    json_field_open(out, "properties", '{');
    json_field_open(out, CONSENT_PROPERTY, '{');
    json_field_text(out, "type", yes_or_no ? "boolean" : "string");
    json_field_text(out, "title", yes_or_no ? "Go on?" : "Answer");
    if (!yes_or_no) {
        json_field_open(out, "enum", '[');
        for (uint32_t i = 0; i < choices->len; i++)
            json_put_str(out, choice_text(arena, &choices->items[i]));
        json_close(out, ']');
    }
    json_close(out, '}');
    json_close(out, '}');
    json_field_raw(out, "required", STR_LIT("[\"" CONSENT_PROPERTY "\"]"));
    json_close(out, '}');
}

bool consent_read(struct arena *arena, const struct json *result, const struct json *choices,
                  struct consent *consent)
{
    struct str action = json_str(json_get_text(result, "action"));
    const struct json *given = json_get_text(json_get_text(result, "content"), CONSENT_PROPERTY);
    if (str_is(action, "decline") || str_is(action, "cancel"))
        return true;
    if (!str_is(action, "accept"))
        return false;
    if (is_yes_or_no(choices)) {
        consent->given = json_is_true(given);
        return json_is(given, JSON_BOOL);
    }
    for (uint32_t i = 0; json_is(given, JSON_STRING) && i < choices->len; i++)
        if (str_eq(choice_text(arena, &choices->items[i]), json_str(given))) {
            consent->choice = arena_dup(arena, json_str(given));
            consent->given = i == 0;
            return true;
        }
    return false;
}
