/* Counts calls and repair chains, and writes the counters of the status. */
#include "gate/metrics.h"

#include "base/arena.h"
#include "base/hash.h"
#include "base/map.h"
#include "gate/call_state.h"
#include "json/write.h"

static const char *const engines[METRICS_ENGINES] = {"redis", "local", "none"};

const char *metrics_engine_name(int engine)
{
    return engines[engine];
}

static const char *const chains[METRICS_CHAINS] = {"success", "redundant", "exhausted", "llm_gave_up",
                                                   "fabricated_id_on_retry"};

const char *metrics_chain_name(int outcome)
{
    return chains[outcome];
}

const char *call_part_name(enum call_part part)
{
    static const char *const names[] = {[CALL_PART_QUEUE] = "queue",
                                        [CALL_PART_SCHEMA] = "schema",
                                        [CALL_PART_POLICY] = "policy",
                                        [CALL_PART_LEDGER] = "ledger",
                                        [CALL_PART_UPSTREAM] = "upstream"};
    return names[part];
}

void metrics_clear(struct metrics *metrics)
{
    arena_free(metrics->arena);
    *metrics = (struct metrics){0};
}

/* ---- rows ---- */

/* Makes the table with its first row. Unknown tools share one, and those beyond the limits another;
 * METRICS_TOOLS_MAX has room for both. */
static struct metrics_tool *row_of(struct metrics *m, struct str tool, bool of_client)
{
    struct str name = tool.len ? str_cut(tool, METRICS_NAME_MAX_BYTES) : STR_LIT(METRICS_UNKNOWN_TOOL);
    if (!m->arena) {
        m->arena = arena_new();
        m->by_name = map_new(m->arena);
        m->tools = ARENA_ARRAY(m->arena, struct metrics_tool *, METRICS_TOOLS_MAX);
    }
    struct metrics_tool *row = map_get(m->by_name, name);
    bool is_full = tool.len && (m->tool_count >= METRICS_TOOLS_MAX - 2 ||
                                (of_client && m->client_tool_count == METRICS_CLIENT_TOOLS_MAX));
    if (!row && is_full)
        row = map_get(m->by_name, name = STR_LIT(METRICS_OTHER));
    if (row)
        return row;
    m->client_tool_count += of_client && !is_full;
    row = ARENA_NEW(m->arena, struct metrics_tool);
    row->name = arena_dup(m->arena, name);
    map_add(m->by_name, row->name, row);
    return m->tools[m->tool_count++] = row;
}

struct metrics_tool *metrics_tool(const struct metrics *m, struct str name)
{
    return m->arena ? map_get(m->by_name, str_cut(name, METRICS_NAME_MAX_BYTES)) : NULL;
}

static void count_outcome(struct metrics *m, struct metrics_tool *row, enum call_mode mode,
                          const struct verdict *v)
{
    for (size_t i = 0; i < row->outcome_count; i++) {
        struct metrics_outcome *o = &row->outcomes[i];
        if (o->mode == mode && o->verdict == v->kind && o->class == v->class) {
            o->count++;
            return;
        }
    }
    row->outcomes = arena_grow(m->arena, row->outcomes, row->outcome_count, sizeof(*row->outcomes));
    row->outcomes[row->outcome_count++] = (struct metrics_outcome){mode, v->kind, v->class, 1};
}

/* ---- codes ---- */

/* Codes come from tools and policies, too: a sentence, or data, is no label. */
static bool is_code(struct str code)
{
    bool good = code.len > 0 && code.len <= METRICS_CODE_MAX_BYTES;
    for (size_t i = 0; good && i < code.len; i++)
        good = ascii_is_letter(code.at[i]) || ascii_is_digit(code.at[i]) || code.at[i] == '_' ||
               code.at[i] == '-' || code.at[i] == '.' || code.at[i] == ':';
    return good;
}

static struct metrics_code *find_code(const struct metrics_tool *row, struct str code)
{
    for (size_t i = 0; i < row->code_count; i++)
        if (str_eq(row->codes[i].code, code))
            return &row->codes[i];
    return NULL;
}

