/*
 * The feedback of a call that did not pass. Most classes are a headline, what the tool said and what to do
 * next, from the class table; the writers of the others are here.
 */
#include "gate/feedback_writer.h"

#include "base/arena.h"
#include "gate/feedback_budget.h"
#include "json/parse.h"
#include "json/write.h"

static const char *plural(size_t n)
{
    return n == 1 ? "" : "s";
}

/* ---- parts ---- */

static void put_quoted(const struct feedback_writer *w, struct str text, size_t max)
{
    struct str cut = str_cut(text, max);
    json_write_string(w->out, cut);
    if (cut.len < text.len)
        feedback_put(w, "… (%zu bytes more)", text.len - cut.len);
}

/* A JSON object or array is data by itself: it is shown whole and readable, since the error is somewhere in
 * it. */
static void put_message(const struct feedback_writer *w, const char *intro, size_t max)
{
    struct str text = w->v->quoted, trimmed = str_trim(text);
    struct json value;
    struct json_error error;
    if (!text.len)
        return;
    feedback_put(w, "%s", intro);
    if (trimmed.len && trimmed.len <= FEEDBACK_DATA_MAX_BYTES && strchr("{[", trimmed.at[0]) &&
        json_parse(w->arena, trimmed, NULL, &value, &error) == OK)
        json_write(w->out, &value);
    else
        put_quoted(w, text, max);
    feedback_put(w, "\n");
}

static void put_next(const struct feedback_writer *w, const char *by_default)
{
    struct str hint = w->v->hint.len ? w->v->hint : str_of(by_default);
    feedback_put(w, "Next: " STR_FMT "\n", STR_ARG(hint));
}

/* "NAME HEADLINE (code): detail", or "NAME HEADLINE" if the headline is a whole sentence. */
static void put_headline(const struct feedback_writer *w, const char *headline)
{
    feedback_put(w, STR_FMT " %s", STR_ARG(w->f->name), headline);
    if (headline[strlen(headline) - 1] != '.') {
        if (w->v->code.len)
            feedback_put(w, " (" STR_FMT ")", STR_ARG(w->v->code));
        feedback_put(w, w->v->detail.len ? ": " STR_FMT : "." STR_FMT, STR_ARG(w->v->detail));
    }
    feedback_put(w, "\n");
}

static void put_failure(const struct feedback_writer *w)
{
    const struct error_class_info *class = error_class_info(w->v->class);
    bool is_data = w->v->class == CLASS_SEMANTIC_GARBAGE;
    put_headline(w, class->headline);
    if (w->v->problems.errors)
        problems_text(w->out, &w->v->problems);
    put_message(w,
                is_data                  ? "The data: "
                : w->v->quoted_is_policy ? "The tool's policy says: "
                                         : "The tool said: ",
                is_data                          ? FEEDBACK_DATA_MAX_BYTES
                : w->v->class == CLASS_TRANSIENT ? FEEDBACK_TRANSIENT_MAX_BYTES
                                                 : FEEDBACK_QUOTE_MAX_BYTES);
    if (w->v->class == CLASS_TRANSIENT && w->v->tries > 1)
        feedback_put(w, "toolgate tried it %u times.\n", w->v->tries);
    if (class->next)
        put_next(w, class->next);
}

/* ---- invalid arguments ---- */

static void put_intent(const struct feedback_writer *w)
{
    const struct tool *tool = w->f->tool;
    if (tool->description.len)
        feedback_put(w, "Intent: " STR_FMT "\n",
                     STR_ARG(arena_first_line(w->arena, tool->description, FEEDBACK_DESCRIPTION_MAX_BYTES)));
    if (!tool_is_enforced(tool))
        return;
    if (tool->policy->use_when.len)
        feedback_put(
            w, "Use it when " STR_FMT "\n",
            STR_ARG(arena_first_line(w->arena, tool->policy->use_when, FEEDBACK_DESCRIPTION_MAX_BYTES)));
    if (tool->policy->avoid_when.len)
        feedback_put(
            w, "Avoid it when " STR_FMT "\n",
            STR_ARG(arena_first_line(w->arena, tool->policy->avoid_when, FEEDBACK_DESCRIPTION_MAX_BYTES)));
    for (size_t i = 0; i < tool->policy->rule_count; i++)
        feedback_put(w, "Rule: " STR_FMT "\n", STR_ARG(tool->policy->rule_words[i]));
}

