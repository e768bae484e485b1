/* The list of problems, and its renderings: a line for the model, all lines, and JSON for programs. */
#include "schema/problem.h"

#include "base/arena.h"
#include "base/printable.h"
#include "json/write.h"
#include "schema/shape.h"

void problems_init(struct problems *problems, struct arena *arena)
{
    *problems = (struct problems){.arena = arena};
}

void problem_clean(struct arena *arena, struct problem *problem)
{
    struct str message = arena_truncate(arena, problem->message, PROBLEM_MESSAGE_MAX_BYTES);
    problem->message = printable_line(arena, message);
    problem->description = printable_line(arena, problem->description);
}

void problems_add(struct problems *problems, struct problem problem)
{
    problem_clean(problems->arena, &problem);
    problems_add_clean(problems, &problem);
}

void problems_add_clean(struct problems *problems, const struct problem *problem)
{
    size_t bytes = problem->path.len + problem->message.len;
    bool fits = problems->count < PROBLEMS_MAX && problems->text_bytes + bytes <= PROBLEMS_MAX_TEXT_BYTES;
    if (!fits && problems->count > 0) {
        problems->more++;
        return;
    }
    problems->list = arena_grow(problems->arena, problems->list, problems->count, sizeof(*problems->list));
    problems->list[problems->count++] = *problem;
    problems->text_bytes += bytes;
    problems->errors += !problem->warning;
}

bool problems_full(const struct problems *problems)
{
    return problems->count == PROBLEMS_MAX || problems->text_bytes >= PROBLEMS_MAX_TEXT_BYTES;
}

bool problems_skip(struct problems *problems)
{
    bool skips = problems->more || problems_full(problems);
    problems->more += skips;
    return skips;
}

/* ---- groups ---- */

/* Where the paths' only different index is: both digits begin at `from`, and end at their own end. */
struct index_span {
    size_t from, end_a, end_b;
};

static bool find_index(struct str a, struct str b, struct index_span *span)
{
    static const char digits[] = "0123456789";
    size_t i = str_same(a, b);
    while (i > 0 && ascii_is_digit(a.at[i - 1]))
        i--;
    if (i == 0 || a.at[i - 1] != '[')
        return false;
    *span = (struct index_span){i, str_span(a, i, digits), str_span(b, i, digits)};
    return span->end_a > i && span->end_b > i && str_eq(str_from(a, span->end_a), str_from(b, span->end_b)) &&
           span->end_a < a.len && a.at[span->end_a] == ']';
}

struct str problem_expected(struct arena *arena, const struct problem *problem)
{
    struct buf out = buf_in(arena);
    struct json_out json = json_out(&out);
    if (!problem->shape)
        return problem->expected;
    shape_put_json(&json, problem->shape);
    return buf_view(&out);
}

/* Made once, as each problem may be compared with all that were found before. */
static struct str shape_of(struct arena *arena, struct problem *problem)
{
    if (problem->shape && !problem->shape_json.len)
        problem->shape_json = problem_expected(arena, problem);
    return problem->shape ? problem->shape_json : problem->expected;
}

/* Whether two problems differ in the index of one list only, and in the value that was sent. The rest of a
 * group varies where its first two do. */
static bool problem_groups(struct arena *arena, struct problem *a, struct problem *b)
{
    struct index_span first, next;
    if (a->code != b->code || a->warning != b->warning || !str_eq(a->suggestion, b->suggestion) ||
        !find_index(a->path, b->path, &next))
        return false;
    if ((a->shape != b->shape || !str_eq(a->expected, b->expected)) &&
        !str_eq(shape_of(arena, a), shape_of(arena, b)))
        return false;
    return !a->count || (find_index(a->path, a->last_path, &first) && first.from == next.from);
}

/* Another value than the group has shown so far; with many, the first ones. */
static void add_got(struct arena *arena, struct problem *group, struct str got)
{
    struct str shown = group->also_got;
    if (!got.len || shown.len + got.len > PROBLEM_GOT_MAX_BYTES || str_eq(got, group->got) ||
        (shown.len && memmem(shown.at, shown.len, got.at, got.len)))
        return;
    group->also_got = shown.len ? ARENA_JOIN(arena, shown, STR_LIT(", "), got) : got;
}

void problems_add_once(struct problems *problems, struct problem *problem, bool in_list)
{
    for (size_t i = 0; i < problems->count; i++) {
        const struct problem *old = &problems->list[i];
        struct str newest = old->count ? old->last_path : old->path;
        if (old->code == problem->code && str_eq(newest, problem->path) &&
            str_eq(old->message, problem->message))
            return;
    }
    for (size_t i = in_list ? problems->count : 0; i-- > 0;) {
        struct problem *first = &problems->list[i];
        if (!problem_groups(problems->arena, first, problem))
            continue;
        first->count = first->count ? first->count + 1 : 2;
        first->last_path = problem->path;
        add_got(problems->arena, first, problem->got);
        return;
    }
    problems_add_clean(problems, problem);
}