static void count_code(struct metrics *m, struct metrics_tool *row, struct str code, uint64_t times)
{
    struct metrics_code *known = is_code(code) ? find_code(row, code) : NULL;
    if (!known && (!is_code(code) || row->code_count >= METRICS_CODES_MAX - 1)) {
        code = STR_LIT(METRICS_OTHER);
        known = find_code(row, code);
    }
    if (!known) {
        row->codes = arena_grow(m->arena, row->codes, row->code_count, sizeof(*row->codes));
        known = &row->codes[row->code_count++];
        *known = (struct metrics_code){arena_dup(m->arena, code), 0};
    }
    known->count += times;
}

/* ---- loops ---- */

/* A loop begins with the first call that is refused for it, or would be but for mode shadow, and ends with
 * the session's next call that passes. Two sessions that share a slot end each other's loops. */
static bool begins_loop(struct metrics *m, struct str session, bool refused)
{
    if (!refused && !m->looping_count)
        return false;
    uint64_t hash = hash_seeded(session) | 1; /* 0: a free slot */
    uint64_t *slot = &m->looping[(hash >> 1) % METRICS_LOOPS_MAX];
    bool known = *slot == hash;
    if (refused && !known) {
        m->looping_count += *slot == 0;
        *slot = hash;
        return true;
    }
    if (!refused && known) {
        *slot = 0;
        m->looping_count--;
    }
    return false;
}

/* ---- calls ---- */

void metrics_count_call(struct metrics *m, const struct call *call)
{
    const struct verdict *v = &call->verdict;
    const struct tool *tool = call->tool;
    const struct call_timing *t = call->gate->counts_times ? call->outcome.timing : NULL;
    enum call_mode mode = call->request.mode;
    bool is_call = mode != CALL_REPORT, rewritten = v->rewrites && v->rewrites->len > 0;
    struct metrics_tool *row =
        row_of(m, tool ? tool->name : STR_NONE, tool && str_is(tool->origin, "register"));
    for (int i = 0; v->engine && i < METRICS_ENGINES; i++)
        m->engines[i] += strcmp(v->engine, engines[i]) == 0;
    m->verdicts[v->kind]++;
    m->classes[v->class]++;
    m->would += v->would.len > 0;
    m->rewrites += rewritten;
    row->calls += is_call;
    row->refused += is_call && verdict_is_decided(v) && !v->ran;
    row->rewritten += rewritten;
    row->would += v->would.len > 0;
    count_outcome(m, row, mode, v);
    /* A report comes under its session's id instead of its name; it begins and ends no loop. */
    bool runs = v->shadowed && v->shadowed->class == CLASS_LOOP; /* mode shadow: a loop all the same */
    if (is_call && (runs || v->class == CLASS_LOOP || v->class == CLASS_OK)) {
        bool refused = v->class == CLASS_LOOP, begins = begins_loop(m, call->place.session, refused || runs);
        row->saved += refused;
        m->saved += refused;
        m->not_saved += runs;
        row->loops += begins;
        m->loops += begins;
    }
    if (verdict_is_decided(v) && !v->problems.errors)
        count_code(m, row, v->code, 1);
    for (size_t i = 0; verdict_is_decided(v) && v->problems.errors && i < v->problems.count; i++) {
        const struct problem *p = &v->problems.list[i];
        /* a problem that stands for a group counts as often as the group has problems */
        if (!p->warning)
            count_code(m, row, str_of(p->code), p->count ? p->count : 1);
    }
    if (!t)
        return;
    for (int i = 0; i < CALL_PARTS; i++)
        if (t->part_ns[i])
            histogram_add(&m->parts[i], &histogram_fine_bounds, t->part_ns[i]);
    histogram_add(&m->total, &histogram_fine_bounds, t->total_ns);
    if (mode == CALL_RUN)
        histogram_add(error_class_info(v->class)->is_error ? &row->failed : &row->passed,
                      &histogram_mcp_bounds, t->total_ns);
}