static void put_type(const struct feedback_writer *w, const struct json *property)
{
    const struct json *type = json_get_text(property, "type"), *values = json_get_text(property, "enum");
    struct str format = json_str(json_get_text(property, "format"));
    if (!json_is(values, JSON_ARRAY))
        buf_str(w->out, json_is(type, JSON_STRING) ? json_str(type) : STR_LIT("any"));
    for (uint32_t i = 0; json_is(values, JSON_ARRAY) && i < values->len && i < PROBLEM_CHOICES_MAX; i++) {
        buf_text(w->out, i ? "|" : "");
        if (json_is(&values->items[i], JSON_STRING))
            buf_str(w->out, arena_truncate(w->arena, json_str(&values->items[i]), PROBLEM_GOT_MAX_BYTES));
        else
            json_write(w->out, &values->items[i]);
    }
    if (json_is(values, JSON_ARRAY) && values->len > PROBLEM_CHOICES_MAX)
        feedback_put(w, "|… (%u more)", values->len - PROBLEM_CHOICES_MAX);
    if (format.len)
        feedback_put(w, " " STR_FMT, STR_ARG(format));
}

static void put_parameters(const struct feedback_writer *w)
{
    const struct json *properties = json_get_text(w->f->tool->input, "properties");
    const struct json *required = json_get_text(w->f->tool->input, "required");
    if (!json_is(properties, JSON_OBJECT) || !properties->len) {
        feedback_put(w, "It takes no parameters.\n");
        return;
    }
    feedback_put(w, "Valid parameters:\n");
    for (uint32_t i = 0; i < properties->len && i < FEEDBACK_PARAMETERS_MAX; i++) {
        const struct json_member *p = &properties->members[i];
        struct str text = arena_first_line(w->arena, json_str(json_get_text(&p->value, "description")),
                                           FEEDBACK_DESCRIPTION_MAX_BYTES);
        feedback_put(w, "- " STR_FMT " (", STR_ARG(p->key));
        put_type(w, &p->value);
        feedback_put(w, "%s)%s" STR_FMT "\n", json_array_has(required, p->key) ? ", required" : "",
                     text.len ? ": " : "", STR_ARG(text));
    }
    if (properties->len > FEEDBACK_PARAMETERS_MAX)
        feedback_put(w, "- and %u more\n", properties->len - FEEDBACK_PARAMETERS_MAX);
}

static void put_exhausted(const struct feedback_writer *w)
{
    feedback_put(
        w,
        STR_FMT
        " was not run: its arguments were still wrong after %u attempts, and none are left this turn.\n",
        STR_ARG(w->f->name), w->v->attempt);
    problems_text(w->out, &w->v->problems);
    put_next(w, "Ask the user for what is missing, use another tool, or answer with what you have. The tool "
                "still works with correct arguments.");
}

void feedback_invalid_arguments(const struct feedback_writer *w)
{
    size_t count = w->v->problems.errors + w->v->problems.more;
    if (w->v->kind == VERDICT_REFUSE) {
        put_exhausted(w);
        return;
    }
    feedback_put(w, STR_FMT " was not run: ", STR_ARG(w->f->name));
    if (count)
        feedback_put(w, "%zu problem%s with its arguments.\n", count, plural(count));
    else
        feedback_put(w, STR_FMT "\n", STR_ARG(w->v->detail));
    problems_text(w->out, &w->v->problems);
    if (count && w->v->detail.len)
        feedback_put(w, STR_FMT "\n", STR_ARG(w->v->detail));
    if (w->v->suggest) {
        feedback_put(w, "Suggested: ");
        json_write(w->out, w->v->suggest);
        feedback_put(w, "\n");
    }
    put_intent(w);
    put_parameters(w);
    if (w->v->hint.len)
        feedback_put(w, "Next: " STR_FMT " ", STR_ARG(w->v->hint));
    else
        feedback_put(w, "Next: correct %s and call " STR_FMT " again, the rest unchanged. ",
                     count ? "the listed problems" : "the arguments", STR_ARG(w->f->name));
    if (w->v->has_budget)
        feedback_put(w, "%u attempt%s left this turn.\n", w->v->attempts_left, plural(w->v->attempts_left));
}

/* ---- the other classes ---- */

