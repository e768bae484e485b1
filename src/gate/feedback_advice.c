/* Notes beside a result: what was changed of the arguments, what is missing of the result, what to do next.
 */
#include "gate/feedback_writer.h"

#include "base/arena.h"
#include "gate/feedback_budget.h"
#include "json/write.h"

static void note_rewrite(const struct feedback_writer *w, const struct json *op)
{
    struct str pointer = json_str(json_get_text(op, "path"));
    struct str shown = str_cut(pointer, PROBLEM_GOT_MAX_BYTES);
    feedback_put(w, "Note: '");
    for (size_t i = 1; i < shown.len; i++) /* "/a/b" as "a.b" */
        buf_byte(w->out, shown.at[i] == '/' ? '.' : shown.at[i]);
    if (shown.len < pointer.len)
        buf_text(w->out, "…");
    if (str_is(json_str(json_get_text(op, "op")), "remove")) {
        feedback_put(w, "' was left out.\n");
        return;
    }
    struct buf value = buf_in(w->arena);
    json_write(&value, json_get_text(op, "value"));
    feedback_put(w, "' was read as " STR_FMT ".\n",
                 STR_ARG(arena_truncate(w->arena, buf_view(&value), PROBLEM_GOT_MAX_BYTES)));
}

/* A default that was filled in is no news: the tool's schema states it. */
static void note_rewrites(const struct feedback_writer *w)
{
    const struct json *rewrites = w->v->rewrites;
    size_t count = 0;
    for (uint32_t i = 0; rewrites && i < rewrites->len; i++) {
        bool filled_in = str_is(json_str(json_get_text(&rewrites->items[i], "op")), "add");
        if (!filled_in && ++count <= FEEDBACK_REWRITES_MAX)
            note_rewrite(w, &rewrites->items[i]);
    }
    if (count > FEEDBACK_REWRITES_MAX)
        feedback_put(w, "Note: and %zu more were changed or left out.\n", count - FEEDBACK_REWRITES_MAX);
}

static void note_repeats(const struct feedback_writer *w)
{
    const struct verdict *v = w->v;
    if (v->blank && v->class == CLASS_OK)
        feedback_put(w, "Note: " STR_FMT " ran and returned nothing: that is its whole answer.\n",
                     STR_ARG(w->f->name));
    if (v->repeats >= 2)
        feedback_put(w,
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
        feedback_put(w, "Note: %s. Use the results you have.\n", feedback_loop_text(v->would));
    } else if (v->would.len && !loops) {
        struct feedback_budget budget = feedback_budget_of(w->arena, v->would, v, w->f->tool);
        feedback_put(w, "Note: %s. %s\n", budget.what, budget.next);
    }
    if (limits->writes && limits->same_call > 1 && v->same_calls == limits->same_call && !v->would.len)
        feedback_put(w, "Note: this call changes something. With these arguments it will not run again this "
                        "turn unless its result is new.\n");
}

struct str feedback_advice(struct arena *arena, const struct feedback *feedback)
{
    struct buf out = buf_in(arena);
    struct feedback_writer w = {&out, arena, feedback, feedback->verdict};
    feedback_put_new_name(&w);
    if (w.v->warning.len)
        feedback_put(&w, "Note: " STR_FMT "\n", STR_ARG(w.v->warning));
    if (w.v->compact_note.len)
        feedback_put(&w, "Note: " STR_FMT "\n", STR_ARG(w.v->compact_note));
    if (w.v->tries > 1)
        feedback_put(&w, "Note: it took %u tries; the others failed temporarily.\n", w.v->tries);
    note_rewrites(&w);
    if (w.v->problems.count)
        problems_text(&out, &w.v->problems);
    note_repeats(&w);
    note_budget(&w);
    const struct json *follow = w.v->follow_up;
    if (w.v->class == CLASS_PARTIAL_DATA)
        feedback_put(&w, "Note: this is not everything (" STR_FMT "): " STR_FMT ".\n", STR_ARG(w.v->code),
                     STR_ARG(w.v->detail));
    if (w.v->next_args) {
        feedback_put(&w, "Next: for the rest call " STR_FMT " with ", STR_ARG(w.f->name));
        json_write(w.out, w.v->next_args);
        feedback_put(&w, "\n");
    }
    if (json_get_text(follow, "tool") && json_get_text(follow, "args")) {
        feedback_put(&w, "Next: call " STR_FMT " with ", STR_ARG(json_str(json_get_text(follow, "tool"))));
        json_write(w.out, json_get_text(follow, "args"));
        feedback_put(&w, "\n");
    }
    if (w.v->hint.len)
        feedback_put(&w, "Hint: " STR_FMT "\n", STR_ARG(w.v->hint));
    return feedback_end(&w);
}
