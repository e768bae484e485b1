/*
 * A text is cut into lines, or sentences where it has none. What stands out
 * (headings, names, a table's head, errors of a log) is its frame; that, what
 * the goal and the call speak of, and the beginning stay. Of a log it is the
 * end that stays.
 */
#include "result/compact_internal.h"

#include "base/arena.h"
#include "base/buf.h"

#define MARK_BYTES          48u /* "[… 123456 lines left out …]\n" */
#define UNITS_LEAST         4u  /* fewer are cut as one text */
#define FITTING_TRIES       6
#define FRAME_PERCENT       60u     /* of lines that may be a frame; where all are alike nothing stands out */
#define FRAME_LEAST_PERCENT 3u      /* fewer say nothing of the whole */
#define KIND_PERCENT        70u     /* of lines that make a text a log or a table */
#define UNITS_MAX           200000u /* a text of more is cut as one */
#define SAMPLE_LINES        200u

enum rank { REST, FRAME, WANTED };

struct unit {
    struct str text; /* with what ends it: a line break, a space */
    enum rank rank;
    bool taken;
};

struct text {
    struct unit *units;
    size_t count;
    const char *called; /* "line", "sentence" */
    bool is_log;
};

/* ---- units ---------------------------------------------------------------------- */

static bool ends_line(struct str text, size_t i)
{
    return text.at[i] == '\n';
}

static bool ends_sentence(struct str text, size_t i)
{
    bool stops = i && strchr(".!?;", text.at[i - 1]) && text.at[i - 1];
    return text.at[i] == '\n' || (text.at[i] == ' ' && stops);
}

static size_t split(struct str text, bool (*ends)(struct str, size_t), struct unit *units)
{
    size_t count = 0, from = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (!ends(text, i) && i + 1 < text.len)
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
    bool (*ends)(struct str, size_t) = ends_line;
    size_t count = split(text, ends, NULL);
    bool by_lines = count >= UNITS_LEAST;
    if (!by_lines)
        count = split(text, ends = ends_sentence, NULL);
    if (count < UNITS_LEAST || count > UNITS_MAX)
        return (struct text){0};
    struct text t = {.units = ARENA_ARRAY(arena, struct unit, count),
                     .count = count,
                     .called = by_lines ? "line" : "sentence"};
    split(text, ends, t.units);
    return t;
}

/* ---- what stands out ------------------------------------------------------------ */

static size_t indent_of(struct str line)
{
    size_t n = 0;
    while (n < line.len && (line.at[n] == ' ' || line.at[n] == '\t'))
        n++;
    return n;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "2026-05-01 …", "[2026-05-01T…", "12:30:05 …" */
static bool has_time(struct str line)
{
    line = str_from(line, line.len && line.at[0] == '[');
    bool is_date = line.len > 10 && is_digit(line.at[0]) && is_digit(line.at[3]) && line.at[4] == '-' &&
                   is_digit(line.at[5]) && line.at[7] == '-';
    bool is_clock = line.len > 8 && is_digit(line.at[0]) && line.at[2] == ':' && is_digit(line.at[3]) &&
                    line.at[5] == ':';
    return is_date || is_clock;
}

static size_t count_of(struct str line, char c)
{
    size_t n = 0;
    for (size_t i = 0; i < line.len; i++)
        n += line.at[i] == c;
    return n;
}

/* Between columns: one at the end of a line parts nothing. */
static size_t columns_in(struct str line, char sign)
{
    line = str_trim(line);
    return count_of((struct str){line.at, line.len ? line.len - 1 : 0}, sign);
}

/* The sign that parts the columns; 0: it is no table. */
static char columns_of(const struct text *t)
{
    static const char signs[] = {'\t', '|', ',', ';'};
    for (size_t s = 0; s < sizeof(signs); s++) {
        size_t first = columns_in(t->units[0].text, signs[s]), alike = 0, looked = 0;
        for (size_t i = 1; first && i < t->count && looked < SAMPLE_LINES; i++, looked++)
            alike += columns_in(t->units[i].text, signs[s]) == first;
        if (first && looked >= UNITS_LEAST && alike * 100 >= looked * KIND_PERCENT)
            return signs[s];
    }
    return 0;
}

static bool is_log(const struct text *t)
{
    size_t timed = 0, looked = 0;
    for (size_t i = 0; i < t->count && looked < SAMPLE_LINES; i++, looked++)
        timed += has_time(t->units[i].text);
    return looked && timed * 100 >= looked * KIND_PERCENT;
}

static bool is_alarm(struct str line)
{
    static const char *const words[] = {"error", "fatal", "panic", "exception", "warn"};
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (str_contains_nocase(line, str_of(words[i])))
            return true;
    return false;
}

/* "# Heading", "- name: x", "id: 7" */
static bool names_something(struct str line)
{
    line = str_trim(line);
    if (line.len && line.at[0] == '#')
        return true;
    if (str_starts(line, "- "))
        line = str_trim(str_from(line, 2));
    const char *colon = memchr(line.at ? line.at : "", ':', line.len < 40 ? line.len : 40);
    return colon && compact_is_identifying_key((struct str){line.at, (size_t)(colon - line.at)});
}

static size_t least_indent(const struct text *t)
{
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < t->count; i++)
        if (str_trim(t->units[i].text).len && indent_of(t->units[i].text) < least)
            least = indent_of(t->units[i].text);
    return least;
}

