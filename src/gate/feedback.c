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

#define PARAMETERS_READ 128u /* of a tool */

#define put(f, ...) buf_printf(&(f)->out, __VA_ARGS__)

/* PUT(f, STR_LIT("Intent: "), text) joins strings, at a tenth of what printf costs. */
#define PUT(f, ...)                                                                                          \
    put_strs(f, (const struct str[]){__VA_ARGS__},                                                           \
             sizeof((const struct str[]){__VA_ARGS__}) / sizeof(struct str))

static void put_strs(struct feedback *f, const struct str *parts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        buf_str(&f->out, parts[i]);
}

/* Words of an agent, a server or a policy within a line of ours: they cannot begin another line. */
static struct str foreign(struct feedback *f, struct str text)
{
    return printable_line(f->arena, text);
}

/* The tool's name, and the text behind it. */
#define put_named(f, ...) (PUT(f, foreign(f, (f)->name)), put(f, __VA_ARGS__))

static void put_json(struct feedback *f, const struct json *value)
{
    struct str json = json_to_str(f->arena, value);
    printable_write_json(&f->out, json);
}

static void put_json_string(struct feedback *f, struct str text)
{
    struct buf literal = buf_in(f->arena);
    json_write_string(&literal, text);
    printable_write_json(&f->out, buf_view(&literal));
}

static void put_new_name(struct feedback *f)
{
    if (!f->alias.len)
        return;
    if (f->out.len && f->out.at[f->out.len - 1] != '\n')
        put(f, "\n");
    put(f, "Note: '" STR_FMT "' is called '" STR_FMT "' now: use that name.\n", STR_ARG(foreign(f, f->alias)),
        STR_ARG(foreign(f, f->name)));
}

static const char *loop_text(struct str code)
{
    return str_is(code, "cycle")                   ? "you are repeating the same few calls"
           : str_is(code, "retry_budget_exceeded") ? "its arguments do not fit"
                                                   : "you are repeating this exact call";
}

static struct str end_text(struct feedback *f)
{
    struct str text = buf_view(&f->out);
    while (text.len && text.at[text.len - 1] == '\n')
        text.len--;
    return text;
}

static void put_quoted(struct feedback *f, struct str text, size_t max)
{
    struct str cut = str_cut(text, max);
    put_json_string(f, cut);
    if (cut.len < text.len)
        put(f, "… (%zu bytes more)", text.len - cut.len);
}

/* What a tool said, as long as a result may be: only a policy that shortens results shortens it. A JSON
 * object or array is data by itself: it is shown readable, since the error is somewhere in it. */
static void put_words(struct feedback *f, const char *title, struct str text)
{
    struct str trimmed = str_trim(text);
    struct json value;
    struct json_error error;
    size_t max = f->verdict->class == CLASS_SEMANTIC_GARBAGE ? FEEDBACK_DATA_MAX_BYTES : SIZE_MAX;
    if (f->verdict->class != CLASS_SEMANTIC_GARBAGE && f->tool && f->tool->compact.on)
        max = f->tool->compact.max_bytes ? f->tool->compact.max_bytes : f->tool->compact.max_tokens;
    put(f, "%s: ", title);
    if (trimmed.len && trimmed.len <= max && strchr("{[", trimmed.at[0]) &&
        json_parse(f->arena, trimmed, NULL, &value, &error) == OK)
        put_json(f, &value);
    else
        put_quoted(f, text, max);
    put(f, "\n");
}

static void put_next(struct feedback *f, const char *by_default)
{
    struct str hint = f->verdict->hint.len ? f->verdict->hint : str_of(by_default);
    put(f, "Next: " STR_FMT "\n", STR_ARG(foreign(f, hint)));
    f->hint = hint;
}

/* Failures whose text is not made of the class table's words. If the ledger is down, it is no use to try
 * another tool. */
static const struct {
    enum error_class class;
    const char *code, *text, *next;
} whole_texts[] = {
    {CLASS_POLICY_ERROR, VERDICT_RESULT_UNCHECKED,
     " ran, but the gateway could not check its result and withholds it: its policy for this tool is broken, "
     "not your call.\n",
     NULL},
    {CLASS_UNAVAILABLE, "ledger_unavailable",
     " was not run (ledger_unavailable): the gateway cannot count calls now, so it runs none, of any tool.\n",
     "Call no tools for now. Answer with what you have, or tell the user that the tools are down and that "
     "the operator must check the gateway."},
};

