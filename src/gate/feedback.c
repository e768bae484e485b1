/*
 * The feedback of a call that did not pass, and the notes beside a result. Most classes are a headline, what
 * the tool said and what to do next, from the class table; the writers of the others are here.
 */
#include "gate/feedback.h"

#include "ledger/approvals.h"
#include "base/arena.h"
#include "base/printable.h"
#include "gate/arguments.h"
#include "gate/verdict.h"
#include "json/parse.h"
#include "json/write.h"
#include "schema/shape.h"

/* A tool's own words are data: quoted as JSON and cut, so that they cannot pass for the gateway's. */
struct feedback_writer {
    struct buf *out;
    struct arena *arena;
    const struct feedback *f;
    const struct verdict *v;
};

#define PARAMETERS_READ 128u /* of a tool */

__attribute__((format(printf, 2, 3))) static void put(const struct feedback_writer *w, const char *format,
                                                      ...)
{
    va_list args;
    va_start(args, format);
    buf_str(w->out, arena_vprintf(w->arena, format, args));
    va_end(args);
}

/* PUT(w, STR_LIT("Intent: "), text) joins strings, at a tenth of what printf costs. */
#define PUT(w, ...)                                                                                          \
    put_strs(w, (const struct str[]){__VA_ARGS__},                                                           \
             sizeof((const struct str[]){__VA_ARGS__}) / sizeof(struct str))

static void put_strs(const struct feedback_writer *w, const struct str *parts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        buf_str(w->out, parts[i]);
}

/* Words of an agent, a server or a policy within a line of ours: they cannot begin another line. */
static struct str foreign(const struct feedback_writer *w, struct str text)
{
    return printable_line(w->arena, text);
}

static void put_json(const struct feedback_writer *w, const struct json *value)
{
    struct str json = json_to_str(w->arena, value);
    printable_write_json(w->out, json);
}

static void put_json_string(const struct feedback_writer *w, struct str text)
{
    struct buf literal = buf_in(w->arena);
    json_write_string(&literal, text);
    printable_write_json(w->out, buf_view(&literal));
}

static void put_new_name(const struct feedback_writer *w)
{
    if (!w->f->alias.len)
        return;
    if (w->out->len && w->out->at[w->out->len - 1] != '\n')
        put(w, "\n");
    put(w, "Note: '" STR_FMT "' is called '" STR_FMT "' now: use that name.\n",
        STR_ARG(foreign(w, w->f->alias)), STR_ARG(foreign(w, w->f->name)));
}

static const char *loop_text(struct str code)
{
    return str_is(code, "cycle")                   ? "you are repeating the same few calls"
           : str_is(code, "retry_budget_exceeded") ? "its arguments do not fit"
                                                   : "you are repeating this exact call";
}

static struct str end_text(const struct feedback_writer *w)
{
    struct str text = buf_view(w->out);
    while (text.len && text.at[text.len - 1] == '\n')
        text.len--;
    return text;
}

static const char *plural(size_t n)
{
    return n == 1 ? "" : "s";
}

static void put_quoted(const struct feedback_writer *w, struct str text, size_t max)
{
    struct str cut = str_cut(text, max);
    put_json_string(w, cut);
    if (cut.len < text.len)
        put(w, "… (%zu bytes more)", text.len - cut.len);
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
    put(w, "%s", intro);
    if (trimmed.len && trimmed.len <= FEEDBACK_DATA_MAX_BYTES && strchr("{[", trimmed.at[0]) &&
        json_parse(w->arena, trimmed, NULL, &value, &error) == OK)
        put_json(w, &value);
    else
        put_quoted(w, text, max);
    put(w, "\n");
}

/* The verdict has the same hint as the text. */
static void say_next(const struct feedback_writer *w, struct str hint)
{
    if (w->f->said)
        w->f->said->hint = hint;
}