static bool frames_log(const struct text *t, size_t i, size_t indent)
{
    (void)indent;
    return is_alarm(t->units[i].text);
}

static bool frames_table(const struct text *t, size_t i, size_t indent)
{
    (void)indent;
    return i == 0 || (i == 1 && count_of(t->units[1].text, '-') * 2 > t->units[1].text.len);
}

static bool frames_names(const struct text *t, size_t i, size_t indent)
{
    (void)indent;
    return names_something(t->units[i].text);
}

static bool frames_outline(const struct text *t, size_t i, size_t indent)
{
    return str_trim(t->units[i].text).len > 2 && indent_of(t->units[i].text) == indent; /* no lone bracket */
}

typedef bool frame_rule(const struct text *t, size_t i, size_t indent);

/* Whether it was one: a frame of everything is none. */
static bool frame(struct text *t, frame_rule *rule, unsigned least_percent)
{
    size_t indent = least_indent(t), found = 0;
    for (size_t i = 0; i < t->count; i++)
        found += rule(t, i, indent);
    if (!found || found * 100 < t->count * least_percent || found * 100 > t->count * FRAME_PERCENT)
        return false;
    for (size_t i = 0; i < t->count; i++)
        if (t->units[i].rank < FRAME && rule(t, i, indent))
            t->units[i].rank = FRAME;
    return true;
}

static void rank(struct text *t, const struct compact_rules *rules)
{
    for (size_t i = 0; i < t->count; i++)
        if (compact_goal_words_in(rules, t->units[i].text) ||
            compact_has_argument_id(rules, t->units[i].text))
            t->units[i].rank = WANTED;
    if (*t->called != 'l')
        return;
    t->is_log = is_log(t);
    if (t->is_log || columns_of(t))
        frame(t, t->is_log ? frames_log : frames_table, 0);
    else if (!frame(t, frames_names, FRAME_LEAST_PERCENT))
        frame(t, frames_outline, FRAME_LEAST_PERCENT);
}

/* ---- taking ---------------------------------------------------------------------- */

/* In their order, or from the end; those of a rank that fit. Of the rest a run without gaps. */
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
    const char *end = *t->called == 'l' ? "\n" : " ";
    for (size_t i = 0; i <= t->count; i++) {
        if (i < t->count && !t->units[i].taken) {
            gap++;
            continue;
        }
        if (gap)
            buf_printf(&out, "[… %zu %s%s left out …]%s", gap, t->called, gap == 1 ? "" : "s",
                       i < t->count ? end : "");
        gap = 0;
        if (i < t->count)
            buf_str(&out, t->units[i].text);
    }
    return buf_view(&out);
}

/* ---- from outside ---------------------------------------------------------------- */

/* In the middle of a word only where there is no other way. */
static struct str cut_plainly(struct arena *arena, struct str text, size_t budget, size_t *left_out)
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
        return cut_plainly(arena, text, budget, left_out);
    rank(&t, rules);
    struct str joined = STR_NONE;
    size_t room = budget > MARK_BYTES ? budget - MARK_BYTES : 0;
    for (int i = 0; i < FITTING_TRIES; i++) {
        choose(&t, room);
        joined = join(arena, &t);
        if (joined.len <= budget)
            break;
        size_t over = joined.len - budget;
        room = room > over ? room - over : 0;
    }
    for (size_t i = 0; i < t.count; i++)
        *left_out += t.units[i].taken ? 0 : t.units[i].text.len;
    if (joined.len > budget || *left_out == text.len)
        return cut_plainly(arena, text, budget, left_out);
    return joined;
}
