/*
 * For each recorded call: find its session, set the clock, ask one judge or both, count. The main figures are
 * those of --policies; the differences compare what both judges say of the same call. What is remembered of
 * each session and of each open check is bounded: the oldest make room.
 */
#include "replay/replay.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/lru.h"
#include "policy/peer.h"
#include "gate/simulator.h"
#include "json/build.h"
#include "json/write.h"
#include "result/failure_envelope.h"
#include "result/result.h"

#include <stdlib.h>

#define SESSIONS_MAX 65536u /* those silent for longest are forgotten: a later call begins them again */
#define OPEN_MAX     65536u /* checks that wait for their report, the same */
#define SEEN_MAX     32u    /* calls of one session whose last result is known; the oldest goes */
#define STOPPED_MAX  4u     /* different calls of one session that were stopped; others are only counted */
#define AWAITED_MAX  4u     /* refused calls of one session whose next attempt is awaited */
#define AWAITED_ROWS 8u     /* of the tool, class and code of such a call, and of its first problems */

/* A refused call, until the session calls the tool again in a later step. */
struct replay_awaited {
    struct replay_row *tool;               /* NULL: free */
    struct replay_row *rows[AWAITED_ROWS]; /* where --policies refused it */
    size_t row_count;                      /* 0: only --against did */
    struct replay_row *difference;         /* NULL: none */
    struct hash128 step;
};

/* A call that was stopped, perhaps over and over. */
struct replay_stopped {
    uint64_t key, times;              /* its hash; 0: free */
    struct str tool, code, arguments; /* the last on the heap */
    const char *file;
    uint64_t line;
};

/* What a call brought last. */
struct replay_seen {
    uint64_t call, result; /* hashes; 0: free */
};

struct replay_session {
    struct lru_node node; /* first */
    int64_t clock_ms;
    bool is_counted;                  /* it has made a call */
    int64_t tokens, call_tokens;      /* that it took so far, and up to its last call */
    struct replay_timeline *timeline; /* NULL: there are as many as are kept */
    struct replay_loop loop;          /* its session is on the heap, once a call was stopped */
    struct replay_stopped stopped[STOPPED_MAX];
    struct replay_seen seen[SEEN_MAX];
    uint32_t next_seen;
    uint32_t next_awaited;
    struct replay_awaited awaited[AWAITED_MAX];
};

/* A check without its result. */
struct replay_open {
    struct lru_node node; /* first */
    struct replay_row *tool;
    struct replay_row *difference;
    struct judge_open sides[2];
    bool refused[2];      /* that side has judged already: it would not have run */
    bool counted;         /* as a call without a result */
    bool unjudged;        /* as a call whose result was not judged */
    bool stopped;         /* as a call that is saved */
    bool asked;           /* a person would have been asked: the result is not lost */
    char *mark;           /* in its session's timeline; NULL: none */
    uint64_t call;        /* its hash */
    struct str code;      /* of a refused one */
    struct str arguments; /* as JSON, cut; on the heap */
};

struct replay {
    struct judge *sides[2]; /* --policies, --against */
    struct replay_report *report;
    struct recorded_reader reader;
    struct lru sessions, open; /* of struct replay_session and struct replay_open */
    struct peer *peers;
    size_t peer_count;
    struct replay_row *classes[CLASS_COUNT]; /* of the table, made with the first call */
};

/* One call while it is judged. */
struct pass {
    const struct recorded_call *call;
    struct arena *arena;
    struct replay_session *session;
    struct judged sides[2]; /* --policies, --against */
    size_t side_count;
    struct replay_row *tool;
    struct replay_row *difference;
    uint64_t key;         /* the call's hash: tool and arguments */
    bool is_news;         /* its recorded result was another than the last time, or the first */
    bool stopped;         /* counted as saved */
    char *mark;           /* in the timeline; NULL: none */
    bool unjudged, waits; /* on one of the sides: for the result */
    struct replay_row *rows[AWAITED_ROWS]; /* where the call is counted, if it was refused */
    size_t row_count;
};

