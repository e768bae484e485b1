/*
 * Shortens a text by whole lines, or by sentences if it has no lines. Its frame
 * (headings, names, the head of a table, errors of a log), the parts that the
 * goal and the call name, and its beginning stay; of a log, its end.
 */
#include "result/compact.h"

#include "base/arena.h"
#include "base/buf.h"

#define MARK_BYTES          48u /* "[… 123456 lines left out …]\n" */
#define UNITS_LEAST         4u  /* fewer are cut as one string */
#define FITTING_TRIES       6
#define FRAME_PERCENT       60u     /* more lines than this are no frame */
#define FRAME_LEAST_PERCENT 3u      /* nor are fewer */
#define KIND_PERCENT        70u     /* of alike lines make a text a log or a table */
#define UNITS_MAX           200000u /* more are cut as one string */
#define SAMPLE_LINES        200u

enum rank { REST, FRAME, WANTED };

struct unit {
    struct str text; /* with the line break or space after it */
    enum rank rank;
    bool taken;
};

struct text {
    struct unit *units;
    size_t count;
    bool by_lines; /* else by sentences */
    bool is_log;
};

/* Fills `units` if not NULL; returns their number. */
static size_t split(struct str text, bool by_lines, struct unit *units)
{
    size_t count = 0, from = 0;
    for (size_t i = 0; i < text.len; i++) {
        bool ends = text.at[i] == '\n';
        if (!by_lines)
            ends |= text.at[i] == ' ' && i && text.at[i - 1] && strchr(".!?;", text.at[i - 1]);
        if (!ends && i + 1 < text.len)
            continue;
        if (units)
            units[count] = (struct unit){.text = {text.at + from, i + 1 - from}};
        count++;
        from = i + 1;
    }
    return count;
}

static struct text units_of(struct arena *arena, struct str text)
{
    size_t count = split(text, true, NULL);
    bool by_lines = count >= UNITS_LEAST;
    if (!by_lines)
        count = split(text, false, NULL);
    if (count < UNITS_LEAST || count > UNITS_MAX)
        return (struct text){0};
    struct text t = {.units = ARENA_ARRAY(arena, struct unit, count), .count = count, .by_lines = by_lines};
    split(text, by_lines, t.units);
    return t;
}

static size_t indent_of(struct str line)
{
    return str_span(line, 0, " \t");
}

static size_t count_of(struct str line, char c)
{
    size_t n = 0;
    for (size_t i = 0; i < line.len; i++)
        n += line.at[i] == c;
    return n;
}

/* Between columns: one at the end of a line separates nothing. */
static size_t columns_in(struct str line, char sign)
{
    line = str_trim(line);
    line.len -= line.len > 0;
    return count_of(line, sign);
}

/* The sign between the columns of a table; 0: not a table. */
static char table_sign(const struct text *t)
{
    static const char signs[] = {'\t', '|', ',', ';'};
    for (size_t s = 0; s < sizeof(signs); s++) {
        size_t first = columns_in(t->units[0].text, signs[s]), alike = 0, seen = 0;
        for (size_t i = 1; first && i < t->count && seen < SAMPLE_LINES; i++, seen++)
            alike += columns_in(t->units[i].text, signs[s]) == first;
        if (first && seen >= UNITS_LEAST && alike * 100 >= seen * KIND_PERCENT)
            return signs[s];
    }
    return 0;
}

static bool is_log(const struct text *t)
{
    size_t timed = 0, seen = 0;
    for (size_t i = 0; i < t->count && seen < SAMPLE_LINES; i++, seen++) {
        struct str line = t->units[i].text; /* "2026-05-01 …", "[2026-05-01T…", "12:30:05 …" */
        line = str_from(line, line.len && line.at[0] == '[');
        bool is_date = line.len > 10 && ascii_is_digit(line.at[0]) && ascii_is_digit(line.at[3]) &&
                       line.at[4] == '-' && ascii_is_digit(line.at[5]) && line.at[7] == '-';
        bool is_clock = line.len > 8 && ascii_is_digit(line.at[0]) && line.at[2] == ':' &&
                        ascii_is_digit(line.at[3]) && line.at[5] == ':';
        timed += is_date || is_clock;
    }
    return seen && timed * 100 >= seen * KIND_PERCENT;
}

