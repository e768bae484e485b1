/*
 * Arguments that do not fit a schema which may be stricter than its server (docs/policy.md): which problems a
 * model may insist on, what the ledger is asked and told about them, and what the model reads. The ledger
 * decides whether it insists; nothing here runs for arguments that fit.
 */
#include "gate/call_state.h"

#include "base/arena.h"
#include "base/hash.h"
#include "policy/peer.h"
#include "json/write.h"

#define NAMED_MAX 3u /* problems in the note */

/* What servers are often more lenient about than their schema. A bound, a pattern, a format or a choice of
 * values is there because the server means it. */
static bool is_candidate(const struct call *c)
{
    static const char *const codes[] = {"missing",     "unknown_field", "type", "list",
                                        "not_allowed", "oneOf",         "anyOf"};
    const struct problems *problems = &c->verdict.problems;
    if (c->verdict.class != CLASS_INVALID_ARGUMENTS || c->tool->mode != POLICY_ENFORCE ||
        c->args.unreadable || c->args.perhaps_cut || problems->more || !problems->errors)
        return false;
    if (json_is(c->args.raw, JSON_OBJECT) && !c->args.raw->len)
        return false; /* what arrives empty may have been cut off */
    for (size_t i = 0; i < problems->count; i++)
        if (!problems->list[i].warning && !STR_IS_ONE_OF(str_of(problems->list[i].code), codes))
            return false;
    return true;
}

/* The policies' rules hold all the same: they are asked as if the schema had nothing against the arguments.
 */
static bool policies_agree(struct call *c, struct arguments *args)
{
    struct policy_call view = call_for_policy(c);
    struct id_fault fault;
    *args = c->args;
    args->lax = true;
    problems_init(&args->problems, c->arena);
    arguments_check_rules(args, &view);
    if (!args->problems.errors && !args->policy_error.len)
        overlays_normalise(args, &view);
    if (args->problems.errors || args->policy_error.len)
        return false;
    return !c->tool->policy || !ids_find_malformed(c->arena, c->tool->policy, args->now, &fault);
}

/* A changed schema is another schema; the order of its keys does not count. With the tool's
 * name, since small schemas are alike in tools that have nothing to do with each other. */
static uint64_t schema_digest(struct call *c)
{
    return json_fingerprint(c->arena, c->tool->input, NULL, 0).low ^ hash_stable(c->tool->name).high;
}

enum step call_lax_ask(struct call *c)
{
    struct arguments args;
    if (!is_candidate(c) || !policies_agree(c, &args))
        return STEP_NEXT;
    struct call_lax *lax = ARENA_NEW(c->arena, struct call_lax);
    lax->args = args.now;
    lax->problems = call_problems(c, &lax->problem_count);
    c->lax = lax;
    if (!c->request.dry_run)
        lax->known = ledger_lax_look(c->gate->ledger, schema_digest(c), lax->problems, lax->problem_count);
    return STEP_NEXT;
}

/* ---- the verdict ------------------------------------------------------------------- */

void call_lax_pass(struct call *c)
{
    struct verdict *v = &c->verdict;
    struct buf what = buf_in(c->arena); /* the first problems, in words */
    size_t named = 0;
    for (size_t i = 0; i < v->problems.count; i++) {
        struct problem *p = &v->problems.list[i];
        struct str code = str_of(p->code), path = str_cut(p->path, PROBLEM_PATH_MAX_BYTES);
        if (p->warning)
            continue;
        if (named++ == NAMED_MAX) {
            buf_printf(&what, " and %zu more", v->problems.errors - NAMED_MAX);
            break;
        }
        buf_text(&what, named > 1 ? ", " : "");
        if (path.len)
            buf_printf(&what, "'" STR_FMT "' ", STR_ARG(path));
        else
            buf_text(&what, "something ");
        buf_text(&what, str_is(code, "missing") ? "is missing"
                        : str_is(code, "unknown_field") || str_is(code, "not_allowed")
                            ? "is not in the schema"
                            : "has another type");
    }
    v->warning = ARENA_JOIN(c->arena, STR_LIT("sent although "), buf_view(&what),
                            c->answer->insists ? STR_LIT(", because you insisted; the tool may refuse it.")
                                               : STR_LIT("; the tool has accepted that before."));
    for (size_t i = 0; i < v->problems.count; i++)
        v->problems.list[i].warning = v->problems.list[i].quiet = true;
    v->problems.errors = 0;
    verdict_set(v, CLASS_OK, STR_LIT("schema_lax"), STR_NONE, STR_NONE);
    v->valid = v->has_budget = false;
    v->stage = NULL;
    c->args.now = c->lax->args;
    v->rewrites = arguments_rewrites(&c->args);
}

/* ---- what came of it --------------------------------------------------------------- */

/* The words of common validators. If other errors are taken for one, the session only keeps asking. */
bool call_lax_refused(const struct call *c)
{
    static const struct str words[] = {
        STR("invalid_params"), STR("-32602"),
        STR("invalid param"),  STR("invalid argument"),
        STR("invalid input"),  STR("invalid type"),
        STR("validation"),     STR("required"),
        STR("missing"),        STR("unexpected keyword"),
        STR("unknown param"),  STR("unrecognized"),
        STR("must be"),        STR("not of type"),
        STR("expected"),       STR("additional propert"),
        STR("extra inputs"),   STR("not permitted"),
    };
    const struct verdict *v = &c->verdict;
    if (v->class != CLASS_TOOL_ERROR && v->class != CLASS_INVALID_ARGUMENTS)
        return false;
    if (str_is(v->code, "invalid_params"))
        return true;
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (str_contains_nocase(v->quoted, words[i]))
            return true;
    for (size_t i = 0; c->lax && i < c->lax->problem_count; i++) {
        struct str path = c->lax->problems[i].path;
        size_t start = path.len; /* of its last name */
        while (start && path.at[start - 1] != '.' && path.at[start - 1] != ']')
            start--;
        struct str name = str_from(path, start);
        if (name.len && str_contains_nocase(v->quoted, name))
            return true;
    }
    return false;
}

void call_lax_settled(struct call *c)
{
    struct arguments args = c->args;
    bool is_refused = c->lax && c->lax->known && call_lax_refused(c);
    if (!c->settled->lax_learnt && !is_refused)
        return;
    if (!c->lax && args.now && !args.unreadable) { /* a report comes without its check's problems */
        struct call_lax *lax = ARENA_NEW(c->arena, struct call_lax);
        args.tool = c->tool;
        problems_init(&args.problems, c->arena);
        arguments_check_schema(&args);
        lax->problems = call_list_problems(c->arena, &args.problems, &lax->problem_count);
        c->lax = lax;
    }
    if (!c->lax || !c->lax->problem_count)
        return;
    const struct ledger_place *place = &c->place;
    struct ledger_lax_finding found = {
        .schema = schema_digest(c),
        .tool = c->tool->name,
        .problems = c->lax->problems,
        .count = c->lax->problem_count,
        .session = place->session.len ? ledger_session_id(place->session) : place->session_id,
        .user = c->request.peer ? c->request.peer->uid : 0,
        .accepted = !is_refused,
    };
    ledger_lax_found(c->gate->ledger, &found);
}
