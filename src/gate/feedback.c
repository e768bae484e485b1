/*
 * The words a model reads. One writer a class, in one table; each says what
 * happened, everything that is wrong, and what to do next. What a tool said
 * is quoted as JSON, so that it can never pass for our own instructions.
 */
#include "gate/feedback.h"

#include "base/arena.h"
#include "gate/budget.h"
#include "json/parse.h"
#include "json/write.h"

struct words {
    struct buf *out;
    struct arena *arena;
    const struct feedback *f;
    const struct verdict *v;
};

static void say(const struct words *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(const struct words *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    buf_str(w->out, arena_vprintf(w->arena, format, args));
    va_end(args);
}

static void say_json(const struct words *w, const struct json *value)
{
    json_write(w->out, value);
}

static void quote(const struct words *w, struct str text, size_t max)
{
    struct str cut = str_cut(text, max);
    json_write_string(w->out, cut);
    if (cut.len < text.len)
        say(w, "… (%zu bytes more)", text.len - cut.len);
}

/* A payload of JSON is quoted by being JSON, and stays readable; whole, since what is wrong with which field
 * is somewhere in it. */
static void quote_payload(const struct words *w, struct str text, size_t max)
{
    struct json value;
    struct json_fault fault;
    struct str trimmed = str_trim(text);
    bool is_payload = trimmed.len <= FEEDBACK_DATA_MAX_BYTES && trimmed.len &&
                      (trimmed.at[0] == '{' || trimmed.at[0] == '[') &&
                      json_parse(w->arena, trimmed, NULL, &value, &fault) == OK;
    if (is_payload)
        say_json(w, &value);
    else
        quote(w, text, max);
}

/* ---- parts that several classes share ------------------------------------- */

static const char *plural(size_t n)
{
    return n == 1 ? "" : "s";
}

/* Its first line. */
static struct str cut_description(const struct words *w, struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.at[i] == '\n')
            text.len = i;
    text = str_trim(text);
    struct str cut = str_cut(text, FEEDBACK_DESCRIPTION_MAX_BYTES);
    return cut.len == text.len ? text : ARENA_JOIN(w->arena, cut, STR_LIT("…"));
}

static void say_intent(const struct words *w)
{
    const struct tool *tool = w->f->tool;
    if (tool->description.len)
        say(w, "Intent: " STR_FMT "\n", STR_ARG(cut_description(w, tool->description)));
    if (!tool_is_enforced(tool))
        return;
    if (tool->policy->use_when.len)
        say(w, "Use it when " STR_FMT "\n", STR_ARG(cut_description(w, tool->policy->use_when)));
    if (tool->policy->avoid_when.len)
        say(w, "Avoid it when " STR_FMT "\n", STR_ARG(cut_description(w, tool->policy->avoid_when)));
    for (size_t i = 0; i < tool->policy->rule_count; i++)
        say(w, "Rule: " STR_FMT "\n", STR_ARG(tool->policy->rule_words[i]));
}

static void say_enum(const struct words *w, const struct json *values)
{
    for (uint32_t i = 0; i < values->len && i < PROBLEM_CHOICES_MAX; i++) {
        if (i)
            say(w, "|");
        if (json_is(&values->items[i], JSON_STRING))
            buf_str(w->out, str_cut(json_str(&values->items[i]), PROBLEM_GOT_MAX_BYTES));
        else
            say_json(w, &values->items[i]);
    }
    if (values->len > PROBLEM_CHOICES_MAX)
        say(w, "|… (%u more)", values->len - PROBLEM_CHOICES_MAX);
}

static void say_type(const struct words *w, const struct json *property)
{
    const struct json *type = json_get_text(property, "type"), *choices = json_get_text(property, "enum");
    struct str format = json_str(json_get_text(property, "format"));
    if (json_is(choices, JSON_ARRAY))
        say_enum(w, choices);
    else if (json_is(type, JSON_STRING))
        say(w, STR_FMT, STR_ARG(json_str(type)));
    else
        say(w, "any");
    if (format.len)
        say(w, " " STR_FMT, STR_ARG(format));
}

