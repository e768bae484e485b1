/* Writes an example's outcome: as lines for a terminal, as one line for a log, as JSON for a program. */
#include "gate/examples.h"

#include "json/write.h"

#define VALUE_MAX_BYTES     160u  /* of an expected or actual value */
#define LOG_SAID_MAX_BYTES  200u  /* of what the model reads, in the log line */
#define LOG_FAULT_MAX_BYTES 400u  /* of a policy error, in the log line; its end names the fix */
#define TERM_SAID_MAX_BYTES 4096u /* of what the model reads, on a terminal */

static struct str or_nothing(struct str s)
{
    return s.len ? s : STR_LIT("(nothing)");
}

/* The expected string is in `expected`; for `says` the whole feedback is written below, so there is no "got".
 */
static bool shows_got(const struct example_mismatch *m)
{
    return strcmp(m->field, "says") != 0;
}

static const char *why_schema_unknown(const struct example_outcome *o)
{
    return o->open ? "its upstream has not listed it, so the result is open: give its definition with "
                     "--tools FILE, as `toolgate tools --format mcp --socket PATH` prints it"
                   : "its schema is unknown, so all arguments are valid: give its definition with --tools, "
                     "or a 'schema' in the policy";
}

struct page {
    struct buf *out;
    int indent;
    const struct example_colours *colours;
};

/* "      gives     expected  pass\n" */
static void write_row(const struct page *p, const char *field, const char *word, const char *colour,
                      struct str value)
{
    struct str shown = str_cut(value, VALUE_MAX_BYTES);
    buf_printf(p->out, "%*s%-9s %s%-9s " STR_FMT "%s%s\n", p->indent, "", field, colour, word,
               STR_ARG(or_nothing(shown)), shown.len < value.len ? " …" : "", p->colours->plain);
}

static void write_mismatch(const struct page *p, const struct example_mismatch *m)
{
    const struct json_diff_result *changes = m->changes;
    for (size_t i = 0; changes && i < changes->count; i++) {
        const struct json_diff_line *line = &changes->lines[i];
        buf_printf(p->out, "%*s%-9s %s%c " STR_FMT "%s\n", p->indent, "", i ? "" : m->field,
                   line->sign == '-' ? p->colours->expected : p->colours->got, line->sign,
                   STR_ARG(line->text), p->colours->plain);
    }
    if (changes && changes->more)
        buf_printf(p->out, "%*s… and %zu more\n", p->indent + 10, "", changes->more);
    if (!changes)
        write_row(p, m->field, "expected", p->colours->expected, m->expected);
    if (!changes && shows_got(m))
        write_row(p, "", "got", p->colours->got, m->got);
}

/* A field that is as expected, or that the example does not state. */
static void write_match(const struct page *p, const struct example_outcome *o, const char *field,
                        struct str value)
{
    for (size_t i = 0; i < o->mismatch_count; i++)
        if (strcmp(o->mismatches[i].field, field) == 0)
            return;
    if (value.len)
        write_row(p, field, "got", p->colours->quiet, value);
}

static void write_matching_json(const struct page *p, const struct example_outcome *o, const char *field,
                                const struct json *value)
{
    struct buf text = {0};
    if (!value)
        return;
    json_write(&text, value);
    write_match(p, o, field, buf_view(&text));
    buf_clear(&text);
}

