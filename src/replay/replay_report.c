/* Counts the figures of a replay. Keys and examples are copied into the report's arena. */
#include "replay/replay_report.h"

#include "base/arena.h"
#include "base/map.h"

#include <stdio.h>
#include <stdlib.h>

const char *const replay_change_names[REPLAY_CHANGES] = {
    [REPLAY_NEW_REFUSAL] = "new_refusal",
    [REPLAY_OTHER_VERDICT] = "other_verdict",
    [REPLAY_NEW_PASS] = "new_pass",
};

static void table_init(struct replay_report *report, struct replay_table *table, size_t limit)
{
    *table = (struct replay_table){.rows = ARENA_ARRAY(report->arena, struct replay_row *, limit),
                                   .limit = limit,
                                   .by_key = map_new(report->arena)};
}

void replay_report_init(struct replay_report *report, struct arena *arena)
{
    *report = (struct replay_report){.arena = arena};
    table_init(report, &report->tools, REPLAY_TOOLS_MAX);
    table_init(report, &report->classes, CLASS_COUNT);
    table_init(report, &report->codes, REPLAY_ROWS_MAX);
    table_init(report, &report->problems, REPLAY_ROWS_MAX);
    table_init(report, &report->repairs, REPLAY_ROWS_MAX);
    table_init(report, &report->unknown_tools, REPLAY_TOOLS_MAX);
    report->loops = ARENA_ARRAY(arena, struct replay_loop, REPLAY_LOOPS_MAX);
    report->differences = ARENA_ARRAY(arena, struct replay_difference *, REPLAY_ROWS_MAX);
    report->differences_by_key = map_new(arena);
}

/* ---- rows ---- */

#define KEY_MAX_BYTES 1024u

/* The parts with a byte between them that is in none; names that are longer than a key share a row. */
static struct str make_key(char *room, const struct str *parts, size_t count)
{
    size_t len = 0;
    for (size_t i = 0; i < count; i++) {
        size_t n = parts[i].len < KEY_MAX_BYTES / 8 ? parts[i].len : KEY_MAX_BYTES / 8;
        if (n)
            memcpy(room + len, parts[i].at, n);
        len += n;
        room[len++] = '\xff';
    }
    return (struct str){room, len};
}

struct replay_row *replay_table_row(struct replay_report *report, struct replay_table *table,
                                    const struct replay_row *key)
{
    char room[KEY_MAX_BYTES];
    const struct str parts[] = {key->tool, key->class, key->code, key->path};
    struct str text = make_key(room, parts, sizeof(parts) / sizeof(parts[0]));
    struct replay_row *row = map_get(table->by_key, text);
    if (row)
        return row;
    if (table->count == table->limit)
        return &table->other;
    row = ARENA_NEW(report->arena, struct replay_row);
    row->tool = arena_dup(report->arena, str_cut(key->tool, KEY_MAX_BYTES / 8));
    row->class = arena_dup(report->arena, key->class);
    row->code = arena_dup(report->arena, str_cut(key->code, KEY_MAX_BYTES / 8));
    row->path = arena_dup(report->arena, str_cut(key->path, KEY_MAX_BYTES / 8));
    map_add(table->by_key, arena_dup(report->arena, text), row);
    table->rows[table->count++] = row;
    return row;
}

struct replay_difference *replay_report_difference(struct replay_report *report,
                                                   const struct replay_difference *key)
{
    char room[KEY_MAX_BYTES],
        kinds[3] = {(char)('0' + key->change), (char)('0' + key->before), (char)('0' + key->after)};
    const struct str parts[] = {{kinds, sizeof(kinds)}, key->tool,       key->code, key->path,
                                key->before_class,      key->after_class};
    struct str text = make_key(room, parts, sizeof(parts) / sizeof(parts[0]));
    struct replay_difference *d = map_get(report->differences_by_key, text);
    if (d)
        return d;
    if (report->difference_count == REPLAY_ROWS_MAX)
        return &report->other_difference;
    d = ARENA_NEW(report->arena, struct replay_difference);
    *d = *key;
    d->tool = arena_dup(report->arena, str_cut(key->tool, KEY_MAX_BYTES / 8));
    d->code = arena_dup(report->arena, str_cut(key->code, KEY_MAX_BYTES / 8));
    d->path = arena_dup(report->arena, str_cut(key->path, KEY_MAX_BYTES / 8));
    d->reason = arena_dup(report->arena, str_cut(key->reason, REPLAY_EXAMPLE_MAX_BYTES));
    map_add(report->differences_by_key, arena_dup(report->arena, text), d);
    report->differences[report->difference_count++] = d;
    return d;
}

