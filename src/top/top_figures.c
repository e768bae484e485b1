/* Rates and shares of two snapshots. */
#include "top/top_figures.h"

#include "base/arena.h"
#include "base/map.h"

#include <stdlib.h>

static int64_t number(const struct json *object, const char *key)
{
    int64_t n = 0;
    json_int(json_get_text(object, key), &n);
    return n;
}

static const struct json *counters(const struct top_snapshot *snapshot)
{
    return snapshot ? json_get_text(snapshot->status, "counters") : NULL;
}

/* Counters never decrease in one process. */
static double rate(int64_t before, int64_t now, double seconds)
{
    return now > before && seconds > 0 ? (double)(now - before) / seconds : 0;
}

static double share(int64_t part, int64_t of)
{
    return of > 0 ? (double)part / (double)of : TOP_SHARE_UNKNOWN;
}

bool top_same_process(const struct top_snapshot *before, const struct top_snapshot *now)
{
    return number(before->status, "pid") == number(now->status, "pid") &&
           number(before->status, "started_ms") == number(now->status, "started_ms");
}

static void compute_verdicts(const struct json *before, const struct json *now, double seconds,
                             struct top_figures *out)
{
    const struct json *verdicts = json_get_text(now, "verdicts"), *then = json_get_text(before, "verdicts");
    for (uint32_t i = 0; json_is(verdicts, JSON_OBJECT) && i < verdicts->len; i++) {
        struct str name = verdicts->members[i].key;
        int64_t total = 0, past = 0;
        json_int(&verdicts->members[i].value, &total);
        json_int(json_get(then, name), &past);
        double per_s = rate(past, total, seconds);
        out->calls_s += per_s;
        if (out->verdict_count < TOP_VERDICTS)
            out->verdicts[out->verdict_count++] = (struct top_rate){name, total, per_s};
    }
}

static int64_t sum(const struct json *object)
{
    int64_t total = 0, n;
    for (uint32_t i = 0; json_is(object, JSON_OBJECT) && i < object->len; i++)
        if (json_int(&object->members[i].value, &n))
            total += n;
    return total;
}

/* Keeps the most frequent codes, first. */
static void compute_codes(const struct json *codes, struct top_tool *tool)
{
    for (uint32_t i = 0; json_is(codes, JSON_OBJECT) && i < codes->len; i++) {
        struct top_code code = {codes->members[i].key, 0};
        json_int(&codes->members[i].value, &code.count);
        for (size_t k = 0; k < TOP_CODES_OF_TOOL; k++)
            if (code.count > tool->codes[k].count) {
                struct top_code less = tool->codes[k];
                tool->codes[k] = code;
                code = less;
            }
    }
}

static void compute_tool(const struct json *before, const struct json *now, double seconds,
                         struct top_tool *out)
{
    const struct json *chains = json_get_text(now, "chains");
    int64_t recovered = number(chains, "success"), ended = sum(chains);
    *out = (struct top_tool){
        .name = json_str(json_get_text(now, "tool")),
        .calls = number(now, "calls"),
        .refused = number(now, "refused"),
        .calls_s = rate(number(before, "calls"), number(now, "calls"), seconds),
        .refused_s = rate(number(before, "refused"), number(now, "refused"), seconds),
        .recovered_share = share(recovered, ended),
    };
    out->refused_share = share(out->refused, out->calls);
    compute_codes(json_get_text(now, "codes"), out);
}

static struct map *tools_by_name(struct arena *arena, const struct json *tools)
{
    struct map *map = map_new(arena);
    for (uint32_t i = 0; json_is(tools, JSON_ARRAY) && i < tools->len; i++)
        map_add(map, json_str(json_get_text(&tools->items[i], "tool")), (void *)&tools->items[i]);
    return map;
}

static int by_name(const void *a, const void *b)
{
    return str_cmp(((const struct top_tool *)a)->name, ((const struct top_tool *)b)->name);
}

/* Descending; equal ones by the totals, then by name, so that idle tools keep their places. */
static int by_number(double a, double b, int64_t total_a, int64_t total_b, const void *x, const void *y)
{
    if (a != b)
        return a > b ? -1 : 1;
    if (total_a != total_b)
        return total_a > total_b ? -1 : 1;
    return by_name(x, y);
}

static int by_rate(const void *x, const void *y)
{
    const struct top_tool *a = x, *b = y;
    return by_number(a->calls_s, b->calls_s, a->calls, b->calls, x, y);
}

static int by_refusals(const void *x, const void *y)
{
    const struct top_tool *a = x, *b = y;
    return by_number(a->refused_s, b->refused_s, a->refused, b->refused, x, y);
}

void top_figures_compute(const struct top_snapshot *before, const struct top_snapshot *now,
                         enum top_order order, struct top_figures *out)
{
    static int (*const orders[])(const void *, const void *) = {
        [TOP_BY_RATE] = by_rate, [TOP_BY_REFUSALS] = by_refusals, [TOP_BY_NAME] = by_name};
    const struct json *tools = json_get_text(now->status, "tools");
    bool comparable = before && before->status && top_same_process(before, now);
    *out = (struct top_figures){0};
    double seconds = (double)number(now->status, "uptime_s");
    if (comparable)
        seconds = out->seconds = (double)(now->at_us - before->at_us) / 1e6;
    compute_verdicts(comparable ? counters(before) : NULL, counters(now), seconds, out);
    const struct json *chains = json_get_text(counters(now), "chains");
    out->recovered = number(chains, "success");
    out->chains = sum(chains);
    uint32_t count = json_is(tools, JSON_ARRAY) ? tools->len : 0;
    struct map *past = tools_by_name(now->arena, comparable ? json_get_text(before->status, "tools") : NULL);
    out->tools = ARENA_ARRAY(now->arena, struct top_tool, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct json *tool = &tools->items[i];
        if (number(tool, "calls"))
            compute_tool(map_get(past, json_str(json_get_text(tool, "tool"))), tool, seconds,
                         &out->tools[out->tool_count++]);
    }
    if (out->tool_count)
        qsort(out->tools, out->tool_count, sizeof(*out->tools), orders[order]);
}
