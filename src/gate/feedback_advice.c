/*
 * Notes beside a result that passes: what was changed of the arguments, what
 * is missing of the result, what to do next. Each says one thing, and only
 * where it is news.
 */
#include "gate/feedback_internal.h"

#include "base/arena.h"
#include "gate/feedback_budget.h"
#include "json/write.h"

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
    feedback_put(w, "Note: '");
    say_pointer(w, json_str(json_get_text(op, "path")));
    if (str_is(json_str(json_get_text(op, "op")), "remove")) {
        feedback_put(w, "' was left out.\n");
        return;
    }
    struct buf text = buf_in(w->arena);
    json_write(&text, json_get_text(op, "value"));
    feedback_put(w, "' was read as " STR_FMT ".\n",
                 STR_ARG(arena_truncate(w->arena, buf_view(&text), PROBLEM_GOT_MAX_BYTES)));
}

static void advise_rewrites(const struct words *w)
{
    const struct json *rewrites = w->v->rewrites;
    size_t news = 0;
    for (uint32_t i = 0; rewrites && i < rewrites->len; i++)
        if (is_news(&rewrites->items[i]) && ++news <= FEEDBACK_REWRITES_MAX)
            say_rewrite(w, &rewrites->items[i]);
    if (news > FEEDBACK_REWRITES_MAX)
        feedback_put(w, "Note: and %zu more were changed or left out.\n", news - FEEDBACK_REWRITES_MAX);
}

/* Nothing to read looks like a call that went wrong. */
static void advise_blank(const struct words *w)
{
    if (w->v->blank && w->v->class == CLASS_OK)
        feedback_put(w, "Note: " STR_FMT " ran, and gave back nothing to read: that is its whole answer.\n",
                     STR_ARG(w->f->name));
}

static void advise_repeats(const struct words *w)
{
    if (w->v->repeats >= 2)
        feedback_put(
            w,
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
        feedback_put(w, "Note: %s. Use the results you have.\n", feedback_loop_text(would));
    else if (would.len && !loops) {
        struct budget budget = feedback_budget_of(w->arena, would, w->v, w->f->tool);
        feedback_put(w, "Note: %s. %s\n", budget.what, budget.next);
    }
}

/* What writes is told beforehand that it will not be done again. */
static void advise_last_write(const struct words *w)
{
    const struct ledger_limits *limits = &w->f->tool->limits;
    if (limits->writes && limits->same_call > 1 && w->v->same_calls == limits->same_call && !w->v->would.len)
        feedback_put(
            w, "Note: this call changes something. With these arguments it will not be run again this turn, "
               "unless it brings something new now.\n");
}

static void advise_next(const struct words *w)
{
    const struct json *follow = w->v->follow_up;
    if (w->v->class == CLASS_PARTIAL_DATA)
        feedback_put(w, "Note: this is not everything (" STR_FMT "): " STR_FMT ".\n", STR_ARG(w->v->code),
                     STR_ARG(w->v->detail));
    if (w->v->next_args) {
        feedback_put(w, "Next: for the rest call " STR_FMT " with ", STR_ARG(w->f->name));
        feedback_put_json(w, w->v->next_args);
        feedback_put(w, "\n");
    }
    if (json_get_text(follow, "tool") && json_get_text(follow, "args")) {
        feedback_put(w, "Next: call " STR_FMT " with ", STR_ARG(json_str(json_get_text(follow, "tool"))));
        feedback_put_json(w, json_get_text(follow, "args"));
        feedback_put(w, "\n");
    }
    if (w->v->hint.len)
        feedback_put(w, "Hint: " STR_FMT "\n", STR_ARG(w->v->hint));
}

struct str feedback_advice(struct arena *arena, const struct feedback *feedback)
{
    struct buf out = buf_in(arena);
    struct words w = {&out, arena, feedback, feedback->verdict};
    feedback_put_new_name(&w);
    if (w.v->warning.len)
        feedback_put(&w, "Note: " STR_FMT "\n", STR_ARG(w.v->warning));
    if (w.v->compact_note.len)
        feedback_put(&w, "Note: " STR_FMT "\n", STR_ARG(w.v->compact_note));
    if (w.v->tries > 1)
        feedback_put(&w, "Note: it took %u tries; those before failed for a moment only.\n", w.v->tries);
    advise_rewrites(&w);
    if (w.v->problems.count)
        problems_text(&out, &w.v->problems);
    advise_blank(&w);
    advise_repeats(&w);
    advise_budget(&w);
    advise_last_write(&w);
    advise_next(&w);
    return feedback_end(&out);
}