static void put_next(const struct feedback_writer *w, const char *by_default)
{
    struct str hint = w->v->hint.len ? w->v->hint : str_of(by_default);
    put(w, "Next: " STR_FMT "\n", STR_ARG(foreign(w, hint)));
    say_next(w, hint);
}

static void put_failure(const struct feedback_writer *w)
{
    const struct error_class_info *class = error_class_info(w->v->class);
    bool is_data = w->v->class == CLASS_SEMANTIC_GARBAGE;
    /* "NAME HEADLINE (code): detail", or "NAME HEADLINE" if the headline is a whole sentence */
    put(w, STR_FMT " %s", STR_ARG(foreign(w, w->f->name)), class->headline);
    if (class->headline[strlen(class->headline) - 1] != '.') {
        if (w->v->code.len)
            put(w, " (" STR_FMT ")", STR_ARG(foreign(w, w->v->code)));
        put(w, w->v->detail.len ? ": " STR_FMT : "." STR_FMT, STR_ARG(foreign(w, w->v->detail)));
    }
    put(w, "\n");
    if (w->v->problems.errors)
        problems_text(w->out, &w->v->problems);
    put_message(w,
                is_data                  ? "The data: "
                : w->v->quoted_is_policy ? "The tool's policy says: "
                                         : "The tool said: ",
                is_data                          ? FEEDBACK_DATA_MAX_BYTES
                : w->v->class == CLASS_TRANSIENT ? FEEDBACK_TRANSIENT_MAX_BYTES
                                                 : FEEDBACK_QUOTE_MAX_BYTES);
    if (w->v->class == CLASS_TOOL_ERROR && w->v->failed_alike >= LEDGER_FAILED_ALIKE_NOTED)
        put(w,
            "This same call has failed %u times with this error: it fails again until something changes.\n",
            w->v->failed_alike);
    else if (w->v->class == CLASS_TOOL_ERROR && w->v->same_failure >= LEDGER_SAME_FAILURE_NOTED)
        put(w,
            "It has failed %u times in a row with this error, whatever the arguments: other arguments "
            "will not help.\n",
            w->v->same_failure);
    if (w->v->class == CLASS_TRANSIENT && w->v->tries > 1)
        put(w, "toolgate tried it %u times.\n", w->v->tries);
    if (class->next)
        put_next(w, class->next);
}

/* One line: what an upstream wrote cannot begin lines of ours. */
static struct str as_one_line(struct arena *arena, struct str text)
{
    struct buf out = buf_in(arena);
    bool space = false;
    for (size_t i = 0; i < text.len; i++) {
        bool control = (unsigned char)text.at[i] < ' ' || text.at[i] == 127;
        if (control || text.at[i] == ' ') {
            space = out.len > 0;
            continue;
        }
        if (space)
            buf_byte(&out, ' ');
        space = false;
        buf_byte(&out, text.at[i]);
    }
    return printable_line(arena, buf_view(&out));
}

/* Ends with the last sentence within `max` bytes, else with the last word. */
static struct str first_sentences(struct arena *arena, struct str text, size_t max)
{
    struct str line = as_one_line(arena, str_cut(text, 4 * max));
    if (line.len <= max)
        return line;
    size_t sentence = 0, word = 0;
    for (size_t i = 0; i < max; i++) {
        bool ends = i + 1 == line.len || line.at[i + 1] == ' ';
        if (ends && strchr(".!?", line.at[i]))
            sentence = i + 1;
        if (line.at[i] == ' ')
            word = i;
    }
    if (sentence)
        return str_cut(line, sentence);
    return ARENA_JOIN(arena, str_cut(line, word ? word : max), STR_LIT(" …"));
}

/* The first whose path begins with the parameter, or that suggests it, or that is of all arguments and names
 * it. */
