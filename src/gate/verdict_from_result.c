/* Stage 7: what a result or an error comes to, by what it says, by its schema, by the policy's word. */
#include "gate/verdict_from.h"

#include "base/arena.h"
#include "gate/decision_log.h"
#include "base/stack_trace.h"
#include "json/build.h"

/* ---- what it says of itself ------------------------------------------------- */

bool judge_reads_envelopes(const struct tool *tool)
{
    return tool->mode != POLICY_OFF && !(tool->policy && !tool->policy->envelopes);
}

static struct str words_of(const char *code)
{
    static const struct {
        const char *code, *words;
    } table[] = {
        {"success_false", "it says that it did not succeed"},
        {"status_error", "its status is an error"},
        {"error_field", "it holds an error, and no data"},
        {"errors_field", "it holds errors, and no data"},
        {"http_status", "it holds an HTTP status of an error"},
        {"error_text", "its text is an error message"},
        {"rate_limited", "it is asked too often"},
        {"timed_out", "it took too long"},
        {"overloaded", "the service behind it is overloaded"},
        {"connection_lost", "the connection behind it was lost"},
        {"busy", "what it needs is in use"},
        {"later", "it asks to be called later"},
    };
    for (size_t i = 0; code && i < sizeof(table) / sizeof(*table); i++)
        if (strcmp(table[i].code, code) == 0)
            return str_of(table[i].words);
    return STR_NONE;
}

/* The tool asks; its words are data. Where it has none, ours say what it is about. */
static void ask_by_envelope(struct verdict *v, struct arena *arena, const struct envelope *e)
{
    bool several = strcmp(e->code, "ambiguous") == 0;
    verdict_set(v, CLASS_NEED_USER_INPUT, str_of(e->code), STR_NONE, STR_NONE);
    if (!e->question.len)
        v->detail = several ? STR_LIT("Several things fit. Which one is meant?") : STR_LIT("How to go on?");
    v->quoted = e->question;
    v->choices = e->choices;
    if (e->choices_left_out)
        v->hint = arena_printf(arena,
                               "Ask exactly that and wait for the answer; %zu more choices are left out: "
                               "say so, too.",
                               e->choices_left_out);
}

/* Of what may have been done nobody should say that doing it again is fine. What was turned away was not. */
static struct str hint_for(const struct tool *tool, const char *code)
{
    bool unsure = strcmp(code, "timed_out") == 0 || strcmp(code, "connection_lost") == 0;
    return unsure && !tool->idempotent
               ? STR_LIT("First look whether it has been carried out; only if not, make the same call again.")
               : STR_NONE;
}

void verdict_from_envelope(struct verdict *v, const struct tool *tool, struct arena *arena,
                           const struct envelope *e, struct str said)
{
    if (e->kind == ENVELOPE_NEEDS_INPUT) {
        ask_by_envelope(v, arena, e);
        return;
    }
    bool passes = e->kind == ENVELOPE_TRANSIENT;
    verdict_set(v, passes ? CLASS_TRANSIENT : CLASS_TOOL_ERROR, str_of(e->code), words_of(e->code),
                passes ? hint_for(tool, e->code) : STR_NONE);
    v->quoted = stack_trace_strip(arena, said);
    v->after_s = passes ? e->after_s : -1;
}

void verdict_from_error_result(struct verdict *v, const struct tool *tool, struct arena *arena,
                               const struct result *result)
{
    struct envelope e = {.kind = ENVELOPE_FAILED, .after_s = -1};
    if (judge_reads_envelopes(tool) && tool->mode == POLICY_ENFORCE)
        e = envelope_of_error(arena, result);
    verdict_from_envelope(v, tool, arena, &e, result_text(arena, result));
}

void verdict_from_error_message(struct verdict *v, const struct tool *tool, struct arena *arena,
                                struct str message)
{
    struct envelope e = {.kind = ENVELOPE_FAILED, .after_s = -1};
    if (judge_reads_envelopes(tool) && tool->mode == POLICY_ENFORCE)
        e = envelope_of_message(message);
    verdict_from_envelope(v, tool, arena, &e, message);
}