/* ---- users ---- */

/* The groups are those of this host; the name is the recorded one. */
static const struct peer *peer_of(struct replay *r, const struct recorded_call *call)
{
    if (!call->has_uid)
        return NULL;
    for (size_t i = 0; i < r->peer_count; i++)
        if (r->peers[i].uid == call->uid && (!call->user.len || str_is(call->user, r->peers[i].user)))
            return &r->peers[i];
    if (r->peer_count < REPLAY_PEERS_MAX)
        r->peer_count++;
    struct peer *peer = &r->peers[r->peer_count - 1];
    peer_init(peer, call->uid, (gid_t)call->uid, 0);
    struct str user = str_cut(call->user, sizeof(peer->user) - 1);
    if (user.len) {
        memcpy(peer->user, user.at, user.len);
        peer->user[user.len] = '\0';
    }
    return peer;
}

/* ---- sessions and time ---- */

static void *must_calloc(size_t size)
{
    void *memory = calloc(1, size);
    if (!memory)
        abort();
    return memory;
}

/* Reports the loop that the session was in. */
static void forget_session(struct replay *r, struct replay_session *session)
{
    struct replay_loop *loop = &session->loop;
    for (size_t i = 0; i < STOPPED_MAX; i++) {
        const struct replay_stopped *s = &session->stopped[i];
        if (s->times <= loop->times)
            continue;
        loop->tool = s->tool;
        loop->code = s->code;
        loop->arguments = s->arguments;
        loop->times = s->times;
        loop->file = s->file;
        loop->line = s->line;
    }
    if (loop->saved)
        replay_loop_add(r->report, loop);
    lru_remove(&r->sessions, &session->node);
    free((char *)loop->session.at);
    for (size_t i = 0; i < STOPPED_MAX; i++)
        free((char *)session->stopped[i].arguments.at);
    free(session);
}

/* Sessions of two users are two, whatever they are called. */
static struct hash128 session_id_of(const struct recorded_call *call)
{
    struct hash128 id = hash_stable(call->session);
    if (call->has_uid)
        id.high ^= (uint64_t)call->uid + 1;
    if (call->agent.len) /* what a sub-agent has seen, the others have not */
        id.low ^= hash_stable(call->agent).low;
    return id;
}

/* Found or made; counted with its first call. */
static struct replay_session *session_of(struct replay *r, const struct recorded_call *call)
{
    struct hash128 id = session_id_of(call);
    struct replay_session *session = (struct replay_session *)lru_find(&r->sessions, id);
    if (!session) {
        if (r->sessions.count == SESSIONS_MAX)
            forget_session(r, (struct replay_session *)r->sessions.oldest);
        session = must_calloc(sizeof(*session));
        session->node.id = id;
        lru_add(&r->sessions, &session->node);
    }
    if (session->is_counted || call->kind > RECORDED_CHECK)
        return session;
    session->is_counted = true;
    r->report->sessions += !call->agent.len;
    if (call->agent.len) { /* it is part of its session, also if that makes no call of its own */
        struct recorded_call whole = *call;
        whole.agent = STR_NONE;
        session_of(r, &whole);
    }
    session->timeline = replay_timeline_add(r->report, call);
    if (session->timeline)
        session->timeline->tokens = session->tokens;
    return session;
}

static void remove_open(struct replay *r, struct replay_open *open)
{
    lru_remove(&r->open, &open->node);
    free((char *)open->arguments.at);
    free(open);
}

/* A session whose calls have no times has one each second. */
static void set_clock(struct replay *r, struct replay_session *session, const struct recorded_call *call)
{
    struct replay_report *report = r->report;
    if (call->at_ms) {
        if (!report->first_ms || call->at_ms < report->first_ms)
            report->first_ms = call->at_ms;
        if (call->at_ms > report->last_ms)
            report->last_ms = call->at_ms;
        report->backwards += call->at_ms < session->clock_ms;
        session->clock_ms = call->at_ms;
    } else {
        session->clock_ms = (session->clock_ms ? session->clock_ms : SIMULATOR_TIME_MS) + REPLAY_STEP_MS;
    }
    simulator_set_clock(session->clock_ms);
}

