/* What an example expected and what it got: for a terminal, for a log, for a program. */
#include "gate/examples.h"

#include "json/write.h"

#define SAID_MAX_BYTES  200u  /* of what the model reads, in a log line */
#define FAULT_MAX_BYTES 400u  /* of how the policy broke: its end says what to do */
#define VALUE_MAX_BYTES 160u  /* of what was expected or found, in any line */
#define SHOWN_MAX_BYTES 4096u /* of what the model reads, for a person */

static void spaces(struct buf *out, int count)
{
    buf_printf(out, "%*s", count, "");
}

static struct str shortened(struct str s)
{
    return str_cut(s, VALUE_MAX_BYTES);
}

static struct str or_none(struct str s)
{
    return s.len ? s : STR_LIT("(nothing)");
}

/* ---- for a person ----------------------------------------------------------- */

struct page {
    struct buf *out;
    int indent;
    const struct example_colours *paint;
};

/* "      gives     expected  pass\n": the first line of a field has its name. */
static void row(const struct page *p, const char *field, const char *word, const char *colour,
                struct str value)
{
    struct str shown = shortened(value);
    spaces(p->out, p->indent);
    buf_printf(p->out, "%-9s %s%-9s " STR_FMT "%s%s\n", field, colour, word, STR_ARG(or_none(shown)),
               shown.len < value.len ? " …" : "", p->paint->plain);
}

static void change_rows(const struct page *p, const char *field, const struct json_diff_result *changes)
{
    for (size_t i = 0; i < changes->count; i++) {
        const struct json_diff_line *line = &changes->lines[i];
        spaces(p->out, p->indent);
        buf_printf(p->out, "%-9s %s%c " STR_FMT "%s\n", i ? "" : field,
                   line->sign == '-' ? p->paint->expected : p->paint->got, line->sign, STR_ARG(line->text),
                   p->paint->plain);
    }
    if (changes->more) {
        spaces(p->out, p->indent + 10);
        buf_printf(p->out, "… and %zu more\n", changes->more);
    }
}

static void mismatch_rows(const struct page *p, const struct example_mismatch *m)
{
    if (m->changes) {
        change_rows(p, m->field, m->changes);
        return;
    }
    row(p, m->field, "expected", p->paint->expected, m->expected);
    if (strcmp(m->field, "says") != 0) /* what was said stands below */
        row(p, "", "got", p->paint->got, m->got);
}

static bool is_mismatched(const struct example_outcome *o, const char *field)
{
    for (size_t i = 0; i < o->mismatch_count; i++)
        if (strcmp(o->mismatches[i].field, field) == 0)
            return true;
    return false;
}

static void value_row(const struct page *p, const struct example_outcome *o, const char *field,
                      const struct json *value)
{
    struct buf text = {0};
    if (!value || is_mismatched(o, field))
        return;
    json_write(&text, value);
    row(p, field, "got", p->paint->quiet, buf_view(&text));
    buf_clear(&text);
}

static void agreeing_rows(const struct page *p, const struct example_outcome *o)
{
    if (!is_mismatched(o, "gives"))
        row(p, "gives", "got", p->paint->quiet, o->verdict);
    if (o->status.len && !is_mismatched(o, "status"))
        row(p, "status", "got", p->paint->quiet, o->status);
    value_row(p, o, "becomes", o->arguments);
    value_row(p, o, "shows", o->shown);
}

static void said_rows(const struct page *p, struct str said)
{
    struct str rest = str_cut(said, SHOWN_MAX_BYTES);
    spaces(p->out, p->indent);
    buf_printf(p->out, "the model reads%s\n", said.len ? "" : " nothing");
    while (rest.len) {
        const char *end = memchr(rest.at, '\n', rest.len);
        size_t n = end ? (size_t)(end - rest.at) : rest.len;
        spaces(p->out, p->indent + 2);
        buf_printf(p->out, "%s%.*s%s\n", p->paint->quiet, (int)n, rest.at, p->paint->plain);
        rest = str_from(rest, n + 1);
    }
}

#define UNDEFINED                                                                                            \
    "its schema is not known here, so any arguments will do: give the tool's definition with --tools, or a " \
    "'schema' in the policy"

#define AWAITED                                                                                              \
    "its schema is its upstream's to tell, so this decides nothing: with --tools FILE, as `toolgate tools "  \
    "--format mcp --socket PATH` prints it, it is known here, too"

static const char *why_undefined(const struct example_outcome *o)
{
    return o->open ? AWAITED : UNDEFINED;
}

