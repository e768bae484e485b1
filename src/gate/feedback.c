/*
 * The feedback of a call that did not pass, and the notes beside a result. Most classes are a headline, what
 * the tool said and what to do next, from the class table; the writers of the others are here.
 */
#include "gate/feedback_writer.h"

#include "base/arena.h"
#include "gate/arguments.h"
#include "gate/feedback_budget.h"
#include "json/parse.h"
#include "json/write.h"

__attribute__((format(printf, 2, 3))) static void put(const struct feedback_writer *w, const char *format,
                                                      ...)
{
    va_list args;
    va_start(args, format);
    buf_str(w->out, arena_vprintf(w->arena, format, args));
    va_end(args);
}

static void put_new_name(const struct feedback_writer *w)
{
    if (!w->f->alias.len)
        return;
    if (w->out->len && w->out->at[w->out->len - 1] != '\n')
        put(w, "\n");
    put(w, "Note: '" STR_FMT "' is called '" STR_FMT "' now: use that name.\n", STR_ARG(w->f->alias),
        STR_ARG(w->f->name));
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
    json_write_string(w->out, cut);
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
        json_write(w->out, &value);
    else
        put_quoted(w, text, max);
    put(w, "\n");
}

static void put_next(const struct feedback_writer *w, const char *by_default)
{
    struct str hint = w->v->hint.len ? w->v->hint : str_of(by_default);
    put(w, "Next: " STR_FMT "\n", STR_ARG(hint));
}

/* "NAME HEADLINE (code): detail", or "NAME HEADLINE" if the headline is a whole sentence. */
static void put_headline(const struct feedback_writer *w, const char *headline)
{
    put(w, STR_FMT " %s", STR_ARG(w->f->name), headline);
    if (headline[strlen(headline) - 1] != '.') {
        if (w->v->code.len)
            put(w, " (" STR_FMT ")", STR_ARG(w->v->code));
        put(w, w->v->detail.len ? ": " STR_FMT : "." STR_FMT, STR_ARG(w->v->detail));
    }
    put(w, "\n");
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
    if (w->v->class == CLASS_TOOL_ERROR && w->v->same_failure >= LEDGER_SAME_FAILURE_NOTED)
        put(w,
            "It has failed %u times in a row with this error, whatever the arguments: other arguments "
            "will not help.\n",
            w->v->same_failure);
    if (w->v->class == CLASS_TRANSIENT && w->v->tries > 1)
        put(w, "toolgate tried it %u times.\n", w->v->tries);
    if (class->next)
        put_next(w, class->next);
}

static void put_guidance(const struct feedback_writer *w, const struct policy *policy)
{
    if (policy->use_when.len)
        put(w, "Use it when " STR_FMT "\n",
            STR_ARG(arena_first_line(w->arena, policy->use_when, FEEDBACK_DESCRIPTION_MAX_BYTES)));
    if (policy->avoid_when.len)
        put(w, "Avoid it when " STR_FMT "\n",
            STR_ARG(arena_first_line(w->arena, policy->avoid_when, FEEDBACK_DESCRIPTION_MAX_BYTES)));
    for (size_t i = 0; i < policy->rule_count; i++)
        put(w, "Rule: " STR_FMT "\n", STR_ARG(policy->rule_words[i]));
}

static void put_intent(const struct feedback_writer *w)
{
    const struct tool *tool = w->f->tool;
    if (tool->description.len)
        put(w, "Intent: " STR_FMT "\n",
            STR_ARG(arena_first_line(w->arena, tool->description, FEEDBACK_DESCRIPTION_MAX_BYTES)));
    const struct policy *policy;
    for (size_t i = 0; (policy = tool_enforced_policy(tool, &i));)
        put_guidance(w, policy);
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
        put(w, "|… (%u more)", values->len - PROBLEM_CHOICES_MAX);
    if (format.len)
        put(w, " " STR_FMT, STR_ARG(format));
}

static void put_parameters(const struct feedback_writer *w)
{
    const struct json *properties = json_get_text(w->f->tool->input, "properties");
    const struct json *required = json_get_text(w->f->tool->input, "required");
    if (!json_is(properties, JSON_OBJECT) || !properties->len) {
        put(w, "It takes no parameters.\n");
        return;
    }
    put(w, "Valid parameters:\n");
    for (uint32_t i = 0; i < properties->len && i < FEEDBACK_PARAMETERS_MAX; i++) {
        const struct json_member *p = &properties->members[i];
        struct str text = arena_first_line(w->arena, json_str(json_get_text(&p->value, "description")),
                                           FEEDBACK_DESCRIPTION_MAX_BYTES);
        put(w, "- " STR_FMT " (", STR_ARG(p->key));
        put_type(w, &p->value);
        put(w, "%s)%s" STR_FMT "\n", json_array_has(required, p->key) ? ", required" : "",
            text.len ? ": " : "", STR_ARG(text));
    }
    if (properties->len > FEEDBACK_PARAMETERS_MAX)
        put(w, "- and %u more\n", properties->len - FEEDBACK_PARAMETERS_MAX);
}