/* ---- what a call brought ---- */

/* Whether the call failed. Counts the failures that the recording marks, and those that the text alone shows.
 */
static bool count_failure(struct replay_report *report, struct arena *arena, const struct recorded_call *call)
{
    const struct envelope_call of = {call->tool, call->arguments};
    const struct json error = json_string(call->error);
    struct result result;
    if (!call->result && !call->error.len)
        return call->failed;
    result_read(arena, call->result ? call->result : recorded_result(arena, &error), &result);
    bool marked = call->failed || result.is_error;
    bool shown = envelope_detect(arena, &result, &of).kind != ENVELOPE_NONE;
    report->failures += marked;
    report->failures_shown += marked && shown;
    report->failures_unmarked += !marked && shown;
    return marked || shown;
}

/* A failure brings nothing; neither does what the same call has brought before. Recordings rarely say that a
 * tool has failed: its text does. */
static bool brings_news(struct replay *r, struct replay_session *s, const struct recorded_call *call,
                        uint64_t key)
{
    struct arena *arena = call->line->arena;
    uint64_t hash;
    unsigned at = 0;
    if (!call->ran || count_failure(r->report, arena, call))
        return false;
    if (call->result) {
        struct buf text = buf_in(arena);
        result_mask_write(&text, arena, call->result, false);
        hash = hash_stable(buf_view(&text)).low | 1;
    } else if (call->by_class && call->result_hash.len) {
        hash = hash_stable(call->result_hash).low | 1;
    } else {
        return false;
    }
    while (at < SEEN_MAX && s->seen[at].call != key)
        at++;
    if (at < SEEN_MAX && s->seen[at].result == hash)
        return false;
    if (at == SEEN_MAX)
        at = s->next_seen++ % SEEN_MAX;
    s->seen[at] = (struct replay_seen){key, hash};
    return true;
}

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

static struct str reason_text(struct arena *arena, const struct verdict *v)
{
    return reason_of(arena, v, first_problem(v));
}

/* ---- counting ---- */

static void count_figures(const struct pass *p, struct replay_row *row, bool refused)
{
    row->calls++;
    row->verdicts[p->sides[0].verdict->kind]++;
    row->refused += refused;
}

static void count_row(struct replay *r, const struct pass *p, struct replay_row *row, bool refused)
{
    const struct verdict *v = p->sides[0].verdict;
    count_figures(p, row, refused);
    if (row->example_count < REPLAY_EXAMPLES)
        replay_example_add(r->report, row, p->call,
                           v->class == CLASS_OK ? STR_NONE : reason_text(p->arena, v));
}

static struct replay_row *class_row(struct replay *r, enum error_class class)
{
    struct replay_row key = {.class = str_of(error_class_info(class)->name)};
    if (!r->classes[class])
        r->classes[class] = replay_table_row(r->report, REPLAY_CLASSES, &key);
    return r->classes[class];
}

static void keep_row(struct pass *p, struct replay_row *row)
{
    if (p->row_count < AWAITED_ROWS)
        p->rows[p->row_count++] = row;
}

/* Once for each row, though several items of a list may have the problem. `problem` NULL: the verdict's own
 * code. */
static void count_problem(struct replay *r, struct pass *p, const struct problem *problem, bool refused)
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
                           problem ? reason_of(p->arena, v, problem) : reason_text(p->arena, v));
    keep_row(p, row);
}

/* Each problem of the call by itself: a call may have several. */
static void count_problems(struct replay *r, struct pass *p, bool refused)
{
    const struct verdict *v = p->sides[0].verdict;
    for (size_t i = 0; i < v->problems.count; i++)
        if (!v->problems.list[i].warning)
            count_problem(r, p, &v->problems.list[i], refused);
    if (!first_problem(v))
        count_problem(r, p, NULL, refused);
}