static struct str path_part(struct str path, size_t from, size_t end)
{
    return (struct str){path.at + from, end - from};
}

static unsigned long number_of(struct str digits)
{
    unsigned long n = 0;
    for (size_t i = 0; i < digits.len && i < 9; i++)
        n = 10 * n + (unsigned long)(digits.at[i] - '0');
    return n;
}

/* "deck[0…35]", and whether it is all of them. */
static bool put_group_path(struct buf *out, const struct problem *p)
{
    struct index_span span;
    if (!find_index(p->path, p->last_path, &span))
        return true;
    struct str from = path_part(p->path, span.from, span.end_a);
    struct str to = path_part(p->last_path, span.from, span.end_b);
    printable_write(out, (struct str){p->path.at, span.end_a});
    buf_text(out, "…");
    buf_str(out, to);
    printable_write(out, str_from(p->path, span.end_a));
    return number_of(to) - number_of(from) + 1 == p->count;
}

/* ---- lines ---- */

static void put_path(struct buf *out, const struct problem *problem)
{
    struct str path = str_cut(problem->path, PROBLEM_PATH_MAX_BYTES);
    bool all = true;
    if (!path.len) {
        buf_text(out, problem->in_result ? "result" : "arguments");
        return;
    }
    buf_byte(out, '\'');
    if (problem->count && problem->last_path.len < PROBLEM_PATH_MAX_BYTES)
        all = put_group_path(out, problem);
    else
        printable_write(out, path);
    buf_text(out, path.len < problem->path.len ? "…'" : "'");
    if (problem->count && !all)
        buf_printf(out, " (%u of them)", problem->count);
}

void problem_line(struct buf *out, const struct problem *problem)
{
    buf_text(out, "- ");
    if (!problem->path.len && str_starts(problem->message, "arguments ")) { /* it names its subject itself */
        buf_str(out, problem->message);
        buf_byte(out, '\n');
        return;
    }
    put_path(out, problem);
    bool is_predicate = str_starts(problem->message, "is "); /* "is missing": the path is its subject */
    buf_text(out, is_predicate ? " " : problem->count ? ": each " : ": ");
    buf_str(out, problem->message);
    if (problem->also_got.len) {
        buf_text(out, "; of the others ");
        printable_write(out, problem->also_got);
    }
    buf_byte(out, '\n');
}

static bool is_rename(const struct problem *p)
{
    return p->renames && p->suggestion.len > 2;
}

static void put_renames(struct buf *out, const struct problems *problems)
{
    bool first = true;
    buf_text(out, "- rename ");
    for (size_t i = 0; i < problems->count; i++) {
        const struct problem *p = &problems->list[i];
        if (!is_rename(p))
            continue;
        buf_text(out, first ? "" : ", ");
        put_path(out, p);
        buf_text(out, " → '");
        printable_write_json(out, (struct str){p->suggestion.at + 1, p->suggestion.len - 2});
        buf_byte(out, '\'');
        first = false;
    }
    buf_byte(out, '\n');
}

void problems_text(struct buf *out, const struct problems *problems)
{
    size_t renames = 0;
    for (size_t i = 0; i < problems->count; i++)
        renames += is_rename(&problems->list[i]);
    if (renames > 1)
        put_renames(out, problems);
    for (size_t i = 0; i < problems->count; i++)
        if (!problems->list[i].quiet && (renames < 2 || !is_rename(&problems->list[i])))
            problem_line(out, &problems->list[i]);
    if (problems->more)
        buf_printf(out, "- and %s%zu more\n", problems->incomplete ? "at least " : "", problems->more);
}

void problem_path(struct buf *out, const struct problem *problem)
{
    buf_text(out, problem->in_result ? "result" : "args");
    if (problem->path.len && problem->path.at[0] != '[')
        buf_byte(out, '.');
    buf_str(out, problem->path);
}

static void put_raw(struct json_out *out, const char *key, struct str json)
{
    if (json.len)
        json_field_raw(out, key, json);
}

static void put_json_path(struct json_out *out, const char *key, struct str path, bool in_result)
{
    struct buf text = {0};
    problem_path(&text, &(struct problem){.path = path, .in_result = in_result});
    json_field_str(out, key, buf_view(&text));
    buf_clear(&text);
}

void problem_json(struct json_out *out, const struct problem *problem)
{
    json_open(out, '{');
    put_json_path(out, "path", problem->path, problem->in_result);
    json_field_text(out, "code", problem->code);
    json_field_str(out, "message", problem->message);
    json_field_text(out, "severity", problem->warning ? "warning" : "error");
    put_raw(out, "expected", problem->expected);
    if (problem->shape) {
        json_key(out, "expected");
        shape_put_json(out, problem->shape);
    }
    put_raw(out, "got", problem->got);
    json_field_optional_str(out, "description", problem->description);
    if (problem->count) {
        json_field_int(out, "count", problem->count);
        put_json_path(out, "last_path", problem->last_path, problem->in_result);
    }
    json_close(out, '}');
}
