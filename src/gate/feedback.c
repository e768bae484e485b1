/*
 * The words a model reads. One writer a class, in one table; each says what
 * happened, everything that is wrong, and what to do next. What a tool said
 * is quoted as JSON, so that it can never pass for our own instructions.
 */
#include "gate/feedback_internal.h"

#include "base/arena.h"
#include "gate/feedback_budget.h"
#include "json/parse.h"
#include "json/write.h"

static void quote(const struct words *w, struct str text, size_t max)
{
    struct str cut = str_cut(text, max);
    json_write_string(w->out, cut);
    if (cut.len < text.len)
        feedback_put(w, "… (%zu bytes more)", text.len - cut.len);
}

/* A payload of JSON is quoted by being JSON, and stays readable; whole, since what is wrong with which field
 * is somewhere in it. */
static void quote_payload(const struct words *w, struct str text, size_t max)
{
    struct json value;
    struct json_error fault;
    struct str trimmed = str_trim(text);
    bool is_payload = trimmed.len <= FEEDBACK_DATA_MAX_BYTES && trimmed.len &&
                      (trimmed.at[0] == '{' || trimmed.at[0] == '[') &&
                      json_parse(w->arena, trimmed, NULL, &value, &fault) == OK;
    if (is_payload)
        feedback_put_json(w, &value);
    else
        quote(w, text, max);
}

/* ---- parts that several classes share ------------------------------------- */

static const char *plural(size_t n)
{
    return n == 1 ? "" : "s";
}

static struct str cut_description(const struct words *w, struct str text)
{
    return arena_first_line(w->arena, text, FEEDBACK_DESCRIPTION_MAX_BYTES);
}

static void say_intent(const struct words *w)
{
    const struct tool *tool = w->f->tool;
    if (tool->description.len)
        feedback_put(w, "Intent: " STR_FMT "\n", STR_ARG(cut_description(w, tool->description)));
    if (!tool_is_enforced(tool))
        return;
    if (tool->policy->use_when.len)
        feedback_put(w, "Use it when " STR_FMT "\n", STR_ARG(cut_description(w, tool->policy->use_when)));
    if (tool->policy->avoid_when.len)
        feedback_put(w, "Avoid it when " STR_FMT "\n", STR_ARG(cut_description(w, tool->policy->avoid_when)));
    for (size_t i = 0; i < tool->policy->rule_count; i++)
        feedback_put(w, "Rule: " STR_FMT "\n", STR_ARG(tool->policy->rule_words[i]));
}

static void say_enum(const struct words *w, const struct json *values)
{
    for (uint32_t i = 0; i < values->len && i < PROBLEM_CHOICES_MAX; i++) {
        if (i)
            feedback_put(w, "|");
        if (json_is(&values->items[i], JSON_STRING))
            buf_str(w->out, arena_truncate(w->arena, json_str(&values->items[i]), PROBLEM_GOT_MAX_BYTES));
        else
            feedback_put_json(w, &values->items[i]);
    }
    if (values->len > PROBLEM_CHOICES_MAX)
        feedback_put(w, "|… (%u more)", values->len - PROBLEM_CHOICES_MAX);
}

static void say_type(const struct words *w, const struct json *property)
{
    const struct json *type = json_get_text(property, "type"), *choices = json_get_text(property, "enum");
    struct str format = json_str(json_get_text(property, "format"));
    if (json_is(choices, JSON_ARRAY))
        say_enum(w, choices);
    else if (json_is(type, JSON_STRING))
        feedback_put(w, STR_FMT, STR_ARG(json_str(type)));
    else
        feedback_put(w, "any");
    if (format.len)
        feedback_put(w, " " STR_FMT, STR_ARG(format));
}

static void say_parameter(const struct words *w, const struct json_member *property)
{
    struct str text = cut_description(w, json_str(json_get_text(&property->value, "description")));
    feedback_put(w, "- " STR_FMT " (", STR_ARG(property->key));
    say_type(w, &property->value);
    feedback_put(
        w, json_array_has(json_get_text(w->f->tool->input, "required"), property->key) ? ", required)" : ")");
    if (text.len)
        feedback_put(w, ": " STR_FMT, STR_ARG(text));
    feedback_put(w, "\n");
}