/* "# Heading", "- name: x", "id: 7" */
static bool is_heading(struct str line)
{
    line = str_trim(line);
    if (line.len && line.at[0] == '#')
        return true;
    if (str_starts(line, "- "))
        line = str_trim(str_from(line, 2));
    const char *colon = memchr(line.at ? line.at : "", ':', line.len < 40 ? line.len : 40);
    return colon && compact_is_identifying_key((struct str){line.at, (size_t)(colon - line.at)});
}

enum frame_rule { FRAME_ALARMS, FRAME_TABLE_HEAD, FRAME_HEADINGS, FRAME_OUTLINE };

/* `indent`: the least of all lines. */
static bool is_in_frame(const struct text *t, size_t i, enum frame_rule rule, size_t indent)
{
    static const char *const alarms[] = {"error", "fatal", "panic", "exception", "warn"};
    struct str line = t->units[i].text;
    switch (rule) {
    case FRAME_ALARMS:
        return RESULT_HAS(line, alarms);
    case FRAME_TABLE_HEAD:
        return i == 0 || (i == 1 && count_of(line, '-') * 2 > line.len);
    case FRAME_HEADINGS:
        return is_heading(line);
    default: /* FRAME_OUTLINE: no lone bracket */
        return str_trim(line).len > 2 && indent_of(line) == indent;
    }
}

/* False if the rule gives no frame: it fits no line, or nearly all of them. */
static bool frame(struct text *t, enum frame_rule rule, unsigned least_percent)
{
    size_t indent = SIZE_MAX, found = 0;
    for (size_t i = 0; i < t->count; i++)
        if (str_trim(t->units[i].text).len && indent_of(t->units[i].text) < indent)
            indent = indent_of(t->units[i].text);
    for (size_t i = 0; i < t->count; i++)
        found += is_in_frame(t, i, rule, indent);
    if (!found || found * 100 < t->count * least_percent || found * 100 > t->count * FRAME_PERCENT)
        return false;
    for (size_t i = 0; i < t->count; i++)
        if (t->units[i].rank < FRAME && is_in_frame(t, i, rule, indent))
            t->units[i].rank = FRAME;
    return true;
}

static void rank(struct text *t, const struct compact_rules *rules)
{
    for (size_t i = 0; i < t->count; i++)
        if (compact_goal_words_in(rules, t->units[i].text) ||
            compact_has_argument_id(rules, t->units[i].text))
            t->units[i].rank = WANTED;
    if (!t->by_lines)
        return;
    t->is_log = is_log(t);
    if (t->is_log || table_sign(t))
        frame(t, t->is_log ? FRAME_ALARMS : FRAME_TABLE_HEAD, 0);
    else if (!frame(t, FRAME_HEADINGS, FRAME_LEAST_PERCENT))
        frame(t, FRAME_OUTLINE, FRAME_LEAST_PERCENT);
}

/* Takes units of the rank that fit, in order or from the end; of REST a run without gaps. Returns the room
 * left. */
static size_t take(struct text *t, enum rank rank, bool from_end, size_t room)
{
    for (size_t n = 0; n < t->count; n++) {
        struct unit *unit = &t->units[from_end ? t->count - 1 - n : n];
        if (unit->taken || unit->rank < rank)
            continue;
        if (unit->text.len > room && rank == REST)
            break;
        if (unit->text.len > room)
            continue;
        unit->taken = true;
        room -= unit->text.len;
    }
    return room;
}

static void choose(struct text *t, size_t room)
{
    for (size_t i = 0; i < t->count; i++)
        t->units[i].taken = false;
    size_t first = t->units[0].text.len <= room / 4 ? t->units[0].text.len : 0;
    t->units[0].taken = first > 0;
    room -= first;
    size_t half = room / 2;
    room = room - half + take(t, WANTED, false, half);
    half = room / 2;
    room = room - half + take(t, FRAME, t->is_log, half);
    take(t, REST, t->is_log, room);
}

