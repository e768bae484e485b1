/* Counts what the judges say of calls: in the rows of their tools and reasons, in loops, and as differences
 * between the judges. */
#include "replay/replay_internal.h"

#include "base/arena.h"
#include "json/write.h"

/* ---- why a call was refused, in the words by which the report groups ---- */

/* items[3].name as items[].name: what is wrong is the same. */
static struct str without_indexes(struct arena *arena, struct str path)
{
    char *out = arena_alloc(arena, path.len + 1);
    size_t len = 0;
    for (size_t i = 0; i < path.len; i++)
        if (!(len && out[len - 1] == '[' && ascii_is_digit(path.at[i])))
            out[len++] = path.at[i];
    return (struct str){out, len};
}

/* The first problem that is no warning speaks for the call; NULL: none exists. */
static const struct problem *first_problem(const struct verdict *v)
{
    for (size_t i = 0; i < v->problems.count; i++)
        if (!v->problems.list[i].warning)
            return &v->problems.list[i];
    return NULL;
}

/* The keyword that failed, where arguments are invalid; else the verdict's code, or its class. */
static struct str reason_code(const struct verdict *v)
{
    bool invalid = v->class == CLASS_INVALID_ARGUMENTS && v->kind == VERDICT_REPAIR;
    const struct problem *problem = invalid ? first_problem(v) : NULL;
    if (problem)
        return str_of(problem->code);
    return v->code.len ? v->code : str_of(error_class_info(v->class)->name);
}

/* "limit: must be at most 50, got 80". `problem` NULL: the verdict's detail. */
static struct str reason_of(struct arena *arena, const struct verdict *v, const struct problem *problem)
{
    if (!problem && v->class == CLASS_TOOL_ERROR &&
        v->quoted.len) /* the detail says no more than that it failed */
        return v->quoted;
    if (!problem)
        return v->detail.len ? v->detail : v->quoted;
    return problem->path.len ? ARENA_JOIN(arena, problem->path, STR_LIT(": "), problem->message)
                             : problem->message;
}

struct str replay_reason(struct arena *arena, const struct verdict *v)
{
    return reason_of(arena, v, first_problem(v));
}

/* ---- counting ---- */

static void count_figures(const struct replay_pass *p, struct replay_row *row, bool refused)
{
    row->calls++;
    row->verdicts[p->sides[0].verdict->kind]++;
    row->refused += refused;
}

static void count_row(struct replay *r, const struct replay_pass *p, struct replay_row *row, bool refused)
{
    const struct verdict *v = p->sides[0].verdict;
    count_figures(p, row, refused);
    if (row->example_count < REPLAY_EXAMPLES)
        replay_example_add(r->report, row, p->call,
                           v->class == CLASS_OK ? STR_NONE : replay_reason(p->arena, v));
}

static struct replay_row *class_row(struct replay *r, enum error_class class)
{
    struct replay_row key = {.class = str_of(error_class_info(class)->name)};
    if (!r->classes[class])
        r->classes[class] = replay_table_row(r->report, REPLAY_CLASSES, &key);
    return r->classes[class];
}

static void keep_row(struct replay_pass *p, struct replay_row *row)
{
    if (p->row_count < AWAITED_ROWS)
        p->rows[p->row_count++] = row;
}

/* Once for each row, though several items of a list may have the problem. `problem` NULL: the verdict's own
 * code. */
static void count_problem(struct replay *r, struct replay_pass *p, const struct problem *problem,
                          bool refused)
{
    const struct verdict *v = p->sides[0].verdict;
    struct replay_row key = {.tool = p->tool->tool,
                             .class = str_of(error_class_info(v->class)->name),
                             .code = problem ? str_of(problem->code) : reason_code(v),
                             .path = problem ? without_indexes(p->arena, problem->path) : STR_NONE};
    struct replay_row *row = replay_table_row(r->report, REPLAY_PROBLEMS, &key);
    for (size_t i = 0; i < p->row_count; i++)
        if (p->rows[i] == row)
            return;
    count_figures(p, row, refused);
    if (row->example_count < REPLAY_EXAMPLES)
        replay_example_add(r->report, row, p->call,
                           problem ? reason_of(p->arena, v, problem) : replay_reason(p->arena, v));
    keep_row(p, row);
}