void feedback_unknown_tool(const struct feedback_writer *w)
{
    size_t count = w->f->suggestion_count;
    feedback_put(w, "There is no tool ");
    json_write_string(w->out, arena_truncate(w->arena, w->f->name, PROBLEM_GOT_MAX_BYTES));
    feedback_put(w, ".");
    for (size_t i = 0; i < count; i++)
        feedback_put(w, "%s'" STR_FMT "'",
                     i == 0           ? " Did you mean "
                     : i + 1 == count ? " or "
                                      : ", ",
                     STR_ARG(w->f->suggestions[i]));
    feedback_put(w, count ? "?\n" : "\n");
    put_next(w, "Call only tools from your list, by their exact names; if none fits, tell the user.");
}

void feedback_retry_budget(const struct feedback_writer *w)
{
    struct feedback_budget budget = feedback_budget_of(w->arena, w->v->code, w->v, w->f->tool);
    feedback_put(w, STR_FMT " was not run: %s.\n", STR_ARG(w->f->name), budget.what);
    put_next(w, budget.next);
}

void feedback_loop(const struct feedback_writer *w)
{
    bool is_cycle = str_is(w->v->code, "cycle");
    if (w->v->kind == VERDICT_HALT) {
        feedback_put(w, "Stop. " STR_FMT " was not run: %s again and again.\n", STR_ARG(w->f->name),
                     feedback_loop_text(w->v->code));
        put_next(w, "End this run now: call no more tools, and tell the user what you found and where you "
                    "are stuck.");
        return;
    }
    feedback_put(w, STR_FMT " was not run: ", STR_ARG(w->f->name));
    if (is_cycle)
        feedback_put(w, "%s, and the results have not changed.\n", feedback_loop_text(w->v->code));
    else
        feedback_put(w, "you have made this exact call %u time%s in a row and the result has not changed.\n",
                     w->v->repeats, plural(w->v->repeats));
    problems_text(w->out, &w->v->problems);
    put_next(
        w, "Use the result you already have. If it is not enough, change the arguments, use another tool, or "
           "answer the user.");
}

void feedback_transient(const struct feedback_writer *w)
{
    if (str_is(w->v->code, "too_soon")) {
        feedback_retry_budget(w);
        return;
    }
    put_failure(w);
    put_next(w, arena_printf(w->arena, "wait %lld s, then repeat the call.",
                             (long long)(w->v->after_s > 0 ? w->v->after_s : 1))
                    .at);
}

/* If the ledger is down, it is no use to try another tool. */
void feedback_unavailable(const struct feedback_writer *w)
{
    if (!str_is(w->v->code, "ledger_unavailable")) {
        put_failure(w);
        return;
    }
    feedback_put(w,
                 STR_FMT " was not run (ledger_unavailable): the gateway cannot count calls now, so it runs "
                         "none, of any tool.\n",
                 STR_ARG(w->f->name));
    put_next(w, "Call no tools for now. Answer with what you have, or tell the user that the tools are down "
                "and that the operator must check the gateway.");
}

void feedback_need_user_input(const struct feedback_writer *w)
{
    const struct json *choices = w->v->choices;
    feedback_put(w, STR_FMT " needs the user's input.\n", STR_ARG(w->f->name));
    if (w->v->detail.len || !w->v->quoted.len) {
        feedback_put(w, "Ask the user: " STR_FMT "\n", STR_ARG(w->v->detail));
    } else {
        feedback_put(w, "It asks the user: ");
        put_quoted(w, w->v->quoted, FEEDBACK_QUOTE_MAX_BYTES);
        feedback_put(w, "\n");
    }
    if (json_is(choices, JSON_ARRAY) && choices->len) {
        feedback_put(w, "Choices: ");
        json_write(w->out, choices);
        feedback_put(w, "\n");
    }
    put_next(w, "Ask exactly that and wait for the answer; do not answer it yourself.");
}

struct str feedback_text(struct arena *arena, const struct feedback *feedback)
{
    const struct error_class_info *class = error_class_info(feedback->verdict->class);
    struct buf out = buf_in(arena);
    struct feedback_writer w = {&out, arena, feedback, feedback->verdict};
    if (class->write)
        class->write(&w);
    else if (class->headline)
        put_failure(&w);
    feedback_put_new_name(&w);
    return feedback_end(&w);
}