/* Whether `kept`, which may have been cut, is the beginning of this one. */
static bool is_kept(struct str kept, struct str whole)
{
    const struct str ellipsis = STR_LIT("…");
    if (whole.len <= REPLAY_EXAMPLE_MAX_BYTES)
        return str_eq(kept, whole);
    return kept.len > ellipsis.len && memcmp(kept.at, whole.at, kept.len - ellipsis.len) == 0;
}

void replay_example_add(struct replay_report *report, struct replay_example *examples, size_t *count,
                        const struct replay_example *example)
{
    struct arena *arena = report->arena;
    if (*count == REPLAY_EXAMPLES)
        return;
    for (size_t i = 0; i < *count; i++) /* of a loop, one is enough */
        if (is_kept(examples[i].session, example->session) &&
            is_kept(examples[i].arguments, example->arguments))
            return;
    examples[(*count)++] = (struct replay_example){
        .file = example->file,
        .line = example->line,
        .session =
            arena_truncate(arena, arena_dup(arena, str_cut(example->session, 2 * REPLAY_EXAMPLE_MAX_BYTES)),
                           REPLAY_EXAMPLE_MAX_BYTES),
        .arguments =
            arena_truncate(arena, arena_dup(arena, str_cut(example->arguments, 2 * REPLAY_EXAMPLE_MAX_BYTES)),
                           REPLAY_EXAMPLE_MAX_BYTES),
        .detail =
            arena_truncate(arena, arena_dup(arena, str_cut(example->detail, 2 * REPLAY_EXAMPLE_MAX_BYTES)),
                           REPLAY_EXAMPLE_MAX_BYTES),
    };
}

/* ---- loops ---- */

/* Keeps those that cost most calls; of equal ones the earlier. */
void replay_loop_add(struct replay_report *report, const struct replay_loop *loop)
{
    struct replay_loop *slot = NULL;
    report->loop_sessions++;
    report->loop_calls += loop->saved;
    report->runaways += loop->saved >= REPLAY_RUNAWAY_CALLS;
    report->halted += loop->halted;
    if (report->loop_count < REPLAY_LOOPS_MAX) {
        slot = &report->loops[report->loop_count++];
    } else {
        for (size_t i = 0; i < report->loop_count; i++)
            if (report->loops[i].saved < (slot ? slot->saved : loop->saved))
                slot = &report->loops[i];
    }
    if (!slot)
        return;
    /* The slot's bytes are used again: a recording may have any number of loops. */
    char *room =
        slot->session.at ? (char *)slot->session.at : arena_alloc(report->arena, REPLAY_EXAMPLE_MAX_BYTES);
    struct str session = str_cut(loop->session, REPLAY_EXAMPLE_MAX_BYTES);
    if (session.len)
        memcpy(room, session.at, session.len);
    *slot = *loop;
    slot->session = (struct str){room, session.len};
}

/* ---- the end ---- */

static int by_calls(const void *a, const void *b)
{
    const struct replay_row *x = *(struct replay_row *const *)a, *y = *(struct replay_row *const *)b;
    if (x->calls != y->calls)
        return x->calls > y->calls ? -1 : 1;
    int order = str_cmp(x->tool, y->tool);
    order = order ? order : str_cmp(x->code, y->code);
    return order ? order : str_cmp(x->path, y->path);
}

static int by_saved(const void *a, const void *b)
{
    const struct replay_loop *x = a, *y = b;
    if (x->saved != y->saved)
        return x->saved > y->saved ? -1 : 1;
    return str_cmp(x->session, y->session);
}

static int by_change(const void *a, const void *b)
{
    const struct replay_difference *x = *(struct replay_difference *const *)a,
                                   *y = *(struct replay_difference *const *)b;
    if (x->change != y->change)
        return x->change < y->change ? -1 : 1;
    if (x->calls != y->calls)
        return x->calls > y->calls ? -1 : 1;
    int order = str_cmp(x->tool, y->tool);
    order = order ? order : str_cmp(x->code, y->code);
    return order ? order : str_cmp(x->path, y->path);
}

static void sort_table(struct replay_table *table)
{
    if (table->count)
        qsort(table->rows, table->count, sizeof(*table->rows), by_calls);
}

void replay_report_finish(struct replay_report *report)
{
    sort_table(&report->tools);
    sort_table(&report->classes);
    sort_table(&report->codes);
    sort_table(&report->problems);
    sort_table(&report->repairs);
    sort_table(&report->unknown_tools);
    if (report->loop_count)
        qsort(report->loops, report->loop_count, sizeof(*report->loops), by_saved);
    if (report->difference_count)
        qsort(report->differences, report->difference_count, sizeof(*report->differences), by_change);
}
