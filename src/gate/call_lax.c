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

#define NAMED_MAX              3u     /* problems in the note */
#define FAILURE_SEARCHED_BYTES 65536u /* of the words of a failure, for names of arguments */

/* Of a path: where its last name begins, "items[0].price" or "labels[\"a b\"]". */
static size_t last_name_at(struct str path)
{
    size_t at = path.len;
    while (at && path.at[at - 1] != '.' && path.at[at - 1] != '[')
        at--;
    return at;
}

/* An enum beside a member of the same object that the schema does not know, {"type": "callout", "callout":
 * {…}}, tells the branches of a union apart, of which the schema lists only some. */
static bool is_discriminator(const struct problems *problems, const struct problem *choice)
{
    struct str object = {choice->path.at, last_name_at(choice->path)};
    for (size_t i = 0; i < problems->count; i++) {
        const struct problem *beside = &problems->list[i];
        if (str_is(str_of(beside->code), "unknown_field") && !beside->suggestion.len &&
            str_eq((struct str){beside->path.at, last_name_at(beside->path)}, object))
            return true;
    }
    return false;
}

/* A parameter that a policy is about holds as the policy reads it: of another type, it would pass unseen. */
static bool is_of_policy(const struct tool *tool, struct str path)
{
    if (tool->policy && tool->mode != POLICY_OFF && policy_names_argument(tool->policy, path))
        return true;
    for (size_t i = 0; i < tool->overlay_count; i++)
        if (tool->overlays[i].mode != POLICY_OFF && policy_names_argument(tool->overlays[i].policy, path))
            return true;
    return false;
}

/* What servers are often more lenient about than their schema. A bound, a pattern, a format or a choice of
 * values is there because the server means it. */
static bool may_be_insisted_on(const struct call *c, const struct problem *problem)
{
    static const char *const codes[] = {"missing",     "unknown_field", "type", "list",
                                        "not_allowed", "oneOf",         "anyOf"};
    struct str code = str_of(problem->code);
    bool is_choice = str_is(code, "enum") || str_is(code, "const");
    return !is_of_policy(c->tool, problem->path) &&
           (STR_IS_ONE_OF(code, codes) || (is_choice && is_discriminator(&c->verdict.problems, problem)));
}

static bool is_candidate(const struct call *c)
{
    const struct problems *problems = &c->verdict.problems;
    if (c->verdict.class != CLASS_INVALID_ARGUMENTS || c->tool->mode != POLICY_ENFORCE ||
        c->args.unreadable || c->args.perhaps_cut || problems->more || !problems->errors)
        return false;
    if (json_is(c->args.raw, JSON_OBJECT) && !c->args.raw->len)
        return false; /* what arrives empty may have been cut off */
    for (size_t i = 0; i < problems->count; i++)
        if (!problems->list[i].warning && !may_be_insisted_on(c, &problems->list[i]))
            return false;
    return true;
}

/* The policies' rules hold all the same: they are asked as if the schema accepted the arguments. */
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
                        : str_is(code, "enum") || str_is(code, "const") ? "is not among the listed values"
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

/* The problems of a report's arguments, which come without their check's. */
static void find_problems(struct call *c)
{
    struct arguments args = c->args;
    struct call_lax *lax = ARENA_NEW(c->arena, struct call_lax);
    if (!args.now || args.unreadable)
        return;
    args.tool = c->tool;
    problems_init(&args.problems, c->arena);
    arguments_check_schema(&args);
    lax->problems = call_list_problems(c->arena, &args.problems, &lax->problem_count);
    c->lax = lax->problem_count ? lax : NULL;
}

/* "price" of "items[0].price", "a b" of "labels[\"a b\"]", "items" of "items[3]"; empty: none. */
static struct str last_name(struct str path)
{
    size_t at = last_name_at(path);
    struct str name = str_from(path, at);
    if (!at || path.at[at - 1] != '[')
        return name;
    if (name.len > 3 && name.at[0] == '"')
        return (struct str){name.at + 1, name.len - 3};
    return last_name((struct str){path.at, at - 1});
}

uint64_t call_lax_refused(struct call *c)
{
    const struct verdict *v = &c->verdict;
    uint64_t refused = 0;
    if (c->tool->schema_mode != SCHEMA_LEARN ||
        (v->class != CLASS_TOOL_ERROR && v->class != CLASS_INVALID_ARGUMENTS))
        return 0;
    if (!c->lax && !c->admitted)
        find_problems(c);
    size_t count = c->lax && c->lax->problem_count < 64 ? c->lax->problem_count : 0;
    struct str said = str_cut(call_failure_text(c), FAILURE_SEARCHED_BYTES);
    for (size_t i = 0; i < count; i++)
        refused |= (uint64_t)str_contains_word(said, last_name(c->lax->problems[i].path)) << i;
    /* By its own code the server refuses the arguments, and does not say which. */
    return refused || !str_is(v->code, "invalid_params") ? refused : ((uint64_t)1 << count) - 1;
}

void call_lax_settled(struct call *c)
{
    if (!c->lax)
        find_problems(c);
    if (!c->lax)
        return;
    struct ledger_lax found = {.schema = schema_digest(c),
                               .tool = c->tool->name,
                               .session = ledger_place_id(&c->place),
                               .user = c->request.peer ? c->request.peer->uid : 0,
                               .alone = !c->gate->many_users};
    ledger_lax_found(c->gate->ledger, &found, c->lax->problems, c->lax->problem_count);
}