static void say_parameters(const struct words *w)
{
    const struct json *properties = json_get_text(w->f->tool->input, "properties");
    if (!json_is(properties, JSON_OBJECT) || !properties->len) {
        feedback_put(w, "It takes no parameters.\n");
        return;
    }
    feedback_put(w, "Valid parameters:\n");
    for (uint32_t i = 0; i < properties->len && i < FEEDBACK_PARAMETERS_MAX; i++)
        say_parameter(w, &properties->members[i]);
    if (properties->len > FEEDBACK_PARAMETERS_MAX)
        feedback_put(w, "- and %u more\n", properties->len - FEEDBACK_PARAMETERS_MAX);
}

static void say_code(const struct words *w)
{
    if (w->v->code.len)
        feedback_put(w, " (" STR_FMT ")", STR_ARG(w->v->code));
}

/* The policy's own hint where it gave one, else ours. */
static void say_next(const struct words *w, const char *otherwise)
{
    struct str hint = w->v->hint.len ? w->v->hint : str_of(otherwise);
    feedback_put(w, "Next: " STR_FMT "\n", STR_ARG(hint));
}

static void say_quoted(const struct words *w, size_t max)
{
    if (!w->v->quoted.len)
        return;
    feedback_put(w, w->v->quoted_is_policy ? "The rules for its results say: " : "The tool said: ");
    quote_payload(w, w->v->quoted, max);
    feedback_put(w, "\n");
}

/* ---- one writer a class ---------------------------------------------------- */

static void exhausted(const struct words *w)
{
    feedback_put(
        w,
        STR_FMT
        " was not run: its arguments were still wrong after %u attempts, and that is all for this turn.\n",
        STR_ARG(w->f->name), w->v->attempt);
    problems_text(w->out, &w->v->problems);
    say_next(
        w, "Stop guessing. Ask the user for what is missing, use another tool, or answer with what you have. "
           "The tool still works once the arguments are right.");
}

static void say_attempts_left(const struct words *w)
{
    if (w->v->has_budget)
        feedback_put(w, "%u attempt%s left this turn.\n", w->v->attempts_left, plural(w->v->attempts_left));
}

static void invalid_arguments(const struct words *w)
{
    size_t n = w->v->problems.errors + w->v->problems.more;
    if (w->v->kind == VERDICT_REFUSE) {
        exhausted(w);
        return;
    }
    if (n)
        feedback_put(w, STR_FMT " was not run: %zu problem%s with its arguments.\n", STR_ARG(w->f->name), n,
                     plural(n));
    else
        feedback_put(w, STR_FMT " was not run: " STR_FMT "\n", STR_ARG(w->f->name), STR_ARG(w->v->detail));
    problems_text(w->out, &w->v->problems);
    if (n && w->v->detail.len)
        feedback_put(w, STR_FMT "\n", STR_ARG(w->v->detail));
    if (w->v->suggest) {
        feedback_put(w, "Suggested: ");
        feedback_put_json(w, w->v->suggest);
        feedback_put(w, "\n");
    }
    say_intent(w);
    say_parameters(w);
    if (w->v->hint.len)
        feedback_put(w, "Next: " STR_FMT " ", STR_ARG(w->v->hint));
    else
        feedback_put(w, "Next: correct %s and call " STR_FMT " again, the rest unchanged. ",
                     n ? "what is listed first" : "the arguments accordingly", STR_ARG(w->f->name));
    say_attempts_left(w);
}

static void unknown_tool(const struct words *w)
{
    struct str name = arena_truncate(w->arena, w->f->name, PROBLEM_GOT_MAX_BYTES);
    feedback_put(w, "There is no tool ");
    json_write_string(w->out, name);
    feedback_put(w, ".");
    for (size_t i = 0; i < w->f->suggestion_count; i++)
        feedback_put(w, "%s'" STR_FMT "'",
                     i == 0                            ? " Did you mean "
                     : i + 1 == w->f->suggestion_count ? " or "
                                                       : ", ",
                     STR_ARG(w->f->suggestions[i]));
    feedback_put(w, w->f->suggestion_count ? "?\n" : "\n");
    say_next(w, "Call only tools from the list you were given, by their exact names; if none fits, say so to "
                "the user.");
}