static void say_parameter(const struct words *w, const struct json_member *property)
{
    struct str text = cut_description(w, json_str(json_get_text(&property->value, "description")));
    say(w, "- " STR_FMT " (", STR_ARG(property->key));
    say_type(w, &property->value);
    say(w, json_lists(json_get_text(w->f->tool->input, "required"), property->key) ? ", required)" : ")");
    if (text.len)
        say(w, ": " STR_FMT, STR_ARG(text));
    say(w, "\n");
}

static void say_parameters(const struct words *w)
{
    const struct json *properties = json_get_text(w->f->tool->input, "properties");
    if (!json_is(properties, JSON_OBJECT) || !properties->len) {
        say(w, "It takes no parameters.\n");
        return;
    }
    say(w, "Valid parameters:\n");
    for (uint32_t i = 0; i < properties->len && i < FEEDBACK_PARAMETERS_MAX; i++)
        say_parameter(w, &properties->members[i]);
    if (properties->len > FEEDBACK_PARAMETERS_MAX)
        say(w, "- and %u more\n", properties->len - FEEDBACK_PARAMETERS_MAX);
}

static void say_code(const struct words *w)
{
    if (w->v->code.len)
        say(w, " (" STR_FMT ")", STR_ARG(w->v->code));
}

/* The policy's own hint where it gave one, else ours. */
static void say_next(const struct words *w, const char *otherwise)
{
    struct str hint = w->v->hint.len ? w->v->hint : str_of(otherwise);
    say(w, "Next: " STR_FMT "\n", STR_ARG(hint));
}

static void say_quoted(const struct words *w, size_t max)
{
    if (!w->v->quoted.len)
        return;
    say(w, "The tool said: ");
    quote_payload(w, w->v->quoted, max);
    say(w, "\n");
}

/* ---- one writer a class ---------------------------------------------------- */