void examples_write_text(struct buf *out, const struct example_outcome *o, int indent, bool all,
                         const struct example_colours *colours)
{
    struct page page = {out, indent, colours};
    buf_printf(out, "%*s" STR_FMT ":%d\n", indent, "", STR_ARG(o->policy->file), o->example->line);
    for (size_t i = 0; i < o->mismatch_count; i++)
        write_mismatch(&page, &o->mismatches[i]);
    if (o->fault.len)
        buf_printf(out, "%*s%-9s %-9s " STR_FMT "\n", indent, "", "", "because", STR_ARG(o->fault));
    if (all) {
        write_match(&page, o, "gives", o->verdict);
        write_match(&page, o, "status", o->status);
        write_matching_json(&page, o, "becomes", o->arguments);
        write_matching_json(&page, o, "shows", o->shown);
    }
    struct str rest = str_cut(o->said, TERM_SAID_MAX_BYTES);
    buf_printf(page.out, "%*sthe model reads%s\n", page.indent, "", o->said.len ? "" : " nothing");
    while (rest.len) {
        const char *end = memchr(rest.at, '\n', rest.len);
        size_t len = end ? (size_t)(end - rest.at) : rest.len;
        buf_printf(page.out, "%*s%s%.*s%s\n", page.indent + 2, "", page.colours->quiet, (int)len, rest.at,
                   page.colours->plain);
        rest = str_from(rest, len + 1);
    }
    if (o->schema_unknown && !o->passed)
        buf_printf(out, "%*s%s\n", indent, "", why_schema_unknown(o));
}

/* Newlines become spaces, so that one line stays one line. */
static void write_flat(struct buf *out, struct str text, size_t max)
{
    struct str shown = str_cut(text, max);
    for (size_t i = 0; i < shown.len; i++)
        buf_byte(out, shown.at[i] == '\n' ? ' ' : shown.at[i]);
    buf_text(out, shown.len < text.len ? " …" : "");
}

static void write_flat_mismatch(struct buf *out, const struct example_mismatch *m)
{
    buf_printf(out, "%s: ", m->field);
    for (size_t i = 0; m->changes && i < m->changes->count; i++) {
        buf_printf(out, "%s%c ", i ? ", " : "", m->changes->lines[i].sign);
        write_flat(out, m->changes->lines[i].text, VALUE_MAX_BYTES);
    }
    if (m->changes)
        return;
    buf_text(out, "expected ");
    write_flat(out, m->expected, VALUE_MAX_BYTES);
    if (shows_got(m)) {
        buf_text(out, ", got ");
        write_flat(out, or_nothing(m->got), VALUE_MAX_BYTES);
    }
}

void examples_write_line(struct buf *out, const struct example_outcome *o)
{
    const char *quote = o->said.len ? "\"" : "";
    buf_printf(out, STR_FMT ":%d: %s '" STR_FMT "': ", STR_ARG(o->policy->file), o->example->line,
               o->sample ? "sample" : "example", STR_ARG(o->example->name));
    for (size_t i = 0; i < o->mismatch_count; i++) {
        buf_text(out, i ? "; " : "");
        write_flat_mismatch(out, &o->mismatches[i]);
    }
    if (o->fault.len) {
        buf_text(out, ", because ");
        write_flat(out, o->fault, LOG_FAULT_MAX_BYTES);
    }
    buf_printf(out, "; the model reads %s", quote);
    write_flat(out, or_nothing(o->said), LOG_SAID_MAX_BYTES);
    buf_text(out, quote);
    if (o->schema_unknown)
        buf_printf(out, "; %s", why_schema_unknown(o));
}

static void write_json_mismatch(struct json_out *out, const struct example_mismatch *m)
{
    json_open(out, '{');
    json_field_text(out, "field", m->field);
    json_field_str(out, "expected", m->expected);
    json_field_str(out, "got", m->got);
    if (m->changes) {
        json_field_open(out, "changes", '[');
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
    json_field_text(out, "kind", o->sample ? "sample" : "example");
    json_field_str(out, "tool", o->policy->name);
    json_field_str(out, "example", o->example->name);
    json_field_str(out, "file", o->policy->file);
    json_field_int(out, "line", o->example->line);
    json_field_bool(out, "passed", o->passed);
    if (o->open)
        json_field_bool(out, "open", true);
    json_field_open(out, "mismatches", '[');
    for (size_t i = 0; i < o->mismatch_count; i++)
        write_json_mismatch(out, &o->mismatches[i]);
    json_close(out, ']');
    json_field_str(out, "gives", o->verdict);
    json_field_optional_str(out, "fault", o->fault);
    json_field_str(out, "said", o->said);
    json_field(out, "arguments", o->arguments);
    json_field_optional(out, "shown", o->shown);
    json_field_int(out, "us", o->us);
    json_close(out, '}');
}