/* retry() of a policy that has run the tool, or of an agent that has: what ran may have had effects. */
static void put_retry(const struct feedback_writer *w)
{
    bool is_last = w->v->kind == VERDICT_REFUSE;
    put(w, STR_FMT " ran, and asks for another try: " STR_FMT "\n", STR_ARG(w->f->name),
        STR_ARG(w->v->detail));
    problems_text(w->out, &w->v->problems);
    if (is_last) {
        put(w, "That was attempt %u, and none are left this turn.\n", w->v->attempt);
        put(w, "Next: Ask the user for what is missing, use another tool, or answer with what you have.\n");
        return;
    }
    put_next(w, "change the arguments as it says, and call it again.");
    if (w->v->has_budget)
        put(w, "%u attempt%s left this turn.\n", w->v->attempts_left, plural(w->v->attempts_left));
}

void feedback_invalid_arguments(const struct feedback_writer *w)
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
            STR_ARG(w->f->name), w->v->attempt);
        problems_text(w->out, &w->v->problems);
        put_next(w,
                 "Ask the user for what is missing, use another tool, or answer with what you have. The tool "
                 "still works with correct arguments.");
        return;
    }
    put(w, STR_FMT " was not run: ", STR_ARG(w->f->name));
    if (count)
        put(w, "%zu problem%s with its arguments.\n", count, plural(count));
    else
        put(w, STR_FMT "\n", STR_ARG(w->v->detail));
    problems_text(w->out, &w->v->problems);
    if (count && w->v->detail.len)
        put(w, STR_FMT "\n", STR_ARG(w->v->detail));
    if (w->v->suggest) {
        put(w, "Suggested: ");
        json_write(w->out, w->v->suggest);
        put(w, "\n");
    }
    put_intent(w);
    put_parameters(w);
    if (w->v->hint.len)
        put(w, "Next: " STR_FMT " ", STR_ARG(w->v->hint));
    else
        put(w, "Next: correct %s and call " STR_FMT " again, the rest unchanged. ",
            count ? "the listed problems" : "the arguments", STR_ARG(w->f->name));
    if (w->v->has_budget)
        put(w, "%u attempt%s left this turn.\n", w->v->attempts_left, plural(w->v->attempts_left));
}

void feedback_unknown_tool(const struct feedback_writer *w)
{
    size_t count = w->f->suggestion_count;
    if (str_is(w->v->code, "call_forgotten")) {
        put(w, "The gateway no longer knows the call of this callId. Report it with its name and "
               "arguments.\n");
        return;
    }
    put(w, "There is no tool ");
    json_write_string(w->out, arena_truncate(w->arena, w->f->name, PROBLEM_GOT_MAX_BYTES));
    put(w, ".");
    for (size_t i = 0; i < count; i++)
        put(w, "%s'" STR_FMT "'",
            i == 0           ? " Did you mean "
            : i + 1 == count ? " or "
                             : ", ",
            STR_ARG(w->f->suggestions[i]));
    put(w, count ? "?\n" : "\n");
    put_next(w, "Call only tools from your list, by their exact names; if none fits, tell the user.");
}

void feedback_retry_budget(const struct feedback_writer *w)
{
    struct feedback_budget budget = feedback_budget_of(w->arena, w->v->code, w->v, w->f->tool);
    put(w, STR_FMT " was not run: %s.\n", STR_ARG(w->f->name), budget.what);
    put_next(w, budget.next);
}

/* The ledger ignores what a write returns: the same arguments are the same write. */
static bool compares_results(const struct tool *tool)
{
    return !tool || (!tool->limits.compare_arguments && tool->limits.effects != LEDGER_EFFECTS_WRITE &&
                     tool->limits.effects != LEDGER_EFFECTS_DESTRUCTIVE);
}