void examples_write_text(struct buf *out, const struct example_outcome *o, int indent, bool all,
                         const struct example_colours *paint)
{
    struct page page = {out, indent, paint};
    spaces(out, indent);
    buf_printf(out, STR_FMT ":%d\n", STR_ARG(o->policy->file), o->example->line);
    for (size_t i = 0; i < o->mismatch_count; i++)
        mismatch_rows(&page, &o->mismatches[i]);
    if (o->fault.len) { /* whole: its end says what to do */
        spaces(out, indent);
        buf_printf(out, "%-9s %-9s " STR_FMT "\n", "", "because", STR_ARG(o->fault));
    }
    if (all)
        agreeing_rows(&page, o);
    said_rows(&page, o->said);
    if (o->schema_unknown && !o->passed) {
        spaces(out, indent);
        buf_printf(out, "%s\n", why_undefined(o));
    }
}

/* ---- for a log ---------------------------------------------------------------- */

/* One line stays one line. */
static void flat(struct buf *out, struct str text, size_t most)
{
    struct str shown = str_cut(text, most);
    for (size_t i = 0; i < shown.len; i++)
        buf_byte(out, shown.at[i] == '\n' ? ' ' : shown.at[i]);
    buf_text(out, shown.len < text.len ? " …" : "");
}

static void flat_mismatch(struct buf *out, const struct example_mismatch *m)
{
    buf_printf(out, "%s: ", m->field);
    for (size_t i = 0; m->changes && i < m->changes->count; i++) {
        buf_printf(out, "%s%c ", i ? ", " : "", m->changes->lines[i].sign);
        flat(out, m->changes->lines[i].text, VALUE_MAX_BYTES);
    }
    if (m->changes)
        return;
    buf_text(out, "expected ");
    flat(out, m->expected, VALUE_MAX_BYTES);
    if (strcmp(m->field, "says") != 0) {
        buf_text(out, ", got ");
        flat(out, or_none(m->got), VALUE_MAX_BYTES);
    }
}

void examples_write_line(struct buf *out, const struct example_outcome *o)
{
    buf_printf(out, STR_FMT ":%d: %s '" STR_FMT "': ", STR_ARG(o->policy->file), o->example->line,
               o->sample ? "sample" : "example", STR_ARG(o->example->name));
    for (size_t i = 0; i < o->mismatch_count; i++) {
        buf_text(out, i ? "; " : "");
        flat_mismatch(out, &o->mismatches[i]);
    }
    if (o->fault.len) {
        buf_text(out, ", because ");
        flat(out, o->fault, FAULT_MAX_BYTES);
    }
    buf_text(out, "; the model reads ");
    if (o->said.len)
        buf_byte(out, '"');
    flat(out, or_none(o->said), SAID_MAX_BYTES);
    if (o->said.len)
        buf_byte(out, '"');
    if (o->schema_unknown)
        buf_printf(out, "; %s", why_undefined(o));
}

/* ---- for a program -------------------------------------------------------------- */

static void put_str(struct json_out *out, const char *key, struct str value)
{
    json_key(out, key);
    json_put_str(out, value);
}

static void put_mismatch(struct json_out *out, const struct example_mismatch *m)
{
    json_open(out, '{');
    json_key(out, "field");
    json_put_text(out, m->field);
    put_str(out, "expected", m->expected);
    put_str(out, "got", m->got);
    if (m->changes) {
        json_key(out, "changes");
        json_open(out, '[');
        for (size_t i = 0; i < m->changes->count; i++) {
            struct buf line = {0};
            buf_printf(&line, "%c " STR_FMT, m->changes->lines[i].sign, STR_ARG(m->changes->lines[i].text));
            json_put_str(out, buf_view(&line));
            buf_clear(&line);
        }
        json_close(out, ']');
    }
    json_close(out, '}');
}

void examples_write_json(struct buf *buf, const struct example_outcome *o)
{
    struct json_out writer = json_out(buf), *out = &writer;
    json_open(out, '{');
    json_key(out, "kind");
    json_put_text(out, o->sample ? "sample" : "example");
    put_str(out, "tool", o->policy->name);
    put_str(out, "example", o->example->name);
    put_str(out, "file", o->policy->file);
    json_key(out, "line");
    json_put_int(out, o->example->line);
    json_key(out, "passed");
    json_put_bool(out, o->passed);
    if (o->open) {
        json_key(out, "open");
        json_put_bool(out, true);
    }
    json_key(out, "mismatches");
    json_open(out, '[');
    for (size_t i = 0; i < o->mismatch_count; i++)
        put_mismatch(out, &o->mismatches[i]);
    json_close(out, ']');
    put_str(out, "gives", o->verdict);
    if (o->fault.len)
        put_str(out, "fault", o->fault);
    put_str(out, "said", o->said);
    json_key(out, "arguments");
    json_put(out, o->arguments);
    if (o->shown) {
        json_key(out, "shown");
        json_put(out, o->shown);
    }
    json_key(out, "us");
    json_put_int(out, o->us);
    json_close(out, '}');
}