static void agent_runs_this(const struct words *w)
{
    feedback_put(w, STR_FMT " is run by the agent itself, not by toolgate.\n", STR_ARG(w->f->name));
    say_next(w, "The program around you should ask toolgate/check, run the tool, and tell toolgate/report. "
                "Do not call it here again.");
}

static void fabricated_id(const struct words *w)
{
    feedback_put(w, STR_FMT " was not run: an id in its arguments was made up.\n", STR_ARG(w->f->name));
    problems_text(w->out, &w->v->problems);
    say_next(w, "Do not guess ids. Look the id up with a search or list tool first, or ask the user for it.");
}

static void forbidden(const struct words *w)
{
    feedback_put(w, STR_FMT " was refused", STR_ARG(w->f->name));
    say_code(w);
    feedback_put(w, ": " STR_FMT "\n", STR_ARG(w->v->detail));
    say_next(w, "Do not repeat this call. Use another tool, or tell the user why it cannot be done.");
}

static void retry_budget(const struct words *w)
{
    struct budget budget = feedback_budget_of(w->arena, w->v->code, w->v, w->f->tool);
    feedback_put(w, STR_FMT " was not run: %s.\n", STR_ARG(w->f->name), budget.what);
    say_next(w, budget.next);
}

static void loop(const struct words *w)
{
    const char *what = feedback_loop_text(w->v->code);
    if (w->v->kind == VERDICT_HALT) {
        feedback_put(w, "Stop. " STR_FMT " was not run: %s, and you were told so before.\n",
                     STR_ARG(w->f->name), what);
        say_next(w, "End this run now: call no more tools, and tell the user what you found and where you "
                    "are stuck.");
        return;
    }
    feedback_put(w, STR_FMT " was not run: %s, and its result does not change (%u times so far).\n",
                 STR_ARG(w->f->name), what, w->v->repeats);
    problems_text(w->out, &w->v->problems);
    say_next(
        w, "Use the result you already have. If it is not enough, change the arguments, use another tool, or "
           "answer the user.");
}

static void tool_error(const struct words *w)
{
    feedback_put(w, STR_FMT " ran and failed", STR_ARG(w->f->name));
    say_code(w);
    feedback_put(w, w->v->detail.len ? ": " STR_FMT "\n" : "." STR_FMT "\n", STR_ARG(w->v->detail));
    say_quoted(w, FEEDBACK_QUOTE_MAX_BYTES);
    say_next(w, "If the message names an argument, change that and call again; the same call would fail the "
                "same way.");
}

static void too_soon(const struct words *w)
{
    struct budget budget = feedback_budget_of(w->arena, w->v->code, w->v, w->f->tool);
    feedback_put(w, STR_FMT " was not run: %s.\n", STR_ARG(w->f->name), budget.what);
    say_next(w, budget.next);
}

static void transient(const struct words *w)
{
    if (str_is(w->v->code, "too_soon")) {
        too_soon(w);
        return;
    }
    feedback_put(w, STR_FMT " gave no result just now", STR_ARG(w->f->name));
    say_code(w);
    feedback_put(w, w->v->detail.len ? ": " STR_FMT "\n" : "." STR_FMT "\n", STR_ARG(w->v->detail));
    say_quoted(w, FEEDBACK_PASSING_MAX_BYTES);
    if (w->v->tries > 1)
        feedback_put(w, "toolgate tried it %u times.\n", w->v->tries);
    say_next(w, arena_printf(w->arena, "wait %lld s, then the same call is fine.",
                             (long long)(w->v->after_s > 0 ? w->v->after_s : 1))
                    .at);
}

static void schema_mismatch(const struct words *w)
{
    feedback_put(w, STR_FMT " ran, but what it returned is broken", STR_ARG(w->f->name));
    say_code(w);
    feedback_put(w, w->v->detail.len ? ": " STR_FMT "\n" : "." STR_FMT "\n", STR_ARG(w->v->detail));
    problems_text(w->out, &w->v->problems);
    say_quoted(w, FEEDBACK_QUOTE_MAX_BYTES);
    say_next(w, "The tool is broken, not your call: do not retry it. Use another tool, or tell the user.");
}