/* Each problem of the call by itself: a call may have several. */
static void count_problems(struct replay *r, struct replay_pass *p, bool refused)
{
    const struct verdict *v = p->sides[0].verdict;
    for (size_t i = 0; i < v->problems.count; i++)
        if (!v->problems.list[i].warning)
            count_problem(r, p, &v->problems.list[i], refused);
    if (!first_problem(v))
        count_problem(r, p, NULL, refused);
}

/* What would have been changed in the arguments, or was proposed. */
static void count_repairs(struct replay *r, const struct replay_pass *p)
{
    const struct verdict *v = p->sides[0].verdict;
    const struct json *patch = p->sides[0].rewrites;
    for (uint32_t i = 0; json_is(patch, JSON_ARRAY) && i < patch->len; i++) {
        struct str pointer = json_str(json_get_text(&patch->items[i], "path"));
        struct str path = without_indexes(p->arena, judge_path_of_pointer(p->arena, pointer));
        struct replay_row key = {.tool = p->tool->tool, .code = STR_LIT("repaired"), .path = path};
        count_row(r, p, replay_table_row(r->report, REPLAY_REPAIRS, &key), false);
    }
    r->report->rewritten += json_is(patch, JSON_ARRAY) && patch->len;
    for (size_t i = 0; i < v->problems.count; i++) {
        const struct problem *problem = &v->problems.list[i];
        if (problem->warning || !problem->suggestion.len)
            continue;
        struct replay_row key = {.tool = p->tool->tool,
                                 .code = STR_LIT("proposed"),
                                 .path = without_indexes(p->arena, problem->path)};
        count_row(r, p, replay_table_row(r->report, REPLAY_REPAIRS, &key), false);
    }
}

/* Refusals by what the ledger remembers of the session, not by the call itself. */
static bool is_stopped(const struct verdict *v)
{
    static const char *const codes[] = {"loop",
                                        "cycle",
                                        "same_call",
                                        "retry_budget_exceeded",
                                        "transient_budget",
                                        "duplicate_in_step",
                                        "already_broken",
                                        "poll_budget",
                                        "same_failure",
                                        "writes_per_turn"};
    return v->kind == VERDICT_HALT || (v->kind != VERDICT_PASS && STR_IS_ONE_OF(v->code, codes));
}

struct replay_stopped *replay_stopped_of(struct replay_session *session, uint64_t key)
{
    for (size_t i = 0; i < STOPPED_MAX; i++)
        if (session->stopped[i].key == key || !session->stopped[i].key)
            return &session->stopped[i];
    return NULL;
}

static void count_stopped(const struct replay_pass *p, const struct replay_row *code)
{
    struct replay_loop *loop = &p->session->loop;
    struct replay_stopped *s = replay_stopped_of(p->session, p->key);
    loop->halted |= p->sides[0].verdict->kind == VERDICT_HALT;
    loop->last_ms = p->call->at_ms;
    loop->tokens += p->session->tokens - p->session->call_tokens;
    if (!loop->saved++)
        loop->first_ms = p->call->at_ms;
    if (!loop->session.at)
        loop->session = replay_heap_copy(p->call->session);
    if (s && !s->key)
        *s = (struct replay_stopped){.key = p->key,
                                     .tool = p->tool->tool,
                                     .code = code->code,
                                     .arguments = replay_heap_copy(json_to_str(p->arena, p->call->arguments)),
                                     .file = p->call->line->file,
                                     .line = p->call->line->number};
    if (s)
        s->times++;
}