void metrics_count_chain(struct metrics *m, struct str tool, struct str outcome)
{
    for (int i = 0; m && i < METRICS_CHAINS; i++) {
        if (!str_is(outcome, chains[i]))
            continue;
        struct metrics_tool *row = metrics_tool(m, tool);
        if (!row) /* its calls were another daemon's */
            row = row_of(m, STR_LIT(METRICS_OTHER), false);
        row->chains[i]++;
    }
}

/* ---- status ---- */

static const char *verdict_at(int kind)
{
    return verdict_name((enum verdict_kind)kind);
}

static const char *class_at(int class)
{
    return error_class_info((enum error_class) class)->name;
}

/* One object, with the counts that are 0 if `all`. */
static void write_counts(struct json_out *out, const char *key, const char *(*name)(int),
                         const uint64_t *counts, int count, bool all)
{
    json_field_open(out, key, '{');
    for (int i = 0; i < count; i++)
        if (all || counts[i])
            json_field_int(out, name(i), (int64_t)counts[i]);
    json_close(out, '}');
}

void metrics_write_tool(struct json_out *out, const struct metrics_tool *row)
{
    uint64_t verdicts[VERDICT_KINDS] = {0}, classes[CLASS_COUNT] = {0};
    for (size_t i = 0; i < row->outcome_count; i++) {
        const struct metrics_outcome *o = &row->outcomes[i];
        classes[o->class] += o->count;
        if (o->mode != CALL_REPORT)
            verdicts[o->verdict] += o->count;
    }
    json_open(out, '{');
    json_fields(out, FIELD_STR("tool", row->name), FIELD_NUM("calls", row->calls),
                FIELD_NUM("refused", row->refused),
                FIELD_IF(row->rewritten, FIELD_NUM("rewritten", row->rewritten)),
                FIELD_IF(row->would, FIELD_NUM("would", row->would)),
                FIELD_IF(row->loops, FIELD_NUM("loops", row->loops)),
                FIELD_IF(row->saved, FIELD_NUM("saved", row->saved)));
    write_counts(out, "verdicts", verdict_at, verdicts, VERDICT_KINDS, false);
    write_counts(out, "classes", class_at, classes, CLASS_COUNT, false);
    json_field_open(out, "codes", '{');
    for (size_t i = 0; i < row->code_count; i++) {
        json_key_str(out, row->codes[i].code);
        json_put_int(out, (int64_t)row->codes[i].count);
    }
    json_close(out, '}');
    write_counts(out, "chains", metrics_chain_name, row->chains, METRICS_CHAINS, false);
    json_close(out, '}');
}

void metrics_write(struct json_out *out, const struct metrics *m)
{
    uint64_t chain_sums[METRICS_CHAINS] = {0}, ended = 0;
    for (int i = 0; i < METRICS_CHAINS; i++) {
        for (size_t n = 0; n < m->tool_count; n++)
            chain_sums[i] += m->tools[n]->chains[i];
        ended += chain_sums[i];
    }
    json_open(out, '{');
    json_fields(out, FIELD_NUM("calls", m->calls), FIELD_NUM("checks", m->checks),
                FIELD_NUM("reports", m->reports), FIELD_NUM("cancelled", m->cancelled),
                FIELD_NUM("rewritten", m->rewrites), FIELD_NUM("would", m->would),
                FIELD_NUM("policy_errors", m->classes[CLASS_POLICY_ERROR]), FIELD_NUM("loops", m->loops),
                FIELD_NUM("calls_saved", m->saved), FIELD_NUM("calls_not_saved", m->not_saved),
                FIELD_NUM("repair_chains", ended),
                FIELD_NUM("fabricated_id_on_retry", chain_sums[METRICS_CHAINS - 1]));
    write_counts(out, "verdicts", verdict_at, m->verdicts, VERDICT_KINDS, true);
    write_counts(out, "classes", class_at, m->classes, CLASS_COUNT, true);
    write_counts(out, "chains", metrics_chain_name, chain_sums, METRICS_CHAINS, true);
    write_counts(out, "ledger", metrics_engine_name, m->engines, METRICS_ENGINES, true);
    json_close(out, '}');
}