/* What would have been changed in the arguments, or was proposed. */
static void count_repairs(struct replay *r, const struct pass *p)
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

/* Cut, as an example is; a name may have zero bytes. */
static struct str heap_copy(struct str text)
{
    struct str cut = str_cut(text, REPLAY_EXAMPLE_MAX_BYTES);
    char *copy = must_calloc(cut.len + 1);
    if (cut.len)
        memcpy(copy, cut.at, cut.len);
    return (struct str){copy, cut.len};
}

static struct replay_stopped *stopped_of(struct replay_session *session, uint64_t key)
{
    for (size_t i = 0; i < STOPPED_MAX; i++)
        if (session->stopped[i].key == key || !session->stopped[i].key)
            return &session->stopped[i];
    return NULL;
}

static void count_stopped(const struct pass *p, const struct replay_row *code)
{
    struct replay_loop *loop = &p->session->loop;
    struct replay_stopped *s = stopped_of(p->session, p->key);
    loop->halted |= p->sides[0].verdict->kind == VERDICT_HALT;
    loop->last_ms = p->call->at_ms;
    loop->tokens += p->session->tokens - p->session->call_tokens;
    if (!loop->saved++)
        loop->first_ms = p->call->at_ms;
    if (!loop->session.at)
        loop->session = heap_copy(p->call->session);
    if (s && !s->key)
        *s = (struct replay_stopped){.key = p->key,
                                     .tool = p->tool->tool,
                                     .code = code->code,
                                     .arguments = heap_copy(json_to_str(p->arena, p->call->arguments)),
                                     .file = p->call->line->file,
                                     .line = p->call->line->number};
    if (s)
        s->times++;
}

/* ---- the next attempt ---- */

/* A call of the same tool in a later step is the next attempt. */
static void settle_awaited(const struct pass *p)
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

/* What the recording has of this call: it ran well or badly, or it was refused then, too. */
static void count_outcome(struct replay_row *d, const struct recorded_call *call)
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
static void compare(struct replay *r, struct pass *p)
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
        .reason = reason_text(p->arena, refusing),
    };
    struct replay_row *d = replay_table_row(r->report, REPLAY_DIFFERENCES, &key);
    d->calls++;
    r->report->changed[key.change]++;
    p->difference = d;
    replay_example_add(r->report, d, p->call, key.reason);
    count_outcome(d, p->call);
}

/* ---- a call ---- */

/* In the rows of its tool and class, and if something was wrong with it of its code and its problems. */
static void count_reasons(struct replay *r, struct pass *p, bool refused)
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
                       reason_text(p->arena, v)); /* a tool's are of what went wrong */
    count_problems(r, p, refused);
}

static void mark_call(struct pass *p)
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

/* A call that brought something new, and would have been refused. */
static void count_lost(struct replay *r, const struct pass *p, struct str tool, struct str code,
                       struct str reason)
{
    struct replay_row key = {.tool = tool, .code = code};
    struct replay_row *row = replay_table_row(r->report, REPLAY_LOST, &key);
    r->report->lost++;
    row->calls++;
    row->refused++;
    replay_example_add(r->report, row, p->call, reason);
}

static void count_call(struct replay *r, struct pass *p)
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
        count_lost(r, p, p->tool->tool, reason_code(v), reason_text(p->arena, v));
    report->unjudged += p->unjudged;
    p->stopped = refused && !p->is_news && is_stopped(v);
    if (p->stopped)
        count_stopped(p, p->rows[2]);
    p->session->call_tokens = p->session->tokens;
    if (p->side_count > 1)
        compare(r, p);
    if (refused || (p->difference && p->difference->change == REPLAY_NEW_REFUSAL)) {
        struct replay_awaited *a = &p->session->awaited[p->session->next_awaited++ % AWAITED_MAX];
        *a = (struct replay_awaited){
            .tool = p->tool, .difference = p->difference, .step = hash_stable(p->call->step)};
        memcpy(a->rows, p->rows, sizeof(a->rows));
        a->row_count = refused ? p->row_count : 0;
    }
}