/* ---- the next attempt ---- */

/* A call of the same tool in a later step is the next attempt. */
static void settle_awaited(const struct replay_pass *p)
{
    const struct judged *last = &p->sides[p->side_count - 1];
    struct hash128 step = hash_stable(p->call->step);
    for (size_t i = 0; i < AWAITED_MAX; i++) {
        struct replay_awaited *a = &p->session->awaited[i];
        bool same_step = p->call->step.len && a->step.low == step.low && a->step.high == step.high;
        if (!a->tool || a->tool != p->tool || same_step)
            continue;
        bool passes = p->sides[0].runs;
        for (size_t k = 0; k < a->row_count; k++) {
            a->rows[k]->retried++;
            a->rows[k]->recovered += passes;
        }
        if (a->difference) {
            a->difference->retried++;
            a->difference->recovered += last->runs;
        }
        a->tool = NULL;
    }
}

/* ---- differences ---- */

void replay_count_outcome(struct replay_row *d, const struct recorded_call *call)
{
    if (call->refused)
        d->not_run++;
    else if (!call->ran)
        d->unknown++;
    else if (call->failed)
        d->ran_badly++;
    else
        d->ran_well++;
}

/* A call that would no longer run is a refusal, with any result when it ran. */
void replay_compare(struct replay *r, struct replay_pass *p)
{
    const struct verdict *before = p->sides[0].verdict, *after = p->sides[1].verdict;
    enum replay_change change = REPLAY_OTHER_VERDICT;
    r->report->against_verdicts[after->kind]++;
    if (before->kind == after->kind && before->class == after->class && str_eq(before->code, after->code) &&
        str_eq(reason_code(before), reason_code(after)))
        return;
    bool passed = before->kind == VERDICT_PASS, passes = after->kind == VERDICT_PASS;
    if (p->sides[0].runs != p->sides[1].runs)
        change = p->sides[0].runs ? REPLAY_NEW_REFUSAL : REPLAY_NEW_PASS;
    else if (passed != passes)
        change = passed ? REPLAY_NEW_REFUSAL : REPLAY_NEW_PASS;
    const struct verdict *refusing = change == REPLAY_NEW_PASS ? before : after;
    const struct problem *problem = first_problem(refusing);
    struct replay_row key = {
        .change = change,
        .tool = p->tool->tool,
        .code = reason_code(refusing),
        .path = problem ? without_indexes(p->arena, problem->path) : STR_NONE,
        .before = before->kind,
        .after = after->kind,
        .before_class = str_of(error_class_info(before->class)->name),
        .after_class = str_of(error_class_info(after->class)->name),
        .reason = replay_reason(p->arena, refusing),
    };
    struct replay_row *d = replay_table_row(r->report, REPLAY_DIFFERENCES, &key);
    d->calls++;
    r->report->changed[key.change]++;
    p->difference = d;
    replay_example_add(r->report, d, p->call, key.reason);
    replay_count_outcome(d, p->call);
}

/* ---- a call ---- */

/* In the rows of its tool and class, and if something was wrong with it of its code and its problems. */
static void count_reasons(struct replay *r, struct replay_pass *p, bool refused)
{
    const struct verdict *v = p->sides[0].verdict;
    bool wrong = v->class != CLASS_OK;
    struct replay_row code = {.code = reason_code(v)};
    keep_row(p, p->tool);
    keep_row(p, class_row(r, v->class));
    if (wrong)
        keep_row(p, replay_table_row(r->report, REPLAY_CODES, &code));
    count_figures(p, p->tool, refused);
    for (size_t i = 1; i < p->row_count; i++)
        count_row(r, p, p->rows[i], refused);
    if (!wrong)
        return;
    replay_example_add(r->report, p->tool, p->call,
                       replay_reason(p->arena, v)); /* a tool's are of what went wrong */
    count_problems(r, p, refused);
}

