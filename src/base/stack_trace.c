/* Line by line; what says what went wrong stays. */
#include "base/stack_trace.h"

#include "base/arena.h"
#include "base/buf.h"

struct stack_lines {
    bool in_python; /* after "Traceback": indented lines belong to it */
    bool in_go;     /* after "goroutine 1 [running]:": all that follows does */
};

static bool has_place(struct str line)
{
    for (size_t i = 1; i + 1 < line.len; i++)
        if (line.at[i] == ':' && line.at[i + 1] >= '0' && line.at[i + 1] <= '9')
            return true;
    return memchr(line.at, '(', line.len) && line.at[line.len - 1] == ')';
}

/* "    at Object.open (node:fs:601:3)", "\tat java.lang.Thread.run(Thread.java:840)", "\t... 12 more" */
static bool is_frame(struct str line, struct str trimmed)
{
    bool is_indented = trimmed.len < line.len && (line.at[0] == ' ' || line.at[0] == '\t');
    bool is_more = str_starts(trimmed, "... ") && trimmed.len > 8 &&
                   memcmp(trimmed.at + trimmed.len - 5, " more", 5) == 0;
    return is_indented && (is_more || (str_starts(trimmed, "at ") && has_place(trimmed)));
}

static bool belongs(struct stack_lines *s, struct str line)
{
    struct str trimmed = str_trim(line);
    if (str_starts(trimmed, "Traceback (most recent call last)"))
        return s->in_python = true;
    if (str_starts(trimmed, "goroutine ") && trimmed.at[trimmed.len - 1] == ':')
        s->in_go = true;
    if (s->in_python && line.len && line.at[0] != ' ' && line.at[0] != '\t')
        s->in_python = false;
    return s->in_go || s->in_python || is_frame(line, trimmed);
}

struct str stack_trace_strip(struct arena *arena, struct str text)
{
    struct stack_lines lines = {false, false};
    struct buf out = buf_in(arena);
    bool found = false;
    for (size_t from = 0; from < text.len;) {
        const char *end = memchr(text.at + from, '\n', text.len - from);
        size_t len = end ? (size_t)(end - text.at) - from : text.len - from;
        struct str line = {text.at + from, len};
        from += len + 1;
        if (belongs(&lines, line)) {
            found = true;
            continue;
        }
        if (out.len)
            buf_byte(&out, '\n');
        buf_str(&out, line);
    }
    return found && out.len ? str_trim(buf_view(&out)) : text;
}