static const struct problem *problem_of(const struct feedback_writer *w, struct str name)
{
    const struct problems *problems = &w->v->problems;
    struct str quoted = arena_printf(w->arena, "'" STR_FMT "'", STR_ARG(name));
    for (size_t i = 0; i < problems->count && name.len; i++) {
        const struct problem *p = &problems->list[i];
        struct str path = p->path, text = p->message;
        bool is_named = !path.len && text.len && memmem(text.at, text.len, quoted.at, quoted.len);
        bool is_inside = path.len >= name.len && memcmp(path.at, name.at, name.len) == 0 &&
                         (path.len == name.len || path.at[name.len] == '.' || path.at[name.len] == '[');
        bool is_suggested =
            p->suggestion.len == quoted.len && memcmp(p->suggestion.at + 1, name.at, name.len) == 0;
        if (is_named || is_inside || is_suggested)
            return p;
    }
    return NULL;
}

/* Those that a problem concerns and those that are required; the others by their names, unless no problem
 * says which one is meant. */
static void put_parameters(const struct feedback_writer *w)
{
    struct shape_parameter *list = arena_alloc(w->arena, PARAMETERS_READ * sizeof(*list));
    size_t count = shape_parameters(w->f->tool->input_schema, list, PARAMETERS_READ), shown = 0, named = 0;
    bool all = !w->v->problems.count;
    if (!count) {
        put(w, "It takes no parameters.\n");
        return;
    }
    PUT(w, STR_LIT("Valid parameters:\n"));
    for (size_t i = 0; i < count; i++) {
        const struct problem *problem = problem_of(w, list[i].name);
        const struct shape_parameter *p = &list[i];
        if (!(all || problem || p->required) || shown++ >= FEEDBACK_PARAMETERS_MAX) {
            list[named++] = *p;
            continue;
        }
        struct buf shape = buf_in(w->arena);
        shape_put(&shape, p->node);
        /* A long shape that a problem shows already is not shown again. */
        bool repeats = problem && shape.len > FEEDBACK_SHAPE_MAX_BYTES && str_eq(problem->path, p->name);
        struct str kind = repeats ? STR_LIT("as above") : shape.len ? buf_view(&shape) : STR_LIT("any value");
        PUT(w, STR_LIT("- "), as_one_line(w->arena, p->name), STR_LIT(" ("), as_one_line(w->arena, kind),
            p->required ? STR_LIT(", required)") : STR_LIT(")"),
            p->description.len ? STR_LIT(": ") : STR_NONE, foreign(w, p->description), STR_LIT("\n"));
    }
    for (size_t i = 0; i < named && i < FEEDBACK_NAMES_MAX; i++)
        PUT(w,
            i       ? STR_LIT(", ")
            : shown ? STR_LIT("- optional: ")
                    : STR_LIT("- all optional: "),
            as_one_line(w->arena, list[i].name));
    if (named > FEEDBACK_NAMES_MAX)
        put(w, " and %zu more", named - FEEDBACK_NAMES_MAX);
    PUT(w, named ? STR_LIT("\n") : STR_NONE);
}

/* retry() of a policy that has run the tool, or of an agent that has: what ran may have had effects. */
static void put_retry(const struct feedback_writer *w)
{
    bool is_last = w->v->kind == VERDICT_REFUSE;
    put(w, STR_FMT " ran, and asks for another try: " STR_FMT "\n", STR_ARG(foreign(w, w->f->name)),
        STR_ARG(foreign(w, w->v->detail)));
    problems_text(w->out, &w->v->problems);
    if (is_last) {
        put(w, "That was attempt %u, and none are left this turn.\n", w->v->attempt);
        struct str next =
            STR_LIT("Ask the user for what is missing, use another tool, or answer with what you have.");
        put(w, "Next: " STR_FMT "\n", STR_ARG(next));
        say_next(w, next);
        return;
    }
    put_next(w, "change the arguments as it says, and call it again.");
    if (w->v->has_budget)
        put(w, "%u attempt%s left this turn.\n", w->v->attempts_left, plural(w->v->attempts_left));
}