static void mark_call(struct replay_pass *p)
{
    struct replay_timeline *t = p->session->timeline;
    const struct verdict *v = p->sides[0].verdict;
    if (!t)
        return;
    t->first_ms = t->first_ms ? t->first_ms : p->call->at_ms;
    t->last_ms = p->call->at_ms;
    if (t->calls++ >= REPLAY_MARKS_MAX)
        return;
    p->mark = &t->marks[t->calls - 1];
    *p->mark = v->kind == VERDICT_ASK ? 'a' : !p->sides[0].runs ? 'r' : v->class != CLASS_OK ? 'f' : 'w';
}

void replay_count_lost(struct replay *r, const struct replay_pass *p, struct str tool, struct str code,
                       struct str reason)
{
    struct replay_row key = {.tool = tool, .code = code};
    struct replay_row *row = replay_table_row(r->report, REPLAY_LOST, &key);
    r->report->lost++;
    row->calls++;
    row->refused++;
    replay_example_add(r->report, row, p->call, reason);
}

void replay_count_call(struct replay *r, struct replay_pass *p)
{
    struct replay_report *report = r->report;
    const struct verdict *v = p->sides[0].verdict;
    bool refused = !p->sides[0].runs, known = p->sides[0].known || (p->side_count > 1 && p->sides[1].known);
    struct replay_row key = {.tool = p->call->tool};
    if (p->sides[0].known)
        key.tool = p->sides[0].tool;
    if (!known)
        count_row(r, p, replay_table_row(report, REPLAY_UNKNOWN_TOOLS, &key), refused);
    report->calls++;
    report->verdicts[v->kind]++;
    report->refused += refused;
    report->asked += refused && v->kind == VERDICT_ASK;
    report->masked += p->sides[0].masked;
    p->session->loop.calls++;
    mark_call(p);
    p->tool = replay_table_row(report, REPLAY_TOOLS, &key);
    settle_awaited(p);
    count_reasons(r, p, refused);
    count_repairs(r, p);
    if (refused && p->is_news && v->kind != VERDICT_ASK)
        replay_count_lost(r, p, p->tool->tool, reason_code(v), replay_reason(p->arena, v));
    report->unjudged += p->unjudged;
    p->stopped = refused && !p->is_news && is_stopped(v);
    if (p->stopped)
        count_stopped(p, p->rows[2]);
    p->session->call_tokens = p->session->tokens;
    if (p->side_count > 1)
        replay_compare(r, p);
    if (refused || (p->difference && p->difference->change == REPLAY_NEW_REFUSAL)) {
        struct replay_awaited *a = &p->session->awaited[p->session->next_awaited++ % AWAITED_MAX];
        *a = (struct replay_awaited){
            .tool = p->tool, .difference = p->difference, .step = hash_stable(p->call->step)};
        memcpy(a->rows, p->rows, sizeof(a->rows));
        a->row_count = refused ? p->row_count : 0;
    }
}

/* ---- a result that comes later ---- */

void replay_count_result(struct replay *r, struct replay_pass *p)
{
    struct replay_report *report = r->report;
    const struct verdict *v = p->sides[0].verdict;
    if (v->class == CLASS_OK)
        return;
    if (p->mark)
        *p->mark = 'f';
    report->verdicts[VERDICT_PASS]--;
    report->verdicts[v->kind]++;
    p->tool->verdicts[VERDICT_PASS]--;
    p->tool->verdicts[v->kind]++;
    struct replay_row *passed = class_row(r, CLASS_OK), *class = class_row(r, v->class);
    passed->calls--;
    passed->verdicts[VERDICT_PASS]--;
    class->calls++;
    class->verdicts[v->kind]++;
    replay_example_add(r->report, class, p->call, replay_reason(p->arena, v));
    struct replay_row key = {.code = reason_code(v)};
    count_row(r, p, replay_table_row(report, REPLAY_CODES, &key), false);
    count_problems(r, p, false);
}