/* ---- its policy and its schema ---------------------------------------------- */

/* A policy names what changes ({page = 2}); the model is given the whole call. */
static const struct json *whole_next_args(struct arena *arena, const struct json *args,
                                          const struct json *changes)
{
    struct json *next = arena_alloc(arena, sizeof(*next));
    *next = *args;
    for (uint32_t i = 0; i < changes->len; i++)
        *next = json_with(arena, next, changes->members[i].key, changes->members[i].value);
    return next;
}

/* No arguments are an object all the same: an empty table of Lua may as well be a list. */
static const struct json *whole_follow_up(struct arena *arena, const struct json *follow)
{
    const struct json *args = json_get_text(follow, "args");
    if (!json_is(follow, JSON_OBJECT) || (json_is(args, JSON_OBJECT)) || (args && args->len))
        return follow;
    struct json *whole = ARENA_NEW(arena, struct json);
    *whole = json_with(arena, follow, STR_LIT("args"), json_object(arena, NULL, 0));
    return whole;
}

void verdict_from_result_hook(struct verdict *v, const struct tool *tool, struct arena *arena,
                              const struct json *args, const struct result *result,
                              const struct policy_outcome *said)
{
    v->coverage = said->coverage;
    v->facts = said->facts;
    v->follow_up = whole_follow_up(arena, said->follow_up);
    if (said->cost >= 0)
        v->cost = said->cost;
    if (json_is(said->next_args, JSON_OBJECT) && json_is(args, JSON_OBJECT))
        v->next_args = whole_next_args(arena, args, said->next_args);
    switch (said->kind) {
    case OUTCOME_PARTIAL:
        verdict_set(v, CLASS_PARTIAL_DATA, said->code, said->detail, said->hint);
        break;
    case OUTCOME_GARBAGE:
        verdict_set(v, CLASS_SEMANTIC_GARBAGE, said->code, said->detail, said->hint);
        v->quoted = result_text(arena, result);
        break;
    case OUTCOME_BROKEN:
        verdict_set(v, CLASS_SCHEMA_MISMATCH, said->code, said->detail, said->hint);
        break;
    case OUTCOME_TRANSIENT:
    case OUTCOME_FAILED:
        verdict_from_failure(v, said->kind == OUTCOME_FAILED ? CLASS_TOOL_ERROR : CLASS_TRANSIENT, said);
        v->quoted_is_policy = true;
        break;
    case OUTCOME_ASK:
        verdict_from_question(v, said);
        break;
    case OUTCOME_POLICY_ERROR:
        decision_log_policy_error(tool->name, said->why.text);
        v->warning = STR_LIT("The gateway's check of this result failed; judge the result yourself.");
        break;
    default:
        break;
    }
}

void verdict_from_output_schema(struct verdict *v, const struct tool *tool, struct arena *arena,
                                const struct result *result)
{
    bool judged = !(tool->policy && !tool->policy->validate); /* else the schema is documentation only */
    if (!judged || !tool->output_schema ||
        schema_validate(tool->output_schema, result->value) == SCHEMA_VALID)
        return;
    problems_init(&v->problems, arena);
    schema_explain(tool->output_schema, result->value, &v->problems);
    for (size_t i = 0; i < v->problems.count; i++)
        v->problems.list[i].in_result = true;
    const char *unreadable = result_parse_error(result);
    verdict_set(v, CLASS_SCHEMA_MISMATCH, str_of(unreadable ? unreadable : "schema_violation"), STR_NONE,
                STR_NONE);
}

/* ---- coverage ----------------------------------------------------------------- */

/* Of what a passing result says about the user's question nobody knows but the policy. */
void verdict_set_coverage(struct verdict *v)
{
    const char *coverage = error_class_info(v->class)->coverage;
    if (!v->coverage.len && coverage)
        v->coverage = str_of(coverage);
}