static void write_invalid_arguments(const struct feedback_writer *w)
{
    size_t count = w->v->problems.errors + w->v->problems.more;
    if (w->v->ran) {
        put_retry(w);
        return;
    }
    if (w->v->kind == VERDICT_REFUSE) {
        put(w,
            STR_FMT
            " was not run: its arguments were still wrong after %u attempts, and none are left this turn.\n",
            STR_ARG(foreign(w, w->f->name)), w->v->attempt);
        problems_text(w->out, &w->v->problems);
        put_next(w,
                 "Ask the user for what is missing, use another tool, or answer with what you have. The tool "
                 "still works with correct arguments.");
        return;
    }
    PUT(w, foreign(w, w->f->name), STR_LIT(" was not run: "));
    if (count) {
        buf_int(w->out, (int64_t)count);
        PUT(w, count == 1 ? STR_LIT(" problem") : STR_LIT(" problems"), STR_LIT(" with its arguments.\n"));
    } else {
        PUT(w, foreign(w, w->v->detail), STR_LIT("\n"));
    }
    problems_text(w->out, &w->v->problems);
    if (count && w->v->detail.len)
        PUT(w, foreign(w, w->v->detail), STR_LIT("\n"));
    if (w->v->suggest) {
        put(w, "Suggested: ");
        put_json(w, w->v->suggest);
        put(w, "\n");
    }
    const struct tool *tool = w->f->tool;
    if (tool->description.len)
        PUT(w, STR_LIT("Intent: "), first_sentences(w->arena, tool->description, FEEDBACK_INTENT_MAX_BYTES),
            STR_LIT("\n"));
    const struct policy *policy;
    for (size_t i = 0; (policy = tool_enforced_policy(tool, &i));) {
        if (policy->use_when.len)
            PUT(w, STR_LIT("Use it when "),
                first_sentences(w->arena, policy->use_when, FEEDBACK_INTENT_MAX_BYTES), STR_LIT("\n"));
        if (policy->avoid_when.len)
            PUT(w, STR_LIT("Avoid it when "),
                first_sentences(w->arena, policy->avoid_when, FEEDBACK_INTENT_MAX_BYTES), STR_LIT("\n"));
        for (size_t k = 0; k < policy->rule_count; k++)
            PUT(w, STR_LIT("Rule: "), foreign(w, policy->rule_words[k]), STR_LIT("\n"));
    }
    put_parameters(w);
    struct str what = count ? STR_LIT("correct the listed problems") : STR_LIT("correct the arguments");
    struct str next = w->v->hint.len
                          ? w->v->hint
                          : ARENA_JOIN(w->arena, what, STR_LIT(" and call "), foreign(w, w->f->name),
                                       STR_LIT(" again, the rest unchanged."));
    PUT(w, STR_LIT("Next: "), foreign(w, next), STR_LIT(" "));
    say_next(w, next);
    if (w->v->has_budget) {
        buf_int(w->out, w->v->attempts_left);
        PUT(w, w->v->attempts_left == 1 ? STR_LIT(" attempt") : STR_LIT(" attempts"),
            STR_LIT(" left this turn.\n"));
    }
}

static void write_unknown_tool(const struct feedback_writer *w)
{
    size_t count = w->f->suggestion_count;
    if (str_is(w->v->code, "call_forgotten")) {
        put(w, "The gateway no longer knows the call of this callId. Report it with its name and "
               "arguments.\n");
        return;
    }
    put(w, "There is no tool ");
    put_json_string(w, arena_truncate(w->arena, w->f->name, PROBLEM_GOT_MAX_BYTES));
    put(w, ".");
    for (size_t i = 0; i < count; i++)
        put(w, "%s'" STR_FMT "'",
            i == 0           ? " Did you mean "
            : i + 1 == count ? " or "
                             : ", ",
            STR_ARG(foreign(w, w->f->suggestions[i])));
    put(w, count ? "?\n" : "\n");
    for (size_t i = 0; w->f->name_count > count && i < w->f->name_count; i++)
        put(w, "%s" STR_FMT, i ? ", " : "The tools are ", STR_ARG(foreign(w, w->f->suggestions[i])));
    put(w, w->f->name_count > count ? ".\n" : "");
    put_next(w, "Call only tools from your list, by their exact names; if none fits, tell the user.");
}

