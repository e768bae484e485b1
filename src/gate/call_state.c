/* Reads and fills the state of a call; decides nothing. */
#include "gate/call_state.h"

#include "base/arena.h"
#include "catalog/mcp_version.h"
#include "json/build.h"
#include "json/write.h"

/* ---- for the stages ---- */

struct str call_goal(const struct call *c)
{
    return c->request.goal.len ? c->request.goal : c->answer->goal;
}

struct policy_call call_for_policy(struct call *c)
{
    const struct call_request *r = &c->request;
    const struct json *history = &c->answer->history, *facts = &c->answer->facts;
    return (struct policy_call){
        .tool = c->tool->name,
        .session = r->session,
        .goal = call_goal(c),
        .step = r->step,
        .user = r->peer ? str_of(r->peer->user) : STR_NONE,
        .uid = r->peer ? r->peer->uid : 0,
        .turn = c->answer->turn ? c->answer->turn : r->turn,
        .attempt = c->answer->attempt,
        .time = &c->time,
        .no_progress = c->answer->no_progress,
        .history = json_is(history, JSON_ARRAY) ? history : NULL,
        .facts = r->facts                      ? r->facts
                 : json_is(facts, JSON_OBJECT) ? facts
                                               : NULL,
        .context = r->context,
        .owner = c->listener,
        .progress = c->progress,
        .log = c->log,
    };
}

static bool is_named(struct str session, struct hash128 id)
{
    struct hash128 hash = ledger_session_id(session);
    return hash.high == id.high && hash.low == id.low;
}

static struct str session_key(const struct call *c)
{
    const struct call_request *r = &c->request;
    return call_session_key(c->arena, &c->generation->config, r->peer, r->session, r->connection);
}

static uint32_t call_uid(const struct call_request *request)
{
    return request->peer ? request->peer->uid : 0;
}

/* A report is of the session that its callId names, which may be known by its hash only; if it names one,
 * too, call_read_id has compared them. */
void call_set_place(struct call *c)
{
    const struct call_request *r = &c->request;
    const struct config *config = &c->generation->config;
    bool reports = r->mode == CALL_REPORT;
    c->place = (struct ledger_place){
        .session = reports ? STR_NONE : session_key(c),
        .uid = call_uid(r),
        .session_id = r->session_id,
        .anonymous = !r->session.len && (!reports || is_named(session_key(c), r->session_id)),
        .anonymous_repeats = config->anonymous_repeats,
        .turn = r->turn,
        .turn_text = r->turn_text,
        .turn_idle_s = config->turn_idle_s,
        .step = r->step,
        .batch = r->batch,
        .agent = r->agent.len ? ledger_turn_text(r->agent) : 0,
        .by_person = r->by_person,
    };
}

const struct ledger_problem *call_list_problems(struct arena *arena, const struct problems *problems,
                                                size_t *count)
{
    *count = 0;
    if (problems->more || !problems->errors)
        return NULL;
    struct ledger_problem *list = ARENA_ARRAY(arena, struct ledger_problem, problems->errors);
    for (size_t i = 0; i < problems->count; i++)
        if (!problems->list[i].warning)
            list[(*count)++] =
                (struct ledger_problem){problems->list[i].path, str_of(problems->list[i].code)};
    return list;
}

const struct ledger_problem *call_problems(const struct call *c, size_t *count)
{
    *count = 0;
    if (c->verdict.class != CLASS_INVALID_ARGUMENTS)
        return NULL;
    return call_list_problems(c->arena, &c->verdict.problems, count);
}

void call_discard_unless_enforced(struct call *c)
{
    bool always =
        !c->tool || c->verdict.class == CLASS_AGENT_RUNS_THIS || c->args.unreadable || c->tool->held;
    if (always || c->tool->mode == POLICY_ENFORCE)
        return;
    c->args.now = c->args.raw;
    verdict_discard(&c->verdict, c->arena, c->tool->mode == POLICY_SHADOW);
}

/* ---- for callers ---- */

const struct call_outcome *call_outcome(const struct call *c)
{
    return &c->outcome;
}

const struct tool *call_tool(const struct call *c)
{
    return c->tool;
}

bool call_is_dry_run(const struct call *c)
{
    return c->request.dry_run;
}

