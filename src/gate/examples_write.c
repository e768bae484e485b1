/* Writes an example's outcome as one line for a log; lua/cli/test.lua writes it for a terminal, and as JSON.
 */
#include "gate/examples.h"

#include "base/buf.h"

#define VALUE_MAX_BYTES     160u /* of an expected or actual value */
#define LOG_SAID_MAX_BYTES  200u /* of what the model reads, in the log line */
#define LOG_FAULT_MAX_BYTES 400u /* of a policy error, in the log line; its end names the fix */

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