/* Many models that repeat a failing call have lost sight of the error. */
static void put_last_error(const struct feedback_writer *w)
{
    if (!w->v->last_error.len)
        return;
    PUT(w, STR_LIT("The last error: "));
    put_quoted(w, w->v->last_error, FEEDBACK_QUOTE_MAX_BYTES);
    PUT(w, STR_LIT("\n"));
}

static void write_retry_budget(const struct feedback_writer *w)
{
    struct feedback_budget budget = feedback_budget_of(w->arena, w->v->code, w->v, w->f->tool);
    put(w, STR_FMT " was not run: %s.\n", STR_ARG(foreign(w, w->f->name)), budget.what);
    put_last_error(w);
    put_next(w, budget.next);
}

/* What a model repeats: a result that it has, an error, arguments that are still wrong, or a refusal. */
enum repeated { REPEATED_RESULT, REPEATED_ERROR, REPEATED_ARGUMENTS, REPEATED_REFUSAL };

static const struct loop_words {
    const char *came_of; /* after "you have made this exact call 3 times in a row" */
    const char *next, *stuck;
} loop_words[] = {
    [REPEATED_RESULT] = {" and the result has not changed",
                         "Use the result you already have. If it is not enough, change the arguments, use "
                         "another tool, or answer the user.",
                         "tell the user what you found and where you are stuck"},
    [REPEATED_ERROR] = {", and it failed each time",
                        "Read the last error: change what it names, use another tool, or tell the user about "
                        "the error.",
                        "tell the user which error it ends with and what you have tried"},
    [REPEATED_ARGUMENTS] = {", and its arguments are still wrong",
                            "Change the arguments before you call it again. If you do not know a value, ask "
                            "the user.",
                            "tell the user which of its arguments you cannot provide"},
    [REPEATED_REFUSAL] = {", and it was refused each time",
                          "Do not call it like this again: use another tool, or tell the user.",
                          "tell the user what was refused"},
};

static void write_loop(const struct feedback_writer *w)
{
    bool is_cycle = str_is(w->v->code, "cycle");
    const struct tool *tool = w->f->tool;
    enum repeated repeated = w->v->problems.errors || w->v->came_of == LEDGER_CAME_INVALID
                                 ? REPEATED_ARGUMENTS
                             : w->v->came_of == LEDGER_CAME_ERROR   ? REPEATED_ERROR
                             : w->v->came_of == LEDGER_CAME_REFUSED ? REPEATED_REFUSAL
                                                                    : REPEATED_RESULT;
    const struct loop_words *words = &loop_words[repeated];
    /* The ledger ignores what a write returns: the same arguments are the same write. */
    bool compares_results =
        !tool || (!tool->limits.compare_arguments && tool->limits.effects != LEDGER_EFFECTS_WRITE &&
                  tool->limits.effects != LEDGER_EFFECTS_DESTRUCTIVE);
    bool tells = repeated != REPEATED_RESULT || compares_results;
    if (w->v->kind == VERDICT_HALT)
        put(w, "Stop. " STR_FMT " was not run: %s again and again%s.\n", STR_ARG(foreign(w, w->f->name)),
            loop_text(w->v->code), repeated == REPEATED_RESULT || is_cycle ? "" : words->came_of);
    else if (is_cycle)
        put(w, STR_FMT " was not run: %s%s.\n", STR_ARG(foreign(w, w->f->name)), loop_text(w->v->code),
            repeated == REPEATED_RESULT ? ", and the results have not changed" : words->came_of);
    else
        put(w, STR_FMT " was not run: you have made this exact call %u time%s in a row%s.\n",
            STR_ARG(foreign(w, w->f->name)), w->v->repeats, plural(w->v->repeats),
            tells ? words->came_of : "");
    problems_text(w->out, &w->v->problems);
    put_last_error(w);
    if (w->v->kind == VERDICT_HALT)
        put_next(w, arena_printf(w->arena, "End this run now: call no more tools, and %s.", words->stuck).at);
    else
        put_next(w, words->next);
}

