/*
 * For each recorded call: find its session, set the clock, ask one judge or both, count. The main figures are
 * those of --policies; the differences compare what both judges say of the same call. What is
 * remembered of each session and of each open check is bounded: the oldest make room.
 */
#include "base/alloc.h"
#include "replay/replay_internal.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/hash.h"
#include "policy/peer.h"
#include "gate/simulator.h"
#include "json/build.h"
#include "json/write.h"
#include "result/failure_envelope.h"
#include "result/result.h"

#include <stdlib.h>

#define SESSIONS_MAX 65536u /* those silent for longest are forgotten: a later call begins them again */
#define OPEN_MAX     65536u /* checks that wait for their report, the same */

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

struct str replay_heap_copy(struct str text)
{
    struct str cut = str_cut(text, REPLAY_EXAMPLE_MAX_BYTES);
    char *copy = alloc_zeroed(cut.len + 1);
    if (cut.len)
        memcpy(copy, cut.at, cut.len);
    return (struct str){copy, cut.len};
}

/* Reports the loop that the session was in. */
static void forget_session(struct replay *r, struct replay_session *session)
{
    struct replay_loop *loop = &session->loop;
    for (size_t i = 0; i < STOPPED_MAX; i++)
        if (session->stopped[i].times > loop->worst.times)
            loop->worst = session->stopped[i];
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
        session = alloc_zeroed(sizeof(*session));
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
    free((char *)open->reason.at);
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
    if (call->result)
        hash = result_masked(arena, call->result, STR_NONE, false).low | 1;
    else if (call->by_class && call->result_hash.len)
        hash = hash_stable(call->result_hash).low | 1;
    else
        return false;
    while (at < SEEN_MAX && s->seen[at].call != key)
        at++;
    if (at < SEEN_MAX && s->seen[at].result == hash)
        return false;
    if (at == SEEN_MAX)
        at = s->next_seen++ % SEEN_MAX;
    s->seen[at] = (struct replay_seen){key, hash};
    return true;
}

/* Also of a check that was refused: its result is known to belong to it. */
static void keep_open(struct replay *r, const struct replay_pass *p)
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
    open = alloc_zeroed(sizeof(*open));
    *open = (struct replay_open){.node.id = id,
                                 .tool = p->tool,
                                 .difference = p->difference,
                                 .counted = p->waits,
                                 .unjudged = p->unjudged,
                                 .stopped = p->stopped,
                                 .asked = p->sides[0].verdict->kind == VERDICT_ASK,
                                 .mark = p->mark,
                                 .call = p->key,
                                 .arguments = replay_heap_copy(json_to_str(p->arena, p->call->arguments)),
                                 .code = p->row_count > 2 ? p->rows[2]->code : STR_NONE};
    lru_add(&r->open, &open->node);
    for (size_t i = 0; i < p->side_count; i++) {
        open->sides[i] = p->sides[i].open;
        open->refused[i] = !p->sides[i].runs;
    }
    if (open->refused[0])
        open->reason = replay_heap_copy(replay_reason(p->arena, p->sides[0].verdict));
}

static void see_call(struct replay *r, const struct recorded_call *recorded)
{
    struct replay_pass p = {.call = recorded, .arena = recorded->line->arena};
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
    replay_count_call(r, &p);
    keep_open(r, &p);
}

/* ---- a result that comes later ---- */

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
    struct replay_pass p = {.call = &shown, .arena = call->line->arena};
    p.session = session_of(r, call);
    set_clock(r, p.session, call);
    p.tool = open->tool;
    p.difference = open->difference;
    p.side_count = r->sides[1] ? 2 : 1;
    r->report->without_result -= open->counted;
    r->report->unjudged -= open->unjudged && call->ran && !call->by_class;
    if (brings_news(r, p.session, call, open->call) && open->refused[0] && !open->asked) {
        /* It may have been counted as saved: it brought something after all. */
        replay_count_lost(r, &p, p.tool->tool, open->code, open->reason);
        struct replay_stopped *stopped = replay_stopped_of(p.session, open->call);
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
        replay_count_result(r, &p);
    if (p.difference) {
        p.difference->unknown--;
        replay_count_outcome(p.difference, call);
    } else if (both && p.side_count > 1) {
        r->report->against_verdicts[VERDICT_PASS]--;
        replay_compare(r, &p);
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
                       .peers = alloc_zeroed(REPLAY_PEERS_MAX * sizeof(*r.peers)),
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