/* Also of a check that was refused: its result is known to belong to it. */
static void keep_open(struct replay *r, const struct pass *p)
{
    r->report->without_result += p->waits;
    if (p->call->kind != RECORDED_CHECK || !p->call->id.len)
        return;
    struct hash128 id = hash_stable(p->call->id);
    struct replay_open *open = (struct replay_open *)lru_find(&r->open, id);
    if (open) /* an id that is used again: the earlier check will get no report */
        remove_open(r, open);
    if (r->open.count == OPEN_MAX)
        remove_open(r, (struct replay_open *)r->open.oldest);
    open = must_calloc(sizeof(*open));
    *open = (struct replay_open){.node.id = id,
                                 .tool = p->tool,
                                 .difference = p->difference,
                                 .counted = p->waits,
                                 .unjudged = p->unjudged,
                                 .stopped = p->stopped,
                                 .asked = p->sides[0].verdict->kind == VERDICT_ASK,
                                 .mark = p->mark,
                                 .call = p->key,
                                 .arguments = heap_copy(json_to_str(p->arena, p->call->arguments)),
                                 .code = p->row_count > 2 ? p->rows[2]->code : STR_NONE};
    lru_add(&r->open, &open->node);
    for (size_t i = 0; i < p->side_count; i++) {
        open->sides[i] = p->sides[i].open;
        open->refused[i] = !p->sides[i].runs;
    }
}

static void see_call(struct replay *r, const struct recorded_call *recorded)
{
    struct pass p = {.call = recorded, .arena = recorded->line->arena};
    if (recorded->arguments_unknown) {
        r->report->without_arguments++;
        return;
    }
    p.session = session_of(r, recorded);
    set_clock(r, p.session, recorded);
    const struct peer *peer = peer_of(r, recorded);
    p.side_count = r->sides[1] ? 2 : 1;
    for (size_t i = 0; i < p.side_count; i++) {
        judge_call(r->sides[i], p.arena, recorded, peer, &p.sides[i]);
        p.unjudged |= p.sides[i].unjudged;
        p.waits |= p.sides[i].open.is_open;
    }
    p.key = recorded->arguments ? json_fingerprint(p.arena, recorded->arguments, NULL, 0).low : 0;
    p.key = (p.key ^ hash_stable(recorded->tool).low) | 1;
    p.is_news = brings_news(r, p.session, recorded, p.key);
    count_call(r, &p);
    keep_open(r, &p);
}

/* ---- a result that comes later ---- */

/* The check was counted as a pass; the result says otherwise. */
static void recount(struct replay *r, struct pass *p)
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
    replay_example_add(r->report, class, p->call, reason_text(p->arena, v));
    struct replay_row key = {.code = reason_code(v)};
    count_row(r, p, replay_table_row(report, REPLAY_CODES, &key), false);
    count_problems(r, p, false);
}

static void see_report(struct replay *r, const struct recorded_call *call)
{
    struct replay_open *open =
        call->id.len ? (struct replay_open *)lru_find(&r->open, hash_stable(call->id)) : NULL;
    if (!open) {
        r->report->without_check += !call->perhaps;
        return;
    }
    struct recorded_call shown = *call; /* with the arguments of its check */
    const struct json arguments = json_string(open->arguments);
    if (!shown.arguments)
        shown.arguments = &arguments;
    struct pass p = {.call = &shown, .arena = call->line->arena};
    p.session = session_of(r, call);
    set_clock(r, p.session, call);
    p.tool = open->tool;
    p.difference = open->difference;
    p.side_count = r->sides[1] ? 2 : 1;
    r->report->without_result -= open->counted;
    r->report->unjudged -= open->unjudged && call->ran && !call->by_class;
    if (brings_news(r, p.session, call, open->call) && open->refused[0] && !open->asked) {
        /* It may have been counted as saved: it brought something after all. */
        count_lost(r, &p, p.tool->tool, open->code, STR_NONE);
        struct replay_stopped *stopped = stopped_of(p.session, open->call);
        p.session->loop.saved -= open->stopped && p.session->loop.saved;
        if (open->stopped && stopped && stopped->times)
            stopped->times--;
    }
    const struct peer *peer = peer_of(r, call);
    bool both = true;
    for (size_t i = 0; i < p.side_count; i++) {
        both &= open->sides[i].is_open;
        if (open->sides[i].is_open)
            judge_report(r->sides[i], p.arena, call, peer, &open->sides[i], p.tool->tool, &p.sides[i]);
    }
    p.mark = open->mark;
    if (open->sides[0].is_open)
        recount(r, &p);
    if (p.difference) {
        p.difference->unknown--;
        count_outcome(p.difference, call);
    } else if (both && p.side_count > 1) {
        r->report->against_verdicts[VERDICT_PASS]--;
        compare(r, &p);
    }
    remove_open(r, open);
}