struct str call_id(struct call *c)
{
    if (c->id)
        return (struct str){c->id, LEDGER_CALL_ID_CHARS};
    char *id = arena_alloc(c->arena, LEDGER_CALL_ID_CHARS + 1);
    struct hash128 session =
        c->place.session.len ? ledger_session_id(c->place.session) : c->place.session_id; /* of a report */
    ledger_call_id(c->gate->ledger, session, c->admission, call_uid(&c->request), id);
    c->id = id;
    return (struct str){id, LEDGER_CALL_ID_CHARS};
}

void call_report_of(const struct call *check, struct call_request *report)
{
    const struct ledger_place *place = &check->place;
    report->session_id = place->session.len ? ledger_session_id(place->session) : place->session_id;
    report->admission = check->admission;
}

enum err call_read_id(const struct gate *gate, struct arena *arena, struct str id,
                      struct call_request *report, struct why *why)
{
    if (id.len != LEDGER_CALL_ID_CHARS)
        return err_set(why, ERR_NOT_FOUND,
                       "expected the %u characters that toolgate/check gave, got %zu characters",
                       LEDGER_CALL_ID_CHARS, id.len);
    enum err err =
        ledger_call_id_read(gate->ledger, id, call_uid(report), &report->session_id, &report->admission);
    if (err == ERR_UNAVAILABLE)
        return err_set(why, err,
                       "this daemon has not reached Redis since it started, so it cannot tell whose call "
                       "this is: report it "
                       "again in a moment");
    if (err != OK)
        return err_set(
            why, ERR_NOT_FOUND,
            "toolgate gave no check of this user this callId: report the one of the check's reply, "
            "unchanged");
    struct str named =
        call_session_key(arena, &gate->generation->config, report->peer, report->session, report->connection);
    if (report->session.len && !is_named(named, report->session_id))
        return err_set(why, ERR_NOT_FOUND,
                       "this call was checked in another session than '" STR_FMT
                       "': leave dev.toolgate/session out of reports, or name the check's",
                       STR_ARG(str_cut(report->session, 128)));
    return OK;
}

const struct json *call_visible_result(const struct call *c)
{
    const struct result *shown = &c->compacted.result;
    if (verdict_replaces_result(&c->verdict))
        return NULL;
    if (!c->compacted.done)
        return c->result.value;
    if (shown->structured)
        return shown->structured;
    struct result read;
    struct json_member content = json_member(STR_LIT("content"), *shown->content);
    struct json sent = json_object(c->arena, &content, 1);
    result_read(c->arena, &sent, &read);
    return read.value;
}

struct str call_session_key(struct arena *arena, const struct config *config, const struct peer *peer,
                            struct str session, struct str connection)
{
    struct buf key = buf_in(arena);
    if (!session.len) {
        buf_text(&key, "anonymous/");
        session = connection;
    } else if (config->shared_namespace || !peer) {
        buf_text(&key, "shared/");
    } else {
        buf_text(&key, "uid:");
        buf_int(&key, (int64_t)peer->uid);
        buf_byte(&key, '/');
    }
    buf_str(&key, session);
    return buf_view(&key);
}

/* ---- a replayed call whose recording has masks in place of secrets ---- */

/* True: at least one was dropped. */
static bool drop_masked(const struct call_request *r, struct problems *problems)
{
    size_t kept = 0, before = problems->count;
    for (size_t i = 0; i < before; i++) {
        const struct problem *p = &problems->list[i];
        bool is_masked = false; /* at the path itself, or inside of it */
        for (size_t k = 0; k < r->masked_count && !is_masked; k++) {
            struct str path = p->path, masked = r->masked[k];
            is_masked = path.len >= masked.len && str_eq(str_cut(path, masked.len), masked) &&
                        (path.len == masked.len || path.at[masked.len] == '.' || path.at[masked.len] == '[');
        }
        if (is_masked)
            problems->errors -= !p->warning;
        else
            problems->list[kept++] = *p;
    }
    problems->count = kept;
    return kept < before;
}

void call_drop_masked(struct call *c)
{
    struct verdict *v = &c->verdict;
    bool of_arguments = v->class == CLASS_INVALID_ARGUMENTS || v->class == CLASS_FABRICATED_ID;
    bool dropped = drop_masked(&c->request, &c->args.problems);
    dropped |= drop_masked(&c->request, &v->problems);
    c->outcome.masked |= dropped;
    if (dropped && of_arguments && !v->problems.errors && !v->problems.more)
        verdict_discard(v, c->arena, false);
}