void feedback_loop(const struct feedback_writer *w)
{
    bool is_cycle = str_is(w->v->code, "cycle");
    if (w->v->kind == VERDICT_HALT) {
        put(w, "Stop. " STR_FMT " was not run: %s again and again.\n", STR_ARG(w->f->name),
            loop_text(w->v->code));
        put_next(w, "End this run now: call no more tools, and tell the user what you found and where you "
                    "are stuck.");
        return;
    }
    put(w, STR_FMT " was not run: ", STR_ARG(w->f->name));
    if (is_cycle)
        put(w, "%s, and the results have not changed.\n", loop_text(w->v->code));
    else
        put(w, "you have made this exact call %u time%s in a row%s.\n", w->v->repeats, plural(w->v->repeats),
            compares_results(w->f->tool) ? " and the result has not changed" : "");
    problems_text(w->out, &w->v->problems);
    put_next(
        w, "Use the result you already have. If it is not enough, change the arguments, use another tool, or "
           "answer the user.");
}

void feedback_transient(const struct feedback_writer *w)
{
    if (str_is(w->v->code, "too_soon") || str_is(w->v->code, "rate_limit")) {
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
    put(w,
        STR_FMT " was not run (ledger_unavailable): the gateway cannot count calls now, so it runs "
                "none, of any tool.\n",
        STR_ARG(w->f->name));
    put_next(w, "Call no tools for now. Answer with what you have, or tell the user that the tools are down "
                "and that the operator must check the gateway.");
}

void feedback_need_user_input(const struct feedback_writer *w)
{
    const struct json *choices = w->v->choices;
    put(w, STR_FMT " needs the user's input.\n", STR_ARG(w->f->name));
    if (w->v->detail.len || !w->v->quoted.len) {
        put(w, "Ask the user: " STR_FMT "\n", STR_ARG(w->v->detail));
    } else {
        put(w, "It asks the user: ");
        put_quoted(w, w->v->quoted, FEEDBACK_QUOTE_MAX_BYTES);
        put(w, "\n");
    }
    if (json_is(choices, JSON_ARRAY) && choices->len) {
        put(w, "Choices: ");
        json_write(w->out, choices);
        put(w, "\n");
    }
    put_next(w, "Ask exactly that and wait for the answer; do not answer it yourself.");
}

static void put_error(const struct feedback_writer *w)
{
    const struct error_class_info *class = error_class_info(w->v->class);
    if (class->write)
        class->write(w);
    else if (class->headline)
        put_failure(w);
}

struct str feedback_text(struct arena *arena, const struct feedback *feedback)
{
    struct buf out = buf_in(arena);
    struct feedback_writer w = {&out, arena, feedback, feedback->verdict};
    put_error(&w);
    put_new_name(&w);
    return end_text(&w);
}

/* "/a/b" as "a.b", cut. */
static struct str shown_path(struct arena *arena, struct str pointer)
{
    struct str shown = arena_dup(arena, arena_truncate(arena, str_from(pointer, 1), PROBLEM_GOT_MAX_BYTES));
    for (size_t i = 0; i < shown.len; i++)
        if (shown.at[i] == '/')
            ((char *)shown.at)[i] = '.'; /* our copy */
    return shown;
}

static struct str last_step(struct str pointer)
{
    size_t start = pointer.len;
    while (start > 0 && pointer.at[start - 1] != '/')
        start--;
    return str_from(pointer, start);
}

/* The operation that adds what `removed` took away, under a name that is spelled alike; NULL: none. */
static const struct json *added_as(const struct json *changes, struct str removed)
{
    struct str old = last_step(removed);
    for (uint32_t i = 0; i < changes->len; i++) {
        struct str pointer = json_str(json_get_text(&changes->items[i], "path"));
        struct str name = last_step(pointer);
        if (str_is(json_str(json_get_text(&changes->items[i], "op")), "add") &&
            pointer.len - name.len == removed.len - old.len &&
            memcmp(pointer.at, removed.at, removed.len - old.len) == 0 && schema_names_alike(old, name))
            return &changes->items[i];
    }
    return NULL;
}

static void note_change(const struct feedback_writer *w, const struct json *op)
{
    struct str pointer = json_str(json_get_text(op, "path"));
    struct str place = shown_path(w->arena, pointer);
    if (!str_is(json_str(json_get_text(op, "op")), "remove")) {
        struct str value = json_to_str(w->arena, json_get_text(op, "value"));
        put(w, "Note: '" STR_FMT "' was read as " STR_FMT ".\n", STR_ARG(place),
            STR_ARG(arena_truncate(w->arena, value, PROBLEM_GOT_MAX_BYTES)));
        return;
    }
    const struct json *renamed = added_as(w->v->changes, pointer);
    if (renamed)
        put(w, "Note: '" STR_FMT "' was read as '" STR_FMT "'.\n", STR_ARG(place),
            STR_ARG(shown_path(w->arena, json_str(json_get_text(renamed, "path")))));
    else
        put(w, "Note: '" STR_FMT "' was left out.\n", STR_ARG(place));
}

/* A default that was filled in is no news: the tool's schema states it. */
static void note_changes(const struct feedback_writer *w)
{
    const struct json *changes = w->v->changes;
    size_t count = 0;
    for (uint32_t i = 0; changes && i < changes->len; i++) {
        bool added = str_is(json_str(json_get_text(&changes->items[i], "op")), "add");
        if (!added && ++count <= FEEDBACK_REWRITES_MAX)
            note_change(w, &changes->items[i]);
    }
    if (count > FEEDBACK_REWRITES_MAX)
        put(w, "Note: and %zu more were changed or left out.\n", count - FEEDBACK_REWRITES_MAX);
}

/* Plain JSON in a string is how some clients send every call: the model has nothing to do with it. */
static void note_rewrites(const struct feedback_writer *w)
{
    const struct arguments *args = w->v->arguments;
    if (args && args->empty)
        put(w, "Note: the arguments arrived empty and were read as {}.\n");
    if (args && args->spelled)
        put(w, "Note: the arguments came as text that is no strict JSON, and were read as the object that it "
               "means: send a JSON object.\n");
    if (args && args->wrapper.len)
        put(w, "Note: the parameters were taken out of '" STR_FMT "': send them at the top level.\n",
            STR_ARG(arena_truncate(w->arena, args->wrapper, PROBLEM_GOT_MAX_BYTES)));
    note_changes(w);
}

static void note_repeats(const struct feedback_writer *w)
{
    const struct verdict *v = w->v;
    if (v->blank && v->class == CLASS_OK)
        put(w, "Note: " STR_FMT " ran and returned nothing: that is its whole answer.\n",
            STR_ARG(w->f->name));
    if (v->repeats >= 2)
        put(w,
            "Note: this call has given the same result %u times in a row. Use the result, or change "
            "the arguments.\n",
            v->repeats);
}

/* `would`: the session's budget or loop that is not enforced, because the call has no session or the mode is
 * shadow. */
static void note_budget(const struct feedback_writer *w)
{
    const struct verdict *v = w->v;
    const struct ledger_limits *limits = &w->f->tool->limits;
    bool loops = str_is(v->would, "loop") || str_is(v->would, "cycle");
    if (loops && v->repeats < 2) {
        put(w, "Note: %s. Use the results you have.\n", loop_text(v->would));
    } else if (v->would.len && !loops) {
        struct feedback_budget budget = feedback_budget_of(w->arena, v->would, v, w->f->tool);
        put(w, "Note: %s. %s\n", budget.what, budget.next);
    }
    if (limits->effects == LEDGER_EFFECTS_WRITE && limits->same_call > 1 &&
        v->same_calls == limits->same_call && !v->would.len)
        put(w, "Note: this call changes something. With these arguments it will not run again this "
               "turn.\n");
}

struct str feedback_advice(struct arena *arena, const struct feedback *feedback)
{
    struct buf out = buf_in(arena);
    struct feedback_writer w = {&out, arena, feedback, feedback->verdict};
    put_new_name(&w);
    if (w.v->as_sent) /* beside the result, which has the tool's own words */
        put_error(&w);
    if (w.v->warning.len)
        put(&w, "Note: " STR_FMT "\n", STR_ARG(w.v->warning));
    if (w.v->compact_note.len)
        put(&w, "Note: " STR_FMT "\n", STR_ARG(w.v->compact_note));
    if (w.v->tries > 1)
        put(&w, "Note: it took %u tries; the others failed temporarily.\n", w.v->tries);
    note_rewrites(&w);
    if (w.v->problems.count)
        problems_text(&out, &w.v->problems);
    note_repeats(&w);
    note_budget(&w);
    const struct json *follow = w.v->follow_up;
    if (w.v->class == CLASS_PARTIAL_DATA)
        put(&w, "Note: this is not everything (" STR_FMT "): " STR_FMT ".\n", STR_ARG(w.v->code),
            STR_ARG(w.v->detail));
    if (w.v->next_args) {
        put(&w, "Next: for the rest call " STR_FMT " with ", STR_ARG(w.f->name));
        json_write(w.out, w.v->next_args);
        put(&w, "\n");
    }
    if (json_get_text(follow, "tool") && json_get_text(follow, "args")) {
        put(&w, "Next: call " STR_FMT " with ", STR_ARG(json_str(json_get_text(follow, "tool"))));
        json_write(w.out, json_get_text(follow, "args"));
        put(&w, "\n");
    }
    if (w.v->hint.len && !w.v->as_sent)
        put(&w, "Hint: " STR_FMT "\n", STR_ARG(w.v->hint));
    return end_text(&w);
}