static struct str join(struct arena *arena, const struct text *t)
{
    struct buf out = buf_in(arena);
    size_t gap = 0;
    const char *end = t->by_lines ? "\n" : " ";
    for (size_t i = 0; i <= t->count; i++) {
        if (i < t->count && !t->units[i].taken) {
            gap++;
            continue;
        }
        if (gap)
            buf_printf(&out, "[… %zu %s%s left out …]%s", gap, t->by_lines ? "line" : "sentence",
                       gap == 1 ? "" : "s", i < t->count ? end : "");
        gap = 0;
        if (i < t->count)
            buf_str(&out, t->units[i].text);
    }
    return buf_view(&out);
}

/* In the middle of a word only if there is no space nearby. */
static struct str cut_as_one(struct arena *arena, struct str text, size_t budget, size_t *left_out)
{
    struct str head = str_cut(text, budget > MARK_BYTES ? budget - MARK_BYTES : 0);
    size_t end = head.len;
    while (end > head.len - head.len / 8 && !(head.at[end - 1] == ' ' || head.at[end - 1] == '\n'))
        end--;
    if (end > head.len - head.len / 8)
        head.len = end;
    *left_out = text.len - head.len;
    return arena_printf(arena, STR_FMT "[… %zu of %zu bytes left out]", STR_ARG(head), *left_out, text.len);
}

struct str compact_text(struct arena *arena, const struct compact_rules *rules, struct str text,
                        size_t budget, size_t *left_out)
{
    *left_out = 0;
    if (text.len <= budget)
        return text;
    struct text t = units_of(arena, text);
    if (!t.count)
        return cut_as_one(arena, text, budget, left_out);
    rank(&t, rules);
    struct str joined = STR_NONE;
    size_t room = budget > MARK_BYTES ? budget - MARK_BYTES : 0;
    for (int i = 0; i < FITTING_TRIES; i++) {
        size_t taken = 0;
        choose(&t, room);
        joined = join(arena, &t);
        for (size_t k = 0; k < t.count; k++)
            taken += t.units[k].taken ? t.units[k].text.len : 0;
        *left_out = text.len - taken;
        if (joined.len <= budget)
            break;
        size_t over = joined.len - budget; /* of what was taken: the room may have been larger */
        room = taken > over ? taken - over : 0;
    }
    if (joined.len > budget || *left_out == text.len)
        return cut_as_one(arena, text, budget, left_out);
    return joined;
}

/* ---- HTML as a reader sees it: one pass, tag by tag, good enough to read ---- */

#define TAG_NAME_MAX_BYTES 12u

struct html_reader {
    struct buf out;
    struct str rest;
    bool space; /* before the next word */
};

bool compact_html_detect(struct str text)
{
    text = str_trim(text);
    return str_starts_nocase(text, "<!doctype html") || str_starts_nocase(text, "<html");
}

/* To the end if it does not come. */
static void skip_past(struct html_reader *r, const char *what)
{
    while (r->rest.len && !str_starts_nocase(r->rest, what))
        r->rest = str_from(r->rest, 1);
    r->rest = str_from(r->rest, strlen(what));
}

static void break_line(struct html_reader *r, const char *mark)
{
    if (r->out.len && r->out.at[r->out.len - 1] != '\n')
        buf_byte(&r->out, '\n');
    buf_text(&r->out, mark);
    r->space = false;
}