/* ---- what a call is known by: its method, and the hashes that the ledger compares calls and results by. The
 * decision log wants them, too, mostly of the same values: of a large one each is a tenth of the call's time.
 * ---- */

struct str call_method(enum call_mode mode)
{
    static const struct str names[] = {[CALL_RUN] = STR("tools/call"),
                                       [CALL_CHECK] = STR("toolgate/check"),
                                       [CALL_REPORT] = STR("toolgate/report")};
    return names[mode];
}

struct hash128 call_fingerprint(const void *call)
{
    const struct call *c = call;
    const struct json *args = c->args.now ? c->args.now : c->request.arguments;
    return json_fingerprint(c->arena, args, c->tool ? c->tool->volatiles : NULL,
                            c->tool ? c->tool->volatile_count : 0);
}

void call_set_fingerprint(struct call *c)
{
    c->fingerprint = call_fingerprint(c);
    c->fingerprinted = c->args.now ? c->args.now : c->request.arguments;
}

struct hash128 call_arguments_hash(struct call *c)
{
    const struct json *given = c->request.arguments;
    bool same = given && given == c->fingerprinted && !(c->tool && c->tool->volatile_count);
    return same ? c->fingerprint : json_fingerprint(c->arena, given, NULL, 0);
}

struct hash128 call_result_hash(struct call *c, const struct json *value)
{
    if (c->hashed != value) {
        c->result_hash = json_fingerprint(c->arena, value, NULL, 0);
        c->hashed = value;
    }
    return c->result_hash;
}

/* ---- replies ---- */

void call_reply_check(struct json_out *out, struct call *call)
{
    const struct call_outcome *outcome = call_outcome(call);
    json_field_str(out, "callId", call_id(call));
    if (outcome->alias.len) /* the agent runs the tool by its present name */
        json_field_str(out, "tool", call_tool(call)->name);
    json_field_optional(out, "arguments", outcome->arguments);
    json_field_optional_str(out, "text", outcome->feedback.len ? outcome->feedback : outcome->advice);
    json_field_optional_str(out, "advice", outcome->advice);
    if (outcome->traces) {
        const struct call_trace *traces = call_outcome(call)->traces;
        json_field_open(out, "trace", '[');
        for (size_t i = 0; i < call_outcome(call)->trace_count; i++) {
            json_open(out, '{');
            json_field_text(out, "stage", traces[i].stage);
            json_field_str(out, "decision", traces[i].decision);
            json_key(out, "us");
            json_put_double(out, (double)traces[i].ns / 1000.0);
            json_close(out, '}');
        }
        json_close(out, ']');
    }
}

void call_reply_text_block(struct json_out *out, struct str text)
{
    if (!text.len)
        return;
    json_open(out, '{');
    json_field_text(out, "type", "text");
    json_field_str(out, "text", text);
    json_close(out, '}');
}

void call_reply_content(struct arena *arena, struct json_out *out, const struct call *call,
                        struct str protocol, const struct json *unsent)
{
    const struct call_outcome *outcome = call_outcome(call);
    const struct json *content = outcome->content;
    bool is_error = verdict_replaces_result(outcome->verdict);
    uint32_t count = !is_error && json_is(content, JSON_ARRAY) ? content->len : 0;
    json_field_open(out, "content", '[');
    for (uint32_t i = 0; i < count; i++)
        json_put(out, mcp_version_content(arena, protocol, &content->items[i]));
    if (unsent && !count)
        call_reply_text_block(out, json_to_str(arena, unsent));
    if (!is_error)
        call_reply_text_block(out, outcome->advice);
    else
        call_reply_text_block(out, outcome->feedback.len ? outcome->feedback : outcome->verdict->detail);
    json_close(out, ']');
}

void call_reply_report(struct json_out *out, const struct call *call)
{
    json_field_optional_str(out, "text", call_outcome(call)->feedback);
    json_field_optional_str(out, "advice", call_outcome(call)->advice);
    call_reply_content(NULL, out, call, STR_NONE, NULL);
}