/* "NAME HEADLINE (code): detail", or "NAME HEADLINE" if the headline is a whole sentence; the problems, what
 * the tool said, and what to do next. */
static void put_failure(struct feedback *f)
{
    const struct verdict *v = f->verdict;
    const struct error_class_info *class = error_class_info(v->class);
    for (size_t i = 0; i < sizeof(whole_texts) / sizeof(*whole_texts); i++)
        if (whole_texts[i].class == v->class && str_is(v->code, whole_texts[i].code)) {
            put_named(f, "%s", whole_texts[i].text);
            put_next(f, whole_texts[i].next);
            return;
        }
    put_named(f, " %s", class->headline);
    if (class->headline[strlen(class->headline) - 1] != '.') {
        if (v->code.len)
            put(f, " (" STR_FMT ")", STR_ARG(foreign(f, v->code)));
        put(f, v->detail.len ? ": " STR_FMT : "." STR_FMT, STR_ARG(foreign(f, v->detail)));
    }
    put(f, "\n");
    const struct problems *problems = &v->problems;
    bool told =
        problems->count == 1 && v->detail.len &&
        memmem(v->detail.at, v->detail.len, problems->list[0].message.at, problems->list[0].message.len);
    if (problems->errors && !told)
        problems_text(&f->out, problems);
    if (v->quoted.len && !v->as_sent) /* else the model has the result itself */
        put_words(f,
                  v->class == CLASS_SEMANTIC_GARBAGE ? "The data"
                  : v->quoted_is_policy              ? "The tool's policy says"
                                                     : "The tool said",
                  v->quoted);
    if (v->data.len && !v->as_sent)
        put_words(f, "Its data", v->data);
    if (v->last_stderr.len)
        put_words(f, "Its server wrote last", v->last_stderr);
    if (v->class == CLASS_TOOL_ERROR && v->failed_alike >= LEDGER_FAILED_ALIKE_NOTED)
        put(f,
            "This same call has failed %u times with this error: it fails again until something changes.\n",
            v->failed_alike);
    else if (v->class == CLASS_TOOL_ERROR && v->same_failure >= LEDGER_SAME_FAILURE_NOTED)
        put(f, "It has failed %u times in a row with this error, whatever the arguments: %s\n",
            v->same_failure,
            v->same_failure >= LEDGER_SAME_FAILURE_ADVISED
                ? "use another tool, or look at the state that the error speaks of first."
                : "other arguments will not help.");
    if (v->class == CLASS_TRANSIENT && v->tries > 1)
        put(f, "toolgate tried it %u times.\n", v->tries);
    if (class->next)
        put_next(f, class->next);
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
static const struct problem *problem_of(struct feedback *f, struct str name)
{
    const struct problems *problems = &f->verdict->problems;
    struct str quoted = arena_printf(f->arena, "'" STR_FMT "'", STR_ARG(name));
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

/* One that is a sentence is quoted. */
static struct str parameter_name(struct feedback *f, struct str name)
{
    struct str line = as_one_line(f->arena, name);
    return memchr(line.at, ' ', line.len) ? ARENA_JOIN(f->arena, STR_LIT("'"), line, STR_LIT("'")) : line;
}

/* Those that a problem concerns and those that are required; the others by their names, unless no problem
 * says which one is meant. */
static void put_parameters(struct feedback *f)
{
    struct shape_parameter *list = arena_alloc(f->arena, PARAMETERS_READ * sizeof(*list));
    size_t count = shape_parameters(f->tool->input_schema, list, PARAMETERS_READ), shown = 0, named = 0;
    bool all = !f->verdict->problems.count;
    if (!count) {
        put(f, "It takes no parameters.\n");
        return;
    }
    PUT(f, STR_LIT("Valid parameters:\n"));
    for (size_t i = 0; i < count; i++) {
        const struct problem *problem = problem_of(f, list[i].name);
        const struct shape_parameter *p = &list[i];
        if (!(all || problem || p->required) || shown++ >= FEEDBACK_PARAMETERS_MAX) {
            list[named++] = *p;
            continue;
        }
        struct buf shape = buf_in(f->arena);
        shape_put(&shape, p->node);
        /* A long shape that a problem shows already is not shown again. */
        bool repeats = problem && shape.len > FEEDBACK_SHAPE_MAX_BYTES && str_eq(problem->path, p->name);
        struct str kind = repeats ? STR_LIT("as above") : shape.len ? buf_view(&shape) : STR_LIT("any value");
        PUT(f, STR_LIT("- "), parameter_name(f, p->name), STR_LIT(" ("), as_one_line(f->arena, kind),
            p->required ? STR_LIT(", required)") : STR_LIT(")"),
            p->description.len ? STR_LIT(": ") : STR_NONE, foreign(f, p->description), STR_LIT("\n"));
    }
    for (size_t i = 0; i < named && i < FEEDBACK_NAMES_MAX; i++)
        PUT(f,
            i       ? STR_LIT(", ")
            : shown ? STR_LIT("- optional: ")
                    : STR_LIT("- all optional: "),
            parameter_name(f, list[i].name));
    if (named > FEEDBACK_NAMES_MAX)
        put(f, " and %zu more", named - FEEDBACK_NAMES_MAX);
    PUT(f, named ? STR_LIT("\n") : STR_NONE);
}

/* "0 attempts left" beside "call it again" would read as a contradiction. */
static void put_attempts(struct feedback *f)
{
    const struct verdict *v = f->verdict;
    if (v->has_budget && !v->attempts_left) {
        PUT(f, STR_LIT("If that fails too, no attempt is left this turn: ask the user for a value that you "
                       "do not know.\n"));
    } else if (v->has_budget) {
        buf_int(&f->out, v->attempts_left);
        PUT(f, v->attempts_left == 1 ? STR_LIT(" attempt") : STR_LIT(" attempts"),
            STR_LIT(" left this turn.\n"));
    }
}

/* retry() of a policy that has run the tool, or of an agent that has: what ran may have had effects. */
static void put_retry(struct feedback *f)
{
    const struct verdict *v = f->verdict;
    bool is_last = v->kind == VERDICT_REFUSE;
    put_named(f, " ran, and asks for another try: " STR_FMT "\n", STR_ARG(foreign(f, v->detail)));
    problems_text(&f->out, &v->problems);
    if (is_last) {
        put(f, "That was attempt %u, and none are left this turn.\n", v->attempt);
        struct str next =
            STR_LIT("Ask the user for what is missing, use another tool, or answer with what you have.");
        put(f, "Next: " STR_FMT "\n", STR_ARG(next));
        f->hint = next;
        return;
    }
    put_next(f, "change the arguments as it says, and call it again.");
    put_attempts(f);
}

/* A published schema may be stricter than its server: without this line a model could find out only by
 * chance. */
static void put_insistence(struct feedback *f)
{
    if (f->verdict->may_insist)
        PUT(f, STR_LIT("If the server accepts it, send the same call again: it is let through once.\n"));
}

/* A server's words are quoted: they must not pass for the gateway's. */
static void put_intent(struct feedback *f)
{
    const struct tool *tool = f->tool;
    bool is_servers = tool->target.upstream.len && !(tool->policy && tool->policy->description.len);
    struct str intent = first_sentences(f->arena, tool->description, FEEDBACK_INTENT_MAX_BYTES);
    if (!intent.len)
        return;
    PUT(f, is_servers ? STR_LIT("Its server says: ") : STR_LIT("Intent: "));
    if (is_servers)
        put_json_string(f, intent);
    else
        buf_str(&f->out, intent);
    PUT(f, STR_LIT("\n"));
}

static void write_invalid_arguments(struct feedback *f)
{
    const struct verdict *v = f->verdict;
    size_t count = v->problems.errors + v->problems.more;
    if (v->ran) {
        put_retry(f);
        return;
    }
    if (v->kind == VERDICT_REFUSE) {
        put_named(
            f,
            " was not run: its arguments were still wrong after %u attempts, and none are left this turn.\n",
            v->attempt);
        problems_text(&f->out, &v->problems);
        put_next(f, "Ask the user for what is missing, use another tool, or answer with what you have. The "
                    "tool still works with correct arguments.");
        put_insistence(f);
        return;
    }
    PUT(f, foreign(f, f->name), STR_LIT(" was not run: "));
    if (count) {
        buf_int(&f->out, (int64_t)count);
        PUT(f, count == 1 ? STR_LIT(" problem") : STR_LIT(" problems"), STR_LIT(" with its arguments.\n"));
    } else {
        PUT(f, foreign(f, v->detail), STR_LIT("\n"));
    }
    problems_text(&f->out, &v->problems);
    if (count && v->detail.len)
        PUT(f, foreign(f, v->detail), STR_LIT("\n"));
    if (v->suggest) {
        put(f, "Suggested: ");
        put_json(f, v->suggest);
        put(f, "\n");
    }
    const struct tool *tool = f->tool;
    put_intent(f);
    const struct policy *policy;
    for (size_t i = 0; (policy = tool_enforced_policy(tool, &i));) {
        if (policy->use_when.len)
            PUT(f, STR_LIT("Use it when "),
                first_sentences(f->arena, policy->use_when, FEEDBACK_INTENT_MAX_BYTES), STR_LIT("\n"));
        if (policy->avoid_when.len)
            PUT(f, STR_LIT("Avoid it when "),
                first_sentences(f->arena, policy->avoid_when, FEEDBACK_INTENT_MAX_BYTES), STR_LIT("\n"));
        for (size_t k = 0; k < policy->rule_count; k++)
            PUT(f, STR_LIT("Rule: "), foreign(f, policy_rule_words(policy, k)), STR_LIT("\n"));
    }
    put_parameters(f);
    struct str what = count ? STR_LIT("correct the listed problems") : STR_LIT("correct the arguments");
    struct str next = v->hint.len ? v->hint
                                  : ARENA_JOIN(f->arena, what, STR_LIT(" and call "), foreign(f, f->name),
                                               STR_LIT(" again, the rest unchanged."));
    PUT(f, STR_LIT("Next: "), foreign(f, next), STR_LIT(" "));
    f->hint = next;
    put_attempts(f);
    put_insistence(f);
}

static void write_unknown_tool(struct feedback *f)
{
    size_t count = f->suggestion_count;
    if (str_is(f->verdict->code, "call_forgotten")) {
        put(f,
            "The gateway no longer knows the call of this callId. Report it with its name and arguments.\n");
        return;
    }
    put(f, "There is no tool ");
    put_json_string(f, arena_truncate(f->arena, f->name, PROBLEM_GOT_MAX_BYTES));
    put(f, ".");
    for (size_t i = 0; i < count; i++)
        put(f, "%s'" STR_FMT "'",
            i == 0           ? " Did you mean "
            : i + 1 == count ? " or "
                             : ", ",
            STR_ARG(foreign(f, f->suggestions[i])));
    put(f, count ? "?\n" : "\n");
    for (size_t i = 0; f->name_count > count && i < f->name_count; i++)
        put(f, "%s" STR_FMT,
            i                    ? ", "
            : f->name_count == 1 ? "The only tool is "
                                 : "The tools are ",
            STR_ARG(foreign(f, f->suggestions[i])));
    put(f, f->name_count > count ? ".\n" : "");
    put_next(f, "Call only tools from your list, by their exact names; if none fits, tell the user.");
}

/* Many models that repeat a failing call have lost sight of the error. */
static void put_last_error(struct feedback *f)
{
    if (!f->verdict->last_error.len)
        return;
    PUT(f, STR_LIT("The last error: "));
    put_quoted(f, f->verdict->last_error, FEEDBACK_QUOTE_MAX_BYTES);
    PUT(f, STR_LIT("\n"));
}

/* ---- classes whose feedback is more than a headline and a next step ---- */

static void write_retry_budget(struct feedback *f)
{
    struct budget budget = feedback_budget(f, f->verdict->code);
    put_named(f, " was not run: %s.\n", budget.what);
    put_last_error(f);
    put_next(f, budget.next);
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
    [REPEATED_ERROR] =
        {", and it failed each time",
         "Read the last error: change what it names, use another tool, or tell the user about the error.",
         "tell the user which error it ends with and what you have tried"},
    [REPEATED_ARGUMENTS] =
        {", and its arguments are still wrong",
         "Change the arguments before you call it again. If you do not know a value, ask the user.",
         "tell the user which of its arguments you cannot provide"},
    [REPEATED_REFUSAL] = {", and it was refused each time",
                          "Do not call it like this again: use another tool, or tell the user.",
                          "tell the user what was refused"},
};

static void write_loop(struct feedback *f)
{
    const struct verdict *v = f->verdict;
    bool is_cycle = str_is(v->code, "cycle");
    const struct tool *tool = f->tool;
    enum repeated repeated = v->problems.errors || v->came_of == LEDGER_CAME_INVALID ? REPEATED_ARGUMENTS
                             : v->came_of == LEDGER_CAME_ERROR                       ? REPEATED_ERROR
                             : v->came_of == LEDGER_CAME_REFUSED                     ? REPEATED_REFUSAL
                                                                                     : REPEATED_RESULT;
    const struct loop_words *words = &loop_words[repeated];
    /* The ledger ignores what a write returns: the same arguments are the same write. */
    bool writes = tool && (tool->limits->effects == LEDGER_EFFECTS_WRITE ||
                           tool->limits->effects == LEDGER_EFFECTS_DESTRUCTIVE);
    bool compares_results = !writes && !(tool && tool->limits->compare_arguments);
    bool tells = repeated != REPEATED_RESULT || compares_results;
    if (v->kind == VERDICT_HALT)
        put(f, "Stop. " STR_FMT " was not run: %s again and again%s.\n", STR_ARG(foreign(f, f->name)),
            loop_text(v->code), repeated == REPEATED_RESULT || is_cycle ? "" : words->came_of);
    else if (is_cycle)
        put_named(f, " was not run: %s%s.\n", loop_text(v->code),
                  repeated == REPEATED_RESULT ? ", and the results have not changed" : words->came_of);
    else
        put_named(f, " was not run: you have made this exact call %u time%s in a row%s.\n", v->repeats,
                  v->repeats == 1 ? "" : "s", tells ? words->came_of : "");
    problems_text(&f->out, &v->problems);
    put_last_error(f);
    if (v->kind == VERDICT_HALT)
        put_next(f, arena_printf(f->arena, "End this run now: call no more tools, and %s.", words->stuck).at);
    else if (writes && repeated == REPEATED_RESULT)
        put_next(f, "It has run and what it did stands: do not repeat it. Change the arguments, use another "
                    "tool, or answer the user.");
    else
        put_next(f, words->next);
}

static void write_transient(struct feedback *f)
{
    const struct verdict *v = f->verdict;
    if (str_is(v->code, "too_soon") || str_is(v->code, "rate_limit")) {
        write_retry_budget(f);
        return;
    }
    put_failure(f);
    put_next(f, arena_printf(f->arena, "wait %lld s, then repeat the call.",
                             (long long)(v->after_s > 0 ? v->after_s : 1))
                    .at);
}

static void write_need_user_input(struct feedback *f)
{
    const struct verdict *v = f->verdict;
    const struct json *choices = v->choices;
    put_named(f, " needs the user's input.\n");
    if (v->detail.len || !v->quoted.len) {
        put(f, "Ask the user: " STR_FMT "\n", STR_ARG(foreign(f, v->detail)));
    } else {
        put(f, "It asks the user: ");
        put_quoted(f, v->quoted, FEEDBACK_QUOTE_MAX_BYTES);
        put(f, "\n");
    }
    if (json_is(choices, JSON_ARRAY) && choices->len) {
        put(f, "Choices: ");
        put_json(f, choices);
        put(f, "\n");
    }
    put_next(f, "Ask exactly that and wait for the answer; do not answer it yourself.");
    /* How the call can still be made. */
    if (v->approval.len)
        put(f,
            "Approval: the user, not you, may approve this call with `toolgate approve " STR_FMT
            "` within %u minutes. Once they have, make the same call again with the same arguments.\n",
            STR_ARG(v->approval), APPROVAL_MS / 60000u);
    else if (v->no_approval)
        put(f, "Nobody can approve this call now: %s.\n", v->no_approval);
}

/* The classes whose feedback is more than a headline and a next step. */
static void (*const writers[CLASS_COUNT])(struct feedback *f) = {
    [CLASS_TRANSIENT] = write_transient,
    [CLASS_INVALID_ARGUMENTS] = write_invalid_arguments,
    [CLASS_UNKNOWN_TOOL] = write_unknown_tool,
    [CLASS_RETRY_BUDGET] = write_retry_budget,
    [CLASS_LOOP] = write_loop,
    [CLASS_NEED_USER_INPUT] = write_need_user_input,
};

static void put_error(struct feedback *f)
{
    if (writers[f->verdict->class])
        writers[f->verdict->class](f);
    else if (error_class_info(f->verdict->class)->headline)
        put_failure(f);
}

static void begin(struct feedback *f, struct arena *arena)
{
    f->arena = arena;
    f->out = buf_in(arena);
    f->detail = f->hint = STR_NONE;
}

struct str feedback_text(struct arena *arena, struct feedback *f)
{
    const struct verdict *v = f->verdict;
    const struct problems *problems = &v->problems;
    size_t i = 0;
    begin(f, arena);
    put_error(f);
    /* One sentence for the verdict: the first problem, else the text's first line. */
    bool by_problem = v->class == CLASS_INVALID_ARGUMENTS || v->class == CLASS_SCHEMA_MISMATCH;
    while (i < problems->count && problems->list[i].warning)
        i++;
    if (i < problems->count && by_problem) {
        struct buf out = buf_in(arena);
        size_t more = problems->errors + problems->more - 1;
        problem_line(&out, &problems->list[i]);
        f->detail =
            arena_first_line(arena, str_from(buf_view(&out), strlen("- ")), FEEDBACK_DETAIL_MAX_BYTES);
        if (more)
            f->detail = arena_printf(arena, STR_FMT " (and %zu more)", STR_ARG(f->detail), more);
    } else {
        f->detail = arena_first_line(arena, buf_view(&f->out), FEEDBACK_DETAIL_MAX_BYTES);
    }
    put_new_name(f);
    return end_text(f);
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

static void note_change(struct feedback *f, const struct json *op)
{
    struct str pointer = json_str(json_get_text(op, "path"));
    struct str place = shown_path(f->arena, pointer);
    if (!pointer.len) {
        put(f, "Note: the arguments were read otherwise in many places.\n");
        return;
    }
    if (!str_is(json_str(json_get_text(op, "op")), "remove")) {
        struct str value = json_to_str(f->arena, json_get_text(op, "value"));
        put(f, "Note: '" STR_FMT "' was read as " STR_FMT ".\n", STR_ARG(place),
            STR_ARG(foreign(f, arena_truncate(f->arena, value, PROBLEM_GOT_MAX_BYTES))));
        return;
    }
    struct str old = last_step(pointer), parent = {pointer.at, pointer.len - old.len};
    for (uint32_t i = 0; i < f->verdict->changes->len;
         i++) { /* what adds it under a name that is spelled alike */
        const struct json *other = &f->verdict->changes->items[i];
        struct str added = json_str(json_get_text(other, "path")), name = last_step(added);
        struct str its_parent = {added.at, added.len - name.len};
        if (str_is(json_str(json_get_text(other, "op")), "add") && str_eq(its_parent, parent) &&
            schema_names_alike(old, name)) {
            put(f, "Note: '" STR_FMT "' was read as '" STR_FMT "'.\n", STR_ARG(place),
                STR_ARG(shown_path(f->arena, added)));
            return;
        }
    }
    put(f, "Note: '" STR_FMT "' was left out.\n", STR_ARG(place));
}

struct str feedback_advice(struct arena *arena, struct feedback *f)
{
    const struct verdict *v = f->verdict;
    const struct arguments *args = v->arguments;
    const struct json *changes = v->changes, *follow = v->follow_up;
    const struct ledger_limits *limits = f->tool->limits;
    size_t count = 0;
    begin(f, arena);
    put_new_name(f);
    if (v->as_sent) /* beside the result, which has the tool's own words */
        put_error(f);
    if (v->warning.len)
        put(f, "Note: " STR_FMT "\n", STR_ARG(foreign(f, v->warning)));
    if (v->compact_note.len)
        put(f, "Note: " STR_FMT "\n", STR_ARG(foreign(f, v->compact_note)));
    if (v->tries > 1)
        put(f, "Note: it took %u tries; the others failed temporarily.\n", v->tries);
    /* Plain JSON in a string is how some clients send every call: the model has nothing to do with it. */
    if (args && args->empty)
        put(f, "Note: the arguments arrived empty and were read as {}.\n");
    if (args && args->spelled)
        put(f, "Note: the arguments came as text that is no strict JSON, and were read as the object that it "
               "means: send a JSON object.\n");
    if (args && args->wrapper.len)
        put(f, "Note: the parameters were taken out of '" STR_FMT "': send them at the top level.\n",
            STR_ARG(foreign(f, arena_truncate(arena, args->wrapper, PROBLEM_GOT_MAX_BYTES))));
    for (uint32_t i = 0; changes && i < changes->len; i++) {
        /* A default that was filled in is no news: the tool's schema states it. */
        bool added = str_is(json_str(json_get_text(&changes->items[i], "op")), "add");
        if (!added && ++count <= FEEDBACK_REWRITES_MAX)
            note_change(f, &changes->items[i]);
    }
    if (count > FEEDBACK_REWRITES_MAX)
        put(f, "Note: and %zu more were changed or left out.\n", count - FEEDBACK_REWRITES_MAX);
    if (v->problems.count)
        problems_text(&f->out, &v->problems);
    if (v->blank && v->class == CLASS_OK)
        put(f, "Note: " STR_FMT " ran and returned nothing: that is its whole answer.\n",
            STR_ARG(foreign(f, f->name)));
    if (v->asked >= 2)
        put(f,
            "Note: asked %u times, and it is still under way. Wait %u s before you ask again, or do "
            "something else meanwhile.\n",
            v->asked, feedback_poll_wait_s(f->tool));
    else if (v->repeats >= 2)
        put(f,
            "Note: this call has given the same result %u times in a row. Use the result, or change the "
            "arguments.\n",
            v->repeats);
    else if (v->at_once)
        put(f, "Note: this same call was made %u times at once. One is enough.\n", v->at_once + 1);
    /* `would`: the session's budget or loop that is not enforced, because the call has no session or the mode
     * is shadow. */
    bool loops = str_is(v->would, "loop") || str_is(v->would, "cycle");
    if (loops && v->repeats < 2) {
        put(f, "Note: %s. Use the results you have.\n", loop_text(v->would));
    } else if (v->would.len && !loops) {
        struct budget budget = feedback_budget(f, v->would);
        put(f, "Note: %s. %s\n", budget.what, budget.next);
    }
    if (limits->effects == LEDGER_EFFECTS_WRITE && limits->same_call > 1 &&
        v->same_calls == limits->same_call && !v->would.len)
        put(f, "Note: this call changes something. With these arguments it will not run again this turn.\n");
    if (v->class == CLASS_PARTIAL_DATA) {
        put(f, "Note: this is not everything (" STR_FMT "): " STR_FMT ".\n", STR_ARG(foreign(f, v->code)),
            STR_ARG(foreign(f, v->detail)));
        f->hint = v->next_args ? STR_LIT("Call the tool again with next_args for the rest.")
                               : STR_LIT("Do not take it for everything there is.");
    }
    if (v->next_args) {
        put(f, "Next: for the rest call " STR_FMT " with ", STR_ARG(foreign(f, f->name)));
        put_json(f, v->next_args);
        put(f, "\n");
    }
    if (json_get_text(follow, "tool") && json_get_text(follow, "args")) {
        put(f, "Next: call " STR_FMT " with ", STR_ARG(foreign(f, json_str(json_get_text(follow, "tool")))));
        put_json(f, json_get_text(follow, "args"));
        put(f, "\n");
    }
    if (v->hint.len && !v->as_sent)
        put(f, "Hint: " STR_FMT "\n", STR_ARG(foreign(f, v->hint)));
    return end_text(f);
}