static void write_transient(const struct feedback_writer *w)
{
    if (str_is(w->v->code, "too_soon") || str_is(w->v->code, "rate_limit")) {
        write_retry_budget(w);
        return;
    }
    put_failure(w);
    put_next(w, arena_printf(w->arena, "wait %lld s, then repeat the call.",
                             (long long)(w->v->after_s > 0 ? w->v->after_s : 1))
                    .at);
}

/* If the ledger is down, it is no use to try another tool. */
static void write_policy_error(const struct feedback_writer *w)
{
    if (!str_is(w->v->code, VERDICT_RESULT_UNCHECKED)) {
        put_failure(w);
        return;
    }
    put(w,
        STR_FMT " ran, but the gateway could not check its result and withholds it: its policy for this tool "
                "is broken, not your call.\n",
        STR_ARG(w->f->name));
    put_next(w, NULL);
}

static void write_unavailable(const struct feedback_writer *w)
{
    if (!str_is(w->v->code, "ledger_unavailable")) {
        put_failure(w);
        return;
    }
    put(w,
        STR_FMT " was not run (ledger_unavailable): the gateway cannot count calls now, so it runs "
                "none, of any tool.\n",
        STR_ARG(foreign(w, w->f->name)));
    put_next(w, "Call no tools for now. Answer with what you have, or tell the user that the tools are down "
                "and that the operator must check the gateway.");
}

static void write_need_user_input(const struct feedback_writer *w)
{
    const struct json *choices = w->v->choices;
    put(w, STR_FMT " needs the user's input.\n", STR_ARG(foreign(w, w->f->name)));
    if (w->v->detail.len || !w->v->quoted.len) {
        put(w, "Ask the user: " STR_FMT "\n", STR_ARG(foreign(w, w->v->detail)));
    } else {
        put(w, "It asks the user: ");
        put_quoted(w, w->v->quoted, FEEDBACK_QUOTE_MAX_BYTES);
        put(w, "\n");
    }
    if (json_is(choices, JSON_ARRAY) && choices->len) {
        put(w, "Choices: ");
        put_json(w, choices);
        put(w, "\n");
    }
    put_next(w, "Ask exactly that and wait for the answer; do not answer it yourself.");
    /* How the call can still be made: by somebody else's command. */
    if (w->v->approval.len)
        put(w,
            "Approval: the user, not you, may approve this call with `toolgate approve " STR_FMT
            "` within %u minutes. Once they have, make the same call again with the same arguments.\n",
            STR_ARG(w->v->approval), APPROVAL_MS / 60000u);
    else if (w->v->no_approval)
        put(w, "Nobody can approve this call now: %s.\n", w->v->no_approval);
}

/* The classes whose feedback is more than a headline and a next step. */
static void (*const writers[CLASS_COUNT])(const struct feedback_writer *w) = {
    [CLASS_TRANSIENT] = write_transient,
    [CLASS_INVALID_ARGUMENTS] = write_invalid_arguments,
    [CLASS_UNKNOWN_TOOL] = write_unknown_tool,
    [CLASS_RETRY_BUDGET] = write_retry_budget,
    [CLASS_LOOP] = write_loop,
    [CLASS_POLICY_ERROR] = write_policy_error,
    [CLASS_UNAVAILABLE] = write_unavailable,
    [CLASS_NEED_USER_INPUT] = write_need_user_input,
};

static void put_error(const struct feedback_writer *w)
{
    if (writers[w->v->class])
        writers[w->v->class](w);
    else if (error_class_info(w->v->class)->headline)
        put_failure(w);
}