static void exhausted(const struct words *w)
{
    say(w,
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
        say(w, "%u attempt%s left this turn.\n", w->v->attempts_left, plural(w->v->attempts_left));
}

static void invalid_arguments(const struct words *w)
{
    size_t n = w->v->problems.errors + w->v->problems.more;
    if (w->v->kind == VERDICT_REFUSE) {
        exhausted(w);
        return;
    }
    if (n)
        say(w, STR_FMT " was not run: %zu problem%s with its arguments.\n", STR_ARG(w->f->name), n,
            plural(n));
    else
        say(w, STR_FMT " was not run: " STR_FMT "\n", STR_ARG(w->f->name), STR_ARG(w->v->detail));
    problems_text(w->out, &w->v->problems);
    if (n && w->v->detail.len)
        say(w, STR_FMT "\n", STR_ARG(w->v->detail));
    if (w->v->suggest) {
        say(w, "Suggested: ");
        say_json(w, w->v->suggest);
        say(w, "\n");
    }
    say_intent(w);
    say_parameters(w);
    if (w->v->hint.len)
        say(w, "Next: " STR_FMT " ", STR_ARG(w->v->hint));
    else
        say(w, "Next: correct %s and call " STR_FMT " again, the rest unchanged. ",
            n ? "what is listed first" : "the arguments accordingly", STR_ARG(w->f->name));
    say_attempts_left(w);
}

static void unknown_tool(const struct words *w)
{
    struct str name = str_cut(w->f->name, PROBLEM_GOT_MAX_BYTES);
    say(w, "There is no tool ");
    json_write_string(w->out, name);
    say(w, ".");
    for (size_t i = 0; i < w->f->suggestion_count; i++)
        say(w, "%s'" STR_FMT "'",
            i == 0                            ? " Did you mean "
            : i + 1 == w->f->suggestion_count ? " or "
                                              : ", ",
            STR_ARG(w->f->suggestions[i]));
    say(w, w->f->suggestion_count ? "?\n" : "\n");
    say_next(w, "Call only tools from the list you were given, by their exact names; if none fits, say so to "
                "the user.");
}

static void agent_runs_this(const struct words *w)
{
    say(w, STR_FMT " is run by the agent itself, not by toolgate.\n", STR_ARG(w->f->name));
    say_next(w, "The program around you should ask toolgate/check, run the tool, and tell toolgate/report. "
                "Do not call it here again.");
}

static void fabricated_id(const struct words *w)
{
    say(w, STR_FMT " was not run: an id in its arguments was made up.\n", STR_ARG(w->f->name));
    problems_text(w->out, &w->v->problems);
    say_next(w, "Do not guess ids. Look the id up with a search or list tool first, or ask the user for it.");
}

static void forbidden(const struct words *w)
{
    say(w, STR_FMT " was refused", STR_ARG(w->f->name));
    say_code(w);
    say(w, ": " STR_FMT "\n", STR_ARG(w->v->detail));
    say_next(w, "Do not repeat this call. Use another tool, or tell the user why it cannot be done.");
}

static void retry_budget(const struct words *w)
{
    struct budget budget = budget_of(w->arena, w->v->code, w->v, w->f->tool);
    say(w, STR_FMT " was not run: %s.\n", STR_ARG(w->f->name), budget.what);
    say_next(w, budget.next);
}

static const char *loop_words(struct str code)
{
    return str_is(code, "cycle") ? "the same few calls are being made over and over"
                                 : "this exact call is being made over and over";
}

static void loop(const struct words *w)
{
    const char *what = loop_words(w->v->code);
    if (w->v->kind == VERDICT_HALT) {
        say(w, "Stop. " STR_FMT " was not run: %s, and you were told so before.\n", STR_ARG(w->f->name),
            what);
        say_next(w, "End this run now: call no more tools, and tell the user what you found and where you "
                    "are stuck.");
        return;
    }
    say(w, STR_FMT " was not run: %s, and its result does not change (%u times so far).\n",
        STR_ARG(w->f->name), what, w->v->repeats);
    problems_text(w->out, &w->v->problems);
    say_next(
        w, "Use the result you already have. If it is not enough, change the arguments, use another tool, or "
           "answer the user.");
}

static void tool_error(const struct words *w)
{
    say(w, STR_FMT " ran and failed", STR_ARG(w->f->name));
    say_code(w);
    say(w, w->v->detail.len ? ": " STR_FMT "\n" : "." STR_FMT "\n", STR_ARG(w->v->detail));
    say_quoted(w, FEEDBACK_QUOTE_MAX_BYTES);
    say_next(w, "If the message names an argument, change that and call again; the same call would fail the "
                "same way.");
}

static void too_soon(const struct words *w)
{
    struct budget budget = budget_of(w->arena, w->v->code, w->v, w->f->tool);
    say(w, STR_FMT " was not run: %s.\n", STR_ARG(w->f->name), budget.what);
    say_next(w, budget.next);
}

static void transient(const struct words *w)
{
    if (str_is(w->v->code, "too_soon")) {
        too_soon(w);
        return;
    }
    say(w, STR_FMT " gave no result just now", STR_ARG(w->f->name));
    say_code(w);
    say(w, w->v->detail.len ? ": " STR_FMT "\n" : "." STR_FMT "\n", STR_ARG(w->v->detail));
    say_quoted(w, FEEDBACK_PASSING_MAX_BYTES);
    if (w->v->tries > 1)
        say(w, "toolgate tried it %u times.\n", w->v->tries);
    say_next(w, arena_printf(w->arena, "wait %lld s, then the same call is fine.",
                             (long long)(w->v->after_s > 0 ? w->v->after_s : 1))
                    .at);
}

static void schema_mismatch(const struct words *w)
{
    say(w, STR_FMT " ran, but what it returned is broken", STR_ARG(w->f->name));
    say_code(w);
    say(w, w->v->detail.len ? ": " STR_FMT "\n" : "." STR_FMT "\n", STR_ARG(w->v->detail));
    problems_text(w->out, &w->v->problems);
    say_quoted(w, FEEDBACK_QUOTE_MAX_BYTES);
    say_next(w, "The tool is broken, not your call: do not retry it. Use another tool, or tell the user.");
}

static void semantic_garbage(const struct words *w)
{
    say(w, STR_FMT " ran, but its result cannot be used as it is", STR_ARG(w->f->name));
    say_code(w);
    say(w, ": " STR_FMT "\n", STR_ARG(w->v->detail));
    say_next(w, "Change the arguments, or use another tool.");
    if (w->v->quoted.len) {
        say(w, "The data, for what it is worth: ");
        quote_payload(w, w->v->quoted, FEEDBACK_DATA_MAX_BYTES);
        say(w, "\n");
    }
}

/* A tool's own question is data like all that it says. */
static void say_question(const struct words *w)
{
    say(w, "It asks the user: ");
    quote(w, w->v->quoted, FEEDBACK_QUOTE_MAX_BYTES);
    say(w, "\n");
}

static void need_user_input(const struct words *w)
{
    say(w, STR_FMT " needs the user's word first.\n", STR_ARG(w->f->name));
    if (w->v->detail.len || !w->v->quoted.len)
        say(w, "Ask the user: " STR_FMT "\n", STR_ARG(w->v->detail));
    else
        say_question(w);
    if (json_is(w->v->choices, JSON_ARRAY) && w->v->choices->len) {
        say(w, "Choices: ");
        say_json(w, w->v->choices);
        say(w, "\n");
    }
    say_next(w, "Ask exactly that and wait for the answer; do not answer it yourself.");
}

/* File and line are the operator's, in the log and the verdict: a model has no use for them. */
static void policy_error(const struct words *w)
{
    say(w, STR_FMT " was not run: the gateway's own rules for this tool are broken, not your call.\n",
        STR_ARG(w->f->name));
    say(w,
        "Next: do not repeat it. Use another tool, or tell the user that this one cannot be used until its "
        "operator has mended it.\n");
}

static void plainly(const struct words *w)
{
    static const char *const texts[CLASS_COUNT] = {
        [CLASS_UNAVAILABLE] = "is out of order just now",
        [CLASS_CANCELLED] = "was cancelled",
    };
    say(w, STR_FMT " %s", STR_ARG(w->f->name), texts[w->v->class]);
    say_code(w);
    say(w, w->v->detail.len ? ": " STR_FMT "\n" : "." STR_FMT "\n", STR_ARG(w->v->detail));
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

static void say_new_name(const struct words *w)
{
    if (!w->f->called.len)
        return;
    if (w->out->len && w->out->at[w->out->len - 1] != '\n')
        say(w, "\n");
    say(w, "Note: '" STR_FMT "' is called '" STR_FMT "' now: use that name.\n", STR_ARG(w->f->called),
        STR_ARG(w->f->name));
}

static struct str without_last_newline(const struct buf *out)
{
    struct str text = buf_view(out);
    while (text.len && text.at[text.len - 1] == '\n')
        text.len--;
    return text;
}

struct str feedback_text(struct arena *arena, const struct feedback *feedback)
{
    struct buf out = buf_in(arena);
    struct words w = {&out, arena, feedback, feedback->verdict};
    if (writers[w.v->class])
        writers[w.v->class](&w);
    say_new_name(&w);
    return without_last_newline(&out);
}

/* ---- advice: notes beside a result that passes ----------------------------- */

/* "/a/b" as "a.b": what a model calls the place. */
static void say_pointer(const struct words *w, struct str pointer)
{
    struct str cut = str_cut(pointer, PROBLEM_GOT_MAX_BYTES);
    for (size_t i = 1; i < cut.len; i++)
        buf_byte(w->out, cut.at[i] == '/' ? '.' : cut.at[i]);
    if (cut.len < pointer.len)
        buf_text(w->out, "…");
}

/* A default that was filled in is no news: the tool's description tells it. */
static bool is_news(const struct json *op)
{
    return !str_is(json_str(json_get_text(op, "op")), "add");
}

static void say_rewrite(const struct words *w, const struct json *op)
{
    say(w, "Note: '");
    say_pointer(w, json_str(json_get_text(op, "path")));
    if (str_is(json_str(json_get_text(op, "op")), "remove")) {
        say(w, "' was left out.\n");
        return;
    }
    struct buf text = buf_in(w->arena);
    json_write(&text, json_get_text(op, "value"));
    struct str cut = str_cut(buf_view(&text), PROBLEM_GOT_MAX_BYTES);
    say(w, "' was read as " STR_FMT "%s.\n", STR_ARG(cut), cut.len < text.len ? "…" : "");
}

static void advise_rewrites(const struct words *w)
{
    const struct json *rewrites = w->v->rewrites;
    size_t news = 0;
    for (uint32_t i = 0; rewrites && i < rewrites->len; i++)
        if (is_news(&rewrites->items[i]) && ++news <= FEEDBACK_REWRITES_MAX)
            say_rewrite(w, &rewrites->items[i]);
    if (news > FEEDBACK_REWRITES_MAX)
        say(w, "Note: and %zu more were changed or left out.\n", news - FEEDBACK_REWRITES_MAX);
}

/* Nothing to read looks like a call that went wrong. */
static void advise_blank(const struct words *w)
{
    if (w->v->blank && w->v->class == CLASS_OK)
        say(w, "Note: " STR_FMT " ran, and gave back nothing to read: that is its whole answer.\n",
            STR_ARG(w->f->name));
}

static void advise_repeats(const struct words *w)
{
    if (w->v->repeats >= 2)
        say(w,
            "Note: this call gave the same result as last time (%u times in a row): calling it again will "
            "not "
            "change that. Use the result, or change the arguments.\n",
            w->v->repeats);
}

/* Without a session a budget or a loop is only advice at first: the note says what a session would be told.
 */
static void advise_budget(const struct words *w)
{
    struct str would = w->v->would;
    bool loops = str_is(would, "loop") || str_is(would, "cycle");
    if (loops && w->v->repeats < 2)
        say(w, "Note: %s. Use the results you have.\n", loop_words(would));
    else if (would.len && !loops) {
        struct budget budget = budget_of(w->arena, would, w->v, w->f->tool);
        say(w, "Note: %s. %s\n", budget.what, budget.next);
    }
}

/* What writes is told beforehand that it will not be done again. */
static void advise_last_write(const struct words *w)
{
    const struct ledger_limits *limits = &w->f->tool->limits;
    if (limits->writes && limits->same_call > 1 && w->v->spent == limits->same_call && !w->v->would.len)
        say(w, "Note: this call changes something. With these arguments it will not be run again this turn, "
               "unless it brings something new now.\n");
}

static void advise_next(const struct words *w)
{
    const struct json *follow = w->v->follow_up;
    if (w->v->class == CLASS_PARTIAL_DATA)
        say(w, "Note: this is not everything (" STR_FMT "): " STR_FMT ".\n", STR_ARG(w->v->code),
            STR_ARG(w->v->detail));
    if (w->v->next_args) {
        say(w, "Next: for the rest call " STR_FMT " with ", STR_ARG(w->f->name));
        say_json(w, w->v->next_args);
        say(w, "\n");
    }
    if (json_get_text(follow, "tool") && json_get_text(follow, "args")) {
        say(w, "Next: call " STR_FMT " with ", STR_ARG(json_str(json_get_text(follow, "tool"))));
        say_json(w, json_get_text(follow, "args"));
        say(w, "\n");
    }
    if (w->v->hint.len)
        say(w, "Hint: " STR_FMT "\n", STR_ARG(w->v->hint));
}

struct str feedback_advice(struct arena *arena, const struct feedback *feedback)
{
    struct buf out = buf_in(arena);
    struct words w = {&out, arena, feedback, feedback->verdict};
    say_new_name(&w);
    if (w.v->warning.len)
        say(&w, "Note: " STR_FMT "\n", STR_ARG(w.v->warning));
    if (w.v->compact_note.len)
        say(&w, "Note: " STR_FMT "\n", STR_ARG(w.v->compact_note));
    if (w.v->tries > 1)
        say(&w, "Note: it took %u tries; those before failed for a moment only.\n", w.v->tries);
    advise_rewrites(&w);
    if (w.v->problems.count)
        problems_text(&out, &w.v->problems);
    advise_blank(&w);
    advise_repeats(&w);
    advise_budget(&w);
    advise_last_write(&w);
    advise_next(&w);
    return without_last_newline(&out);
}