static void semantic_garbage(const struct words *w)
{
    feedback_put(w, STR_FMT " ran, but its result cannot be used as it is", STR_ARG(w->f->name));
    say_code(w);
    feedback_put(w, ": " STR_FMT "\n", STR_ARG(w->v->detail));
    say_next(w, "Change the arguments, or use another tool.");
    if (w->v->quoted.len) {
        feedback_put(w, "The data, for what it is worth: ");
        quote_payload(w, w->v->quoted, FEEDBACK_DATA_MAX_BYTES);
        feedback_put(w, "\n");
    }
}

/* A tool's own question is data like all that it says. */
static void say_question(const struct words *w)
{
    feedback_put(w, "It asks the user: ");
    quote(w, w->v->quoted, FEEDBACK_QUOTE_MAX_BYTES);
    feedback_put(w, "\n");
}

static void need_user_input(const struct words *w)
{
    feedback_put(w, STR_FMT " needs the user's word first.\n", STR_ARG(w->f->name));
    if (w->v->detail.len || !w->v->quoted.len)
        feedback_put(w, "Ask the user: " STR_FMT "\n", STR_ARG(w->v->detail));
    else
        say_question(w);
    if (json_is(w->v->choices, JSON_ARRAY) && w->v->choices->len) {
        feedback_put(w, "Choices: ");
        feedback_put_json(w, w->v->choices);
        feedback_put(w, "\n");
    }
    say_next(w, "Ask exactly that and wait for the answer; do not answer it yourself.");
}

/* File and line are the operator's, in the log and the verdict: a model has no use for them. */
static void policy_error(const struct words *w)
{
    feedback_put(w,
                 STR_FMT " was not run: the gateway's own rules for this tool are broken, not your call.\n",
                 STR_ARG(w->f->name));
    feedback_put(
        w,
        "Next: do not repeat it. Use another tool, or tell the user that this one cannot be used until its "
        "operator has mended it.\n");
}

/* Not the tool is out of order but what counts all calls. */
static void uncounted(const struct words *w)
{
    feedback_put(w,
                 STR_FMT " was not run (ledger_unavailable): calls cannot be counted just now, of this tool "
                         "and of all others, so none is let through.\n",
                 STR_ARG(w->f->name));
    say_next(w,
             "Call no tools for now. Answer with what you have, or tell the user that the tools are out of "
             "order and that their operator has to look at the gateway.");
}

static void plainly(const struct words *w)
{
    static const char *const texts[CLASS_COUNT] = {
        [CLASS_UNAVAILABLE] = "is out of order just now",
        [CLASS_CANCELLED] = "was cancelled",
    };
    if (str_is(w->v->code, "ledger_unavailable")) {
        uncounted(w);
        return;
    }
    feedback_put(w, STR_FMT " %s", STR_ARG(w->f->name), texts[w->v->class]);
    say_code(w);
    feedback_put(w, w->v->detail.len ? ": " STR_FMT "\n" : "." STR_FMT "\n", STR_ARG(w->v->detail));
    say_quoted(w, FEEDBACK_QUOTE_MAX_BYTES);
    say_next(w, "Do not repeat the call now. Use another tool, or tell the user.");
}

static void (*const writers[CLASS_COUNT])(const struct words *) = {
    [CLASS_SEMANTIC_GARBAGE] = semantic_garbage,
    [CLASS_SCHEMA_MISMATCH] = schema_mismatch,
    [CLASS_TRANSIENT] = transient,
    [CLASS_TOOL_ERROR] = tool_error,
    [CLASS_INVALID_ARGUMENTS] = invalid_arguments,
    [CLASS_FABRICATED_ID] = fabricated_id,
    [CLASS_UNKNOWN_TOOL] = unknown_tool,
    [CLASS_FORBIDDEN] = forbidden,
    [CLASS_AGENT_RUNS_THIS] = agent_runs_this,
    [CLASS_RETRY_BUDGET] = retry_budget,
    [CLASS_LOOP] = loop,
    [CLASS_POLICY_ERROR] = policy_error,
    [CLASS_UNAVAILABLE] = plainly,
    [CLASS_NEED_USER_INPUT] = need_user_input,
    [CLASS_CANCELLED] = plainly,
};

struct str feedback_text(struct arena *arena, const struct feedback *feedback)
{
    struct buf out = buf_in(arena);
    struct words w = {&out, arena, feedback, feedback->verdict};
    if (writers[w.v->class])
        writers[w.v->class](&w);
    feedback_put_new_name(&w);
    return feedback_end(&out);
}