/* One sentence for the verdict: the first problem, else the text's first line. */
static struct str detail_of(const struct feedback_writer *w)
{
    const struct problems *problems = &w->v->problems;
    struct buf out = buf_in(w->arena);
    size_t i = 0;
    while (i < problems->count && problems->list[i].warning)
        i++;
    bool by_problem = w->v->class == CLASS_INVALID_ARGUMENTS || w->v->class == CLASS_SCHEMA_MISMATCH;
    if (i == problems->count || !by_problem)
        return arena_first_line(w->arena, buf_view(w->out), FEEDBACK_DETAIL_MAX_BYTES);
    problem_line(&out, &problems->list[i]);
    struct str line =
        arena_first_line(w->arena, str_from(buf_view(&out), strlen("- ")), FEEDBACK_DETAIL_MAX_BYTES);
    size_t more = problems->errors + problems->more - 1;
    return more ? arena_printf(w->arena, STR_FMT " (and %zu more)", STR_ARG(line), more) : line;
}

struct str feedback_text(struct arena *arena, const struct feedback *feedback)
{
    struct buf out = buf_in(arena);
    struct feedback_writer w = {&out, arena, feedback, feedback->verdict};
    put_error(&w);
    if (feedback->said)
        feedback->said->detail = detail_of(&w);
    put_new_name(&w);
    return end_text(&w);
}

/* "/a/b" as "a.b", cut. */
static struct str shown_path(struct arena *arena, struct str pointer)
{
    struct str path = arena_truncate(arena, str_from(pointer, 1), PROBLEM_GOT_MAX_BYTES);
    char *shown = arena_copy(arena, path);
    for (size_t i = 0; i < path.len; i++)
        if (shown[i] == '/')
            shown[i] = '.';
    return printable_line(arena, (struct str){shown, path.len});
}

static struct str last_step(struct str pointer)
{
    size_t start = pointer.len;
    while (start > 0 && pointer.at[start - 1] != '/')
        start--;
    return str_from(pointer, start);
}

static void note_change(const struct feedback_writer *w, const struct json *op)
{
    struct str pointer = json_str(json_get_text(op, "path"));
    struct str place = shown_path(w->arena, pointer);
    if (!str_is(json_str(json_get_text(op, "op")), "remove")) {
        struct str value = json_to_str(w->arena, json_get_text(op, "value"));
        put(w, "Note: '" STR_FMT "' was read as " STR_FMT ".\n", STR_ARG(place),
            STR_ARG(foreign(w, arena_truncate(w->arena, value, PROBLEM_GOT_MAX_BYTES))));
        return;
    }
    struct str old = last_step(pointer), parent = {pointer.at, pointer.len - old.len};
    for (uint32_t i = 0; i < w->v->changes->len; i++) { /* what adds it under a name that is spelled alike */
        const struct json *other = &w->v->changes->items[i];
        struct str added = json_str(json_get_text(other, "path")), name = last_step(added);
        struct str its_parent = {added.at, added.len - name.len};
        if (str_is(json_str(json_get_text(other, "op")), "add") && str_eq(its_parent, parent) &&
            schema_names_alike(old, name)) {
            put(w, "Note: '" STR_FMT "' was read as '" STR_FMT "'.\n", STR_ARG(place),
                STR_ARG(shown_path(w->arena, added)));
            return;
        }
    }
    put(w, "Note: '" STR_FMT "' was left out.\n", STR_ARG(place));
}

