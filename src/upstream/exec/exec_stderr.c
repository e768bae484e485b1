/*
 * See exec_stderr.h. A trace is known by its frames and its headline; a
 * message stands before the first frame of a block, or, Python's way, after
 * the last one. Of several errors that led to each other the last is told,
 * which each of these languages writes last.
 */
#include "upstream/exec/exec_stderr.h"

#include "base/arena.h"
#include "base/buf.h"

#include <ctype.h>

#define LINES_MAX 512u /* the last ones */

enum line_kind {
    LINE_TEXT,
    LINE_FRAME,    /* where in the program */
    LINE_HEADLINE, /* that frames follow */
    LINE_NOISE,    /* what a runtime says behind them */
    LINE_INDENTED  /* text, source code, or more of a message */
};

struct line {
    struct str text; /* without what it is indented by */
    enum line_kind kind;
};

/* ---- clean lines ---------------------------------------------------------------------------------- */

/* Bytes of an escape sequence of a terminal. */
static size_t escape_length(const char *at, const char *end)
{
    const char *p = at + 1;
    if (p < end && *p == '[') {
        for (p++; p < end && !isalpha((unsigned char)*p);)
            p++;
        return (size_t)(p - at) + (p < end);
    }
    return 1;
}

static struct str clean(struct arena *arena, struct str text)
{
    struct buf out = buf_in(arena);
    const char *end = text.at + text.len;
    for (const char *at = text.at; at < end;) {
        size_t n = str_utf8_length(at, end);
        if (*at == '\033')
            n = escape_length(at, end);
        else if (!n)
            buf_text(&out, "\xEF\xBF\xBD");
        else if (n > 1 || *at == '\n' || *at == '\t' || (unsigned char)*at >= ' ')
            buf_add(&out, at, n);
        at += n ? n : 1;
    }
    return buf_view(&out);
}

/* ---- frames --------------------------------------------------------------------------------------- */

static bool holds(struct str s, const char *text)
{
    return s.len && memmem(s.at, s.len, text, strlen(text)) != NULL;
}

/* "12" at the end, perhaps with ":5" or ")" behind. */
static bool ends_in_place(struct str s)
{
    while (s.len && (s.at[s.len - 1] == ')' || isdigit((unsigned char)s.at[s.len - 1])))
        s.len--;
    return s.len && s.at[s.len - 1] == ':';
}

static bool is_go_frame(struct str s)
{
    const char *plus = s.len ? memmem(s.at, s.len, ".go:", 4) : NULL;
    return plus && (ends_in_place(s) || holds(s, " +0x"));
}

/* `s` without its indent of `indent` bytes. */
static bool is_frame(struct str s, size_t indent)
{
    if (str_starts(s, "File \"") && holds(s, ", line "))
        return true; /* Python */
    if (indent && str_starts(s, "at ") &&
        (ends_in_place(s) || holds(s, "(") || holds(s, ":line ") || holds(s, " in ")))
        return true; /* Node, Java, .NET, Rust */
    if (indent && str_starts(s, "... ") && holds(s, " more"))
        return true; /* Java */
    if (s.len > 3 && s.at[0] == '#' && isdigit((unsigned char)s.at[1]) && memchr(s.at + 2, ' ', 2))
        return true; /* PHP, debuggers */
    if (str_starts(s, "from ") && holds(s, ":in "))
        return true; /* Ruby */
    return is_go_frame(s);
}

static bool starts_with_one(struct str s, const char *const *starts)
{
    while (*starts && !str_starts(s, *starts))
        starts++;
    return *starts != NULL;
}

static const char *const headlines[] = {"Traceback (most recent call last)",
                                        "During handling of the above exception",
                                        "The above exception was the direct cause",
                                        "goroutine ",
                                        "stack backtrace:",
                                        "Stack trace:",
                                        NULL};
static const char *const noise[] = {"[signal ",
                                    "note: run with `RUST_BACKTRACE",
                                    "note: Some details are omitted",
                                    "Node.js v",
                                    "node:internal/",
                                    "exit status ",
                                    "thrown in ",
                                    NULL};

static struct line line_of(struct str text)
{
    struct str s = str_trim(text);
    size_t indent = s.len ? (size_t)(s.at - text.at) : 0;
    if (is_frame(s, indent))
        return (struct line){s, LINE_FRAME};
    if (starts_with_one(s, headlines))
        return (struct line){s, LINE_HEADLINE};
    if (starts_with_one(s, noise))
        return (struct line){s, LINE_NOISE};
    return (struct line){s, indent ? LINE_INDENTED : LINE_TEXT};
}

