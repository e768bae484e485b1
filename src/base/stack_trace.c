/* Line by line, against two tables of patterns; see stack_trace.h. */
#include "base/stack_trace.h"

#include "base/buf.h"

/* For str_glob, against the trimmed line. */
static const struct {
    bool is_indented;
    const char *pattern;
} frames[] = {
    {true, "File \"*\", line *"},         /* Python */
    {true, "at *(*)"},                    /* Node, Java, .NET */
    {true, "at *(*) in *"},               /* .NET */
    {true, "at *:*:*"},                   /* Node, Rust */
    {true, "... * more"},                 /* Java */
    {true, "from *:in *"},                /* Ruby */
    {true, "*.go:*"},                     /* Go */
    {false, "#? *(*): *"},                /* PHP */
    {false, "#?? *(*): *"},               /* PHP */
    {false, "#* [internal function]: *"}, /* PHP */
    {false, "#* {main}"},                 /* PHP */
    {false, "#* 0x* in *"},               /* debuggers */
};

static const char *const headers[] = {"Traceback (most recent call last)*",
                                      "During handling of the above exception*",
                                      "The above exception was the direct cause*",
                                      "goroutine *:",
                                      "stack backtrace:*",
                                      "Stack trace:*"};

static bool is_indented(struct str line)
{
    return line.len && (line.at[0] == ' ' || line.at[0] == '\t');
}

bool stack_trace_is_frame(struct str line)
{
    struct str trimmed = str_trim(line);
    for (size_t i = 0; i < sizeof(frames) / sizeof(*frames); i++)
        if ((!frames[i].is_indented || is_indented(line)) && str_glob(str_of(frames[i].pattern), trimmed))
            return true;
    return false;
}

bool stack_trace_is_header(struct str line)
{
    struct str trimmed = str_trim(line);
    for (size_t i = 0; i < sizeof(headers) / sizeof(*headers); i++)
        if (str_glob(str_of(headers[i]), trimmed))
            return true;
    return false;
}

struct str stack_trace_strip(struct arena *arena, struct str text)
{
    struct buf out = buf_in(arena);
    bool found = false, in_trace = false, in_go = false;
    for (struct str rest = text; rest.len;) {
        struct str line = str_split(&rest, '\n');
        bool is_header = stack_trace_is_header(line);
        in_go |= is_header && str_starts(str_trim(line), "goroutine "); /* its frames fill the rest */
        in_trace = is_header || (in_trace && is_indented(line));
        if (in_go || in_trace || stack_trace_is_frame(line)) {
            found = true;
            continue;
        }
        if (out.len)
            buf_byte(&out, '\n');
        buf_str(&out, line);
    }
    return found && out.len ? str_trim(buf_view(&out)) : text;
}