struct str feedback_advice(struct arena *arena, const struct feedback *feedback)
{
    struct buf out = buf_in(arena);
    struct feedback_writer writer = {&out, arena, feedback, feedback->verdict}, *w = &writer;
    const struct verdict *v = feedback->verdict;
    const struct arguments *args = v->arguments;
    const struct json *changes = v->changes, *follow = v->follow_up;
    const struct ledger_limits *limits = &feedback->tool->limits;
    size_t count = 0;
    put_new_name(w);
    if (v->as_sent) /* beside the result, which has the tool's own words */
        put_error(w);
    if (v->warning.len)
        put(w, "Note: " STR_FMT "\n", STR_ARG(foreign(w, v->warning)));
    if (v->compact_note.len)
        put(w, "Note: " STR_FMT "\n", STR_ARG(foreign(w, v->compact_note)));
    if (v->tries > 1)
        put(w, "Note: it took %u tries; the others failed temporarily.\n", v->tries);
    /* Plain JSON in a string is how some clients send every call: the model has nothing to do with it. */
    if (args && args->empty)
        put(w, "Note: the arguments arrived empty and were read as {}.\n");
    if (args && args->spelled)
        put(w, "Note: the arguments came as text that is no strict JSON, and were read as the object that it "
               "means: send a JSON object.\n");
    if (args && args->wrapper.len)
        put(w, "Note: the parameters were taken out of '" STR_FMT "': send them at the top level.\n",
            STR_ARG(foreign(w, arena_truncate(arena, args->wrapper, PROBLEM_GOT_MAX_BYTES))));
    for (uint32_t i = 0; changes && i < changes->len; i++) {
        /* A default that was filled in is no news: the tool's schema states it. */
        bool added = str_is(json_str(json_get_text(&changes->items[i], "op")), "add");
        if (!added && ++count <= FEEDBACK_REWRITES_MAX)
            note_change(w, &changes->items[i]);
    }
    if (count > FEEDBACK_REWRITES_MAX)
        put(w, "Note: and %zu more were changed or left out.\n", count - FEEDBACK_REWRITES_MAX);
    if (v->problems.count)
        problems_text(&out, &v->problems);
    if (v->blank && v->class == CLASS_OK)
        put(w, "Note: " STR_FMT " ran and returned nothing: that is its whole answer.\n",
            STR_ARG(foreign(w, w->f->name)));
    if (v->repeats >= 2)
        put(w,
            "Note: this call has given the same result %u times in a row. Use the result, or change "
            "the arguments.\n",
            v->repeats);
    else if (v->at_once)
        put(w, "Note: this same call was made %u times at once. One is enough.\n", v->at_once + 1);
    /* `would`: the session's budget or loop that is not enforced, because the call has no session or the mode
     * is shadow. */
    bool loops = str_is(v->would, "loop") || str_is(v->would, "cycle");
    if (loops && v->repeats < 2) {
        put(w, "Note: %s. Use the results you have.\n", loop_text(v->would));
    } else if (v->would.len && !loops) {
        struct feedback_budget budget = feedback_budget_of(arena, v->would, v, w->f->tool);
        put(w, "Note: %s. %s\n", budget.what, budget.next);
    }
    if (limits->effects == LEDGER_EFFECTS_WRITE && limits->same_call > 1 &&
        v->same_calls == limits->same_call && !v->would.len)
        put(w, "Note: this call changes something. With these arguments it will not run again this "
               "turn.\n");
    if (v->class == CLASS_PARTIAL_DATA) {
        put(w, "Note: this is not everything (" STR_FMT "): " STR_FMT ".\n", STR_ARG(foreign(w, v->code)),
            STR_ARG(foreign(w, v->detail)));
        say_next(w, v->next_args ? STR_LIT("Call the tool again with next_args for the rest.")
                                 : STR_LIT("Do not take it for everything there is."));
    }
    if (v->next_args) {
        put(w, "Next: for the rest call " STR_FMT " with ", STR_ARG(foreign(w, w->f->name)));
        put_json(w, v->next_args);
        put(w, "\n");
    }
    if (json_get_text(follow, "tool") && json_get_text(follow, "args")) {
        put(w, "Next: call " STR_FMT " with ", STR_ARG(foreign(w, json_str(json_get_text(follow, "tool")))));
        put_json(w, json_get_text(follow, "args"));
        put(w, "\n");
    }
    if (v->hint.len && !v->as_sent)
        put(w, "Hint: " STR_FMT "\n", STR_ARG(foreign(w, v->hint)));
    return end_text(w);
}