static size_t split(struct arena *arena, struct str text, struct line **out)
{
    struct line *ring = ARENA_ARRAY(arena, struct line, LINES_MAX);
    size_t count = 0;
    while (text.len) {
        const char *end = memchr(text.at, '\n', text.len);
        size_t n = end ? (size_t)(end - text.at) : text.len;
        struct line line = line_of((struct str){text.at, n});
        if (line.text.len && count == LINES_MAX) {
            memmove(ring, ring + 1, (LINES_MAX - 1) * sizeof(*ring));
            count--;
        }
        if (line.text.len)
            ring[count++] = line;
        text = str_from(text, n + 1);
    }
    *out = ring;
    return count;
}

/* ---- the message of a trace ------------------------------------------------------------------------- */

static size_t count_kind(const struct line *lines, size_t count, enum line_kind kind)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        n += lines[i].kind == kind;
    return n;
}

static bool is_python(const struct line *lines, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (lines[i].kind == LINE_FRAME && str_starts(lines[i].text, "File \""))
            return true;
    return false;
}

/* Who writes "main.go:12: …" is no trace; two places are, or one and a headline, or one after its message. */
static bool is_trace(const struct line *lines, size_t count)
{
    size_t frames = count_kind(lines, count, LINE_FRAME);
    while (count && lines[count - 1].kind == LINE_NOISE)
        count--;
    return frames > 1 || (frames && count_kind(lines, count, LINE_HEADLINE)) || is_python(lines, count) ||
           (frames == 1 && count > 1 && lines[count - 1].kind == LINE_FRAME);
}

/* Python's: the first line after the last frame that is not its source code. */
static struct str after_frames(const struct line *lines, size_t count)
{
    size_t last = count;
    while (last > 0 && lines[last - 1].kind != LINE_FRAME)
        last--;
    for (size_t i = last; i < count; i++)
        if (lines[i].kind == LINE_TEXT)
            return lines[i].text;
    return STR_NONE;
}

/* The others': the last text that a frame, or a headline of frames, comes after. */
static struct str before_frames(const struct line *lines, size_t count)
{
    struct str found = STR_NONE, text = STR_NONE;
    for (size_t i = 0; i < count; i++) {
        if (lines[i].kind == LINE_TEXT)
            text = lines[i].text;
        else if ((lines[i].kind == LINE_FRAME || lines[i].kind == LINE_HEADLINE) && text.len) {
            found = text;
            text = STR_NONE;
            if (str_starts(found, "panic: ") || str_starts(found, "fatal error: "))
                break; /* Go's other lines are names of functions */
        }
    }
    return found.len ? found : text;
}

/* "Error: no such order": what stands before it says where, or that it was not caught. */
static struct str message_alone(struct str s)
{
    static const char *const starts[] = {"Caused by: ",
                                         "Unhandled exception. ",
                                         "PHP Fatal error:  Uncaught ",
                                         "Fatal error: Uncaught ",
                                         "panic: ",
                                         "Uncaught "};
    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
        if (str_starts(s, starts[i]))
            return str_from(s, strlen(starts[i]));
    const char *java = str_starts(s, "Exception in thread \"") ? memmem(s.at, s.len, "\" ", 2) : NULL;
    if (java)
        return str_from(s, (size_t)(java - s.at) + 2);
    const char *ruby = s.len ? memmem(s.at, s.len, "': ", 3) : NULL;
    if (ruby && holds((struct str){s.at, (size_t)(ruby - s.at)}, ":in "))
        return str_from(s, (size_t)(ruby - s.at) + 3);
    return s;
}

static struct str trace_message(const struct line *lines, size_t count)
{
    struct str s = is_python(lines, count) ? after_frames(lines, count) : before_frames(lines, count);
    return message_alone(s);
}

/* ---- all ------------------------------------------------------------------------------------------- */

static struct str last_lines(struct arena *arena, const struct line *lines, size_t count)
{
    struct buf out = buf_in(arena);
    size_t from = count > EXEC_QUOTE_LINES ? count - EXEC_QUOTE_LINES : 0;
    for (size_t i = from; i < count; i++) {
        if (i > from)
            buf_byte(&out, '\n');
        buf_str(&out, lines[i].text);
    }
    return buf_view(&out);
}

struct str exec_stderr_message(struct arena *arena, struct str text, bool *traced)
{
    struct line *lines;
    size_t count = split(arena, clean(arena, text), &lines);
    *traced = is_trace(lines, count);
    struct str said = *traced ? trace_message(lines, count) : last_lines(arena, lines, count);
    return str_cut(said, EXEC_QUOTE_BYTES);
}
