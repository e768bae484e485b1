/* One walk over the characters of a text; what is done with one that is hidden depends on the reader. */
#include "base/printable.h"

#include "base/arena.h"

#define ASCII_END 0x80u

struct range {
    uint32_t first, last;
    const char *kind; /* of what is invisible in data; NULL: it has a use in data */
};

/* Sorted. Variation selectors of emoji stay, and joiners where walk_read says so. */
static const struct range hidden[] = {
    {0x00, 0x1f, NULL},                /* C0 */
    {0x7f, 0x9f, NULL},                /* DEL, C1 */
    {0xad, 0xad, NULL},                /* SOFT HYPHEN */
    {0x61c, 0x61c, NULL},              /* ARABIC LETTER MARK */
    {0x180e, 0x180e, "zero_width"},    /* an invisible separator */
    {0x200b, 0x200d, "zero_width"},    /* another, and the joiners */
    {0x200e, 0x200f, NULL},            /* marks of direction */
    {0x2028, 0x2029, NULL},            /* line separators */
    {0x202a, 0x202e, "bidirectional"}, /* embeddings and overrides */
    {0x2060, 0x2065, "zero_width"},    /* word joiner, invisible operators */
    {0x2066, 0x2069, "bidirectional"}, /* isolates */
    {0x206a, 0x206f, "zero_width"},
    {0xfeff, 0xfeff, "zero_width"}, /* byte order mark */
    {0xfff9, 0xfffb, "zero_width"}, /* interlinear annotations */
    {0xe0000, 0xe0fff, "tags"},     /* tags, and variation selectors that can carry a text */
};

/* NULL: the character is visible. */
static const struct range *hidden_range(uint32_t c)
{
    for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
        if (c <= hidden[i].last)
            return c >= hidden[i].first ? &hidden[i] : NULL;
    return NULL;
}

/* ZERO WIDTH NON-JOINER and JOINER */
static bool is_joiner(uint32_t c)
{
    return c == 0x200c || c == 0x200d;
}

/* Reads the next character of a text; `length` is 0 for a byte that is not UTF-8. */
struct walk {
    const char *at, *end;
    uint32_t c, before; /* `before`: the last visible character; 0: none, or a joiner */
    size_t length;
    const struct range *hidden; /* NULL: it is visible here */
};

static struct walk walk_of(struct str text)
{
    const char *at = text.at ? text.at : "";
    return (struct walk){.at = at, .end = at + text.len};
}

static uint32_t decode(const char *at, size_t length)
{
    unsigned char first = (unsigned char)at[0];
    uint32_t c = length == 1 ? first : first & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; i++)
        c = c << 6 | ((unsigned char)at[i] & 0x3f);
    return c;
}

static bool walk_read(struct walk *w)
{
    if (w->at >= w->end)
        return false;
    w->length = str_utf8_length(w->at, w->end);
    w->c = w->length ? decode(w->at, w->length) : (unsigned char)*w->at;
    w->hidden = is_joiner(w->c) && w->before >= ASCII_END ? NULL : hidden_range(w->c);
    w->before = w->hidden || is_joiner(w->c) ? 0 : w->c;
    return true;
}

static void walk_next(struct walk *w)
{
    w->at += w->length ? w->length : 1;
}

/* How many bytes at the front are ASCII that is written as it is: nearly always all of them. */
static size_t plain_ascii(const char *at, const char *end)
{
    const char *from = at;
    const uint64_t ones = 0x0101010101010101u;
    for (uint64_t word; end - at >= 8; at += 8) { /* a carry between bytes only ends the loop early */
        memcpy(&word, at, 8);
        if (((word - ones * ' ') | (word + ones) | word) & ones << 7)
            break;
    }
    while (at < end && *at >= ' ' && *at < 0x7f)
        at++;
    return (size_t)(at - from);
}

/* Reads the next character that is not plain ASCII; the run before it goes to `out` (may be NULL). */
static bool walk_read_special(struct walk *w, struct buf *out)
{
    struct str run = {w->at, plain_ascii(w->at, w->end)};
    w->at += run.len;
    if (run.len)
        w->before = (unsigned char)run.at[run.len - 1];
    if (out)
        buf_str(out, run);
    return walk_read(w);
}

/* What JSON text, and a text of several lines, may have. */
static bool is_space(uint32_t c)
{
    return c == '\n' || c == '\t' || c == '\r';
}

static void write_escaped(struct buf *out, struct str text, bool json)
{
    for (struct walk w = walk_of(text); walk_read_special(&w, out); walk_next(&w)) {
        if (is_space(w.c) && (json || w.c != '\r')) /* in JSON text it stands between values */
            buf_byte(out, ' ');
        else if (w.length && !w.hidden)
            buf_add(out, w.at, w.length);
        else if (!json)
            buf_printf(out, w.length && w.c >= ASCII_END ? "\\u{%x}" : "\\x%02x", (unsigned)w.c);
        else if (w.c > 0xffff) /* a surrogate pair */
            buf_printf(out, "\\u%04x\\u%04x", 0xd7c0u + (unsigned)(w.c >> 10),
                       0xdc00u + (unsigned)(w.c & 0x3ff));
        else
            buf_printf(out, "\\u%04x", w.length ? (unsigned)w.c : 0xfffdu);
    }
}

void printable_write(struct buf *out, struct str text)
{
    write_escaped(out, text, false);
}

void printable_write_json(struct buf *out, struct str json)
{
    write_escaped(out, json, true);
}

void printable_write_lines(struct buf *out, struct str text)
{
    while (str_has(text, '\n')) {
        printable_write(out, str_split(&text, '\n'));
        buf_byte(out, '\n');
    }
    printable_write(out, text);
}