static void see_usage(struct replay *r, const struct recorded_call *call)
{
    struct replay_session *session = session_of(r, call);
    int64_t tokens = call->usage.input + call->usage.output;
    r->report->usage.input += call->usage.input;
    r->report->usage.cached += call->usage.cached;
    r->report->usage.output += call->usage.output;
    session->tokens += tokens;
    if (session->timeline)
        session->timeline->tokens += tokens;
}

static void see_compaction(struct replay *r, const struct recorded_call *call)
{
    set_clock(r, session_of(r, call), call);
    for (size_t i = 0; i < 2 && r->sides[i]; i++)
        judge_compaction(r->sides[i], call->line->arena, call);
}

static void seen(void *owner, const struct recorded_call *call)
{
    static void (*const see[])(struct replay *,
                               const struct recorded_call *) = {[RECORDED_CALL] = see_call,
                                                                [RECORDED_CHECK] = see_call,
                                                                [RECORDED_REPORT] = see_report,
                                                                [RECORDED_USAGE] = see_usage,
                                                                [RECORDED_COMPACTION] = see_compaction};
    see[call->kind](owner, call);
}

/* ---- the whole ---- */

static void end_file(struct recorded_reader *reader, struct recording *recording)
{
    const char *why;
    if (reader->file && reader->transcript && !reader->transcript(reader->transcripts, reader, NULL, &why))
        recording_cut_off(recording, reader->file, why);
}

void replay_run(const struct replay_options *options, struct arena *arena, struct replay_report *report)
{
    struct recording *recording = options->recording;
    struct recording_line line;
    int64_t began_us = clock_mono_us();
    const char *why;
    struct replay r = {.sides = {options->policies, options->against},
                       .report = report,
                       .peers = must_calloc(REPLAY_PEERS_MAX * sizeof(*r.peers)),
                       .reader = {.format = options->format,
                                  .seen = seen,
                                  .owner = &r,
                                  .transcript = options->transcript,
                                  .transcripts = options->transcripts}};
    replay_report_init(report, arena);
    lru_init(&r.sessions);
    lru_init(&r.open);
    while (recording_next(recording, &line)) {
        if (r.reader.file != line.file)
            end_file(&r.reader, recording);
        if (!recorded_calls_read(&r.reader, &line, &why))
            recording_reject(recording, why);
        if (options->line_read)
            options->line_read(options->owner, recording);
    }
    end_file(&r.reader, recording);
    while (r.open.oldest)
        remove_open(&r, (struct replay_open *)r.open.oldest);
    while (r.sessions.oldest)
        forget_session(&r, (struct replay_session *)r.sessions.oldest);
    lru_clear(&r.sessions);
    lru_clear(&r.open);
    report->evicted = judge_evicted(options->policies);
    report->faults = recording_faults(recording);
    report->lines = recording_lines(recording);
    report->us = clock_mono_us() - began_us;
    replay_report_finish(report);
    recorded_reader_clear(&r.reader);
    free(r.peers);
}