static void read_tag(struct html_reader *r)
{
    static const char *const unseen[] = {"script", "style", "svg", "noscript", "template", "iframe"};
    static const char *const blocks[] = {
        "p",      "div",    "br",  "tr",   "table", "ul", "ol", "section", "article", "title",     "main",
        "header", "footer", "nav", "form", "pre",   "dl", "dt", "dd",      "body",    "blockquote"};
    char letters[TAG_NAME_MAX_BYTES];
    if (str_starts(r->rest, "<!--")) {
        r->rest = str_from(r->rest, 4);
        skip_past(r, "-->");
        return;
    }
    bool closes = r->rest.at[1] == '/';
    struct str name = {letters, 0};
    for (size_t i = 1 + closes; i < r->rest.len && name.len < TAG_NAME_MAX_BYTES; i++) {
        char c = r->rest.at[i];
        if (!ascii_is_letter(c) && !(name.len && ascii_is_digit(c)))
            break;
        letters[name.len++] = ascii_lower(c);
    }
    skip_past(r, ">");
    if (!closes && STR_IS_ONE_OF(name, unseen)) {
        char closing[TAG_NAME_MAX_BYTES + 3] = "</";
        memcpy(closing + 2, name.at, name.len);
        skip_past(r, closing);
        skip_past(r, ">");
    } else if (str_is(name, "li") && !closes) {
        break_line(r, "- ");
    } else if (name.len == 2 && name.at[0] == 'h' && name.at[1] >= '1' && name.at[1] <= '6') {
        break_line(r, closes ? "" : "# ");
    } else if (STR_IS_ONE_OF(name, blocks)) {
        break_line(r, "");
    } else if (str_is(name, "td") || str_is(name, "th")) {
        buf_text(&r->out, closes ? " |" : "");
    }
}

static void read_text(struct html_reader *r)
{
    static const struct {
        const char *name, *text;
    } entities[] = {{"&amp;", "&"}, {"&lt;", "<"},   {"&gt;", ">"},  {"&quot;", "\""},
                    {"&#39;", "'"}, {"&apos;", "'"}, {"&nbsp;", " "}};
    char c = r->rest.at[0];
    if ((unsigned char)c <= ' ') {
        r->space = true;
        r->rest = str_from(r->rest, 1);
        return;
    }
    if (r->space && r->out.len && r->out.at[r->out.len - 1] != '\n' && r->out.at[r->out.len - 1] != ' ')
        buf_byte(&r->out, ' ');
    r->space = false;
    for (size_t i = 0; c == '&' && i < sizeof(entities) / sizeof(*entities); i++)
        if (str_starts_nocase(r->rest, entities[i].name)) {
            buf_text(&r->out, entities[i].text);
            r->rest = str_from(r->rest, strlen(entities[i].name));
            return;
        }
    buf_byte(&r->out, c);
    r->rest = str_from(r->rest, 1);
}

struct str compact_html_to_text(struct arena *arena, struct str page)
{
    struct html_reader r = {.out = buf_in(arena), .rest = page};
    while (r.rest.len) {
        const char *at = r.rest.at;
        bool is_tag =
            *at == '<' && r.rest.len > 1 && (at[1] == '/' || at[1] == '!' || ascii_is_letter(at[1]));
        if (is_tag)
            read_tag(&r);
        else
            read_text(&r);
    }
    return str_trim(buf_view(&r.out));
}

/* ---- tokens: runs of one kind of byte, each at its own rate ---- */

#define LETTERS_A_TOKEN 6u /* a shorter word is mostly one token, its space included */
#define DIGITS_A_TOKEN  3u
#define SIGNS_A_TOKEN   2u /* "," and ":" pair with their quotes */
#define OTHERS_A_TOKEN  3u /* bytes beyond ASCII: a Chinese character, or two Greek letters */

enum kind { SPACE, LETTER, DIGIT, SIGN, OTHER };

static const unsigned rates[] = {[SPACE] = 0,
                                 [LETTER] = LETTERS_A_TOKEN,
                                 [DIGIT] = DIGITS_A_TOKEN,
                                 [SIGN] = SIGNS_A_TOKEN,
                                 [OTHER] = OTHERS_A_TOKEN};

size_t token_estimate(struct str text)
{
    size_t tokens = 0, run = 0;
    enum kind kind = SPACE;
    for (size_t i = 0; i <= text.len; i++) {
        char c = i < text.len ? text.at[i] : ' ';
        enum kind next = (unsigned char)c >= 0x80 ? OTHER
                         : ascii_is_letter(c)     ? LETTER
                         : ascii_is_digit(c)      ? DIGIT
                         : c <= ' '               ? SPACE
                                                  : SIGN;
        if (i < text.len && next == kind) {
            run++;
            continue;
        }
        if (rates[kind])
            tokens += (run + rates[kind] - 1) / rates[kind];
        kind = next;
        run = 1;
    }
    return tokens;
}