bool printable_is_plain(struct str text)
{
    for (struct walk w = walk_of(text); walk_read_special(&w, NULL); walk_next(&w))
        if (!w.length || w.hidden)
            return false;
    return true;
}

struct str printable_line(struct arena *arena, struct str text)
{
    struct buf out = buf_in(arena);
    if (printable_is_plain(text))
        return text;
    printable_write(&out, text);
    return buf_view(&out);
}

void printable_write_cut(struct buf *out, struct str text, size_t max)
{
    struct str shown = str_cut(text, max);
    printable_write(out, shown);
    if (shown.len < text.len)
        buf_text(out, "…");
}

/* The controls that a text may have for its lines are no secret. */
static bool is_secret(const struct walk *w)
{
    return w->hidden && w->length && !is_space(w->c);
}

size_t printable_count_hidden(struct str text)
{
    size_t count = 0;
    for (struct walk w = walk_of(text); walk_read_special(&w, NULL); walk_next(&w))
        count += is_secret(&w);
    return count;
}

void printable_strip(struct buf *out, struct str text)
{
    for (struct walk w = walk_of(text); walk_read_special(&w, out); walk_next(&w))
        if (!is_secret(&w))
            buf_add(out, w.at, w.length ? w.length : 1);
}

/* ---- data ---- */

#define BLACK_FLAG 0x1f3f4u
#define CANCEL_TAG 0xe007fu
#define TAGS_FIRST 0xe0020u

/* A flag of a region is U+1F3F4, tags of its code, CANCEL TAG: the bytes of the tags; 0: it is not one. */
static size_t flag_tags(const char *at, const char *end)
{
    const char *from = at;
    for (int tags = 0; tags < 8 && at < end; tags++) {
        size_t length = str_utf8_length(at, end);
        uint32_t c = length == 4 ? decode(at, length) : 0;
        if (c < TAGS_FIRST || c > CANCEL_TAG)
            return 0;
        at += length;
        if (c == CANCEL_TAG)
            return (size_t)(at - from);
    }
    return 0;
}

/* At an invisible character, or at the end: then NULL. */
static const char *walk_to_invisible(struct walk *w)
{
    for (; walk_read_special(w, NULL); walk_next(w)) {
        if (w->hidden && w->hidden->kind)
            return w->hidden->kind;
        if (w->c == BLACK_FLAG)
            w->at += flag_tags(w->at + w->length, w->end);
    }
    return NULL;
}

const char *printable_find_invisible(struct str text)
{
    struct walk w = walk_of(text);
    return walk_to_invisible(&w);
}

void printable_strip_invisible(struct buf *out, struct str text)
{
    struct walk w = walk_of(text);
    const char *from = w.at;
    while (walk_to_invisible(&w)) {
        buf_add(out, from, (size_t)(w.at - from));
        walk_next(&w);
        from = w.at;
    }
    buf_add(out, from, (size_t)(w.end - from));
}

/* ---- Letters without their marks: by Unicode's decomposition, U+00C0 to U+024F and U+1E00 to U+1EFF, and
 * the few of them that it leaves whole; '.': none. A library would have more letters, and another name for
 * them in its next version. ---- */

static const char marked[] =
    "AAAAAAACEEEEIIII.NOOOOO.OUUUUY.saaaaaaaceeeeiiii.nooooo.ouuuuy.yAaAaAaCcCcCcCcDd"
    "DdEeEeEeEeEeGgGgGgGgHh..IiIiIiIiIi..JjKk.LlLlLl..LlNnNnNn...OoOoOoOoRrRrRrSsSsSs"
    "SsTtTt..UuUuUuUuUuUuWwYyYZzZzZzs................................Oo.............U"
    "u............................AaIiOoUuUuUuUuUu.AaAa....GgKkOoOo..j...Gg..NnAa...."
    "AaAaEeEeIiIiOoOoRrRrUuUuSsTt..Hh......AaEeOoOoOoOoYy............................";
static const char marked_more[] =
    "AaBbBbBbCcDdDdDdDdDdEeEeEeEeEeFfGgHhHhHhHhHhIiIiKkKkKkLlLlLlLlMmMmMmNnNnNnNnOoOo"
    "OoOoPpPpRrRrRrRrSsSsSsSsSsTtTtTtTtUuUuUuUuUuVvVvWwWwWwWwWwXxXxYyZzZzZzhtwy.s...."
    "AaAaAaAaAaAaAaAaAaAaAaAaEeEeEeEeEeEeEeEeIiIiOoOoOoOoOoOoOoOoOoOoOoOoUuUuUuUuUuUu"
    "UuYyYyYyYy......";

static char unmarked(uint32_t c)
{
    if (c < ASCII_END)
        return (char)c;
    if (c >= 0xc0 && c - 0xc0 < sizeof(marked) - 1)
        return marked[c - 0xc0];
    return c >= 0x1e00 && c - 0x1e00 < sizeof(marked_more) - 1 ? marked_more[c - 0x1e00] : '.';
}

void printable_write_name(struct buf *out, struct str text)
{
    for (struct walk w = walk_of(text); walk_read(&w); walk_next(&w)) {
        char letter = unmarked(w.length ? w.c : 0);
        bool is_mark = w.c >= 0x300 && w.c <= 0x36f; /* behind its letter */
        bool plain = str_is_name((struct str){&letter, 1}) || (letter == '.' && w.c == '.');
        if (!is_mark && (plain || (out->len && out->at[out->len - 1] != '_')))
            buf_byte(out, plain ? letter : '_');
    }
    if (out->len && out->at[out->len - 1] == '_' && (out->len < 2 || out->at[out->len - 2] != '_'))
        out->len--;
}
