/* The parts that refusals and notes share. */
#include "gate/feedback_writer.h"

#include "base/arena.h"

void feedback_put(const struct feedback_writer *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    buf_str(w->out, arena_vprintf(w->arena, format, args));
    va_end(args);
}

void feedback_put_new_name(const struct feedback_writer *w)
{
    if (!w->f->alias.len)
        return;
    if (w->out->len && w->out->at[w->out->len - 1] != '\n')
        feedback_put(w, "\n");
    feedback_put(w, "Note: '" STR_FMT "' is called '" STR_FMT "' now: use that name.\n", STR_ARG(w->f->alias),
                 STR_ARG(w->f->name));
}

const char *feedback_loop_text(struct str code)
{
    return str_is(code, "cycle") ? "you are repeating the same few calls"
                                 : "you are repeating this exact call";
}

struct str feedback_end(const struct feedback_writer *w)
{
    struct str text = buf_view(w->out);
    while (text.len && text.at[text.len - 1] == '\n')
        text.len--;
    return text;
}
