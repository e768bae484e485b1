/* Reads and fills the state of a call; decides nothing, but for what masks of a replay take back. */
#include "gate/call_state.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/suggest.h"
#include "catalog/catalog.h"
#include "catalog/client_tools.h"
#include "catalog/mcp_version.h"
#include "json/build.h"
#include "json/write.h"

#define TOOL_NAME_LOGGED_BYTES 128u /* a client may make names as long as its messages */

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
        .owner = r->listener,
        .progress = r->progress,
        .log = r->log,
    };
}

bool call_is_of(struct str session, struct hash128 id)
{
    struct hash128 hash = ledger_session_id(session);
    return hash.high == id.high && hash.low == id.low;
}

static uint32_t call_uid(const struct call_request *request)
{
    return request->peer ? request->peer->uid : 0;
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
            list[(*count)++] = (struct ledger_problem){
                .path = problems->list[i].path,
                .place = problems->list[i].place.len ? problems->list[i].place : problems->list[i].path,
                .code = str_of(problems->list[i].code),
            };
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

/* ---- between the stages ---- */

static bool is_masked(const struct call_request *r, struct str path)
{
    for (size_t i = 0; i < r->masked_count; i++) {
        struct str masked = r->masked[i];
        if (path.len >= masked.len && str_eq(str_cut(path, masked.len), masked) &&
            (path.len == masked.len || path.at[masked.len] == '.' || path.at[masked.len] == '['))
            return true;
    }
    return false;
}

/* After each stage of a replayed call with masked values: a problem at a masked place, or inside of it, says
 * nothing about the call. What is left decides. */
static void drop_masked_problems(struct call *c)
{
    struct verdict *v = &c->verdict;
    struct problems *lists[] = {&c->args.problems, &v->problems};
    bool of_arguments = v->class == CLASS_INVALID_ARGUMENTS || v->class == CLASS_FABRICATED_ID,
         dropped = false;
    for (size_t n = 0; n < 2; n++) { /* each to a list of its own: so far the two may share one */
        struct problems kept = {.arena = c->arena, .more = lists[n]->more};
        for (size_t i = 0; i < lists[n]->count; i++)
            if (!is_masked(&c->request, lists[n]->list[i].path))
                problems_add_clean(&kept, &lists[n]->list[i]);
        dropped |= kept.count < lists[n]->count;
        *lists[n] = kept;
    }
    c->outcome.masked |= dropped;
    if (dropped && of_arguments && !v->problems.errors && !v->problems.more)
        verdict_discard(v, c->arena, false);
}

static void record_trace(struct call *c, const char *stage)
{
    const struct verdict *v = &c->verdict;
    size_t problems = v->problems.errors + v->problems.more;
    struct str decision = STR_LIT("pass");
    if (c->outcome.trace_count == CALL_TRACES_MAX)
        return;
    if (!c->stage && c->tool && c->tool->overlay_count) {
        struct buf files =
            buf_in(c->arena); /* "pass, guarded by policies/write_file.lua, policies/paths.lua" */
        if (c->tool->policy)
            buf_str(&files, c->tool->policy->file);
        for (size_t i = 0; i < c->tool->overlay_count; i++)
            buf_printf(&files, "%s" STR_FMT, files.len ? ", " : "",
                       STR_ARG(c->tool->overlays[i].policy->file));
        decision = arena_printf(c->arena, "pass, guarded by " STR_FMT, STR_ARG(buf_view(&files)));
    } else if (verdict_is_decided(v) && v->problems.errors)
        decision = arena_printf(c->arena, "%s: %zu problem%s", verdict_name(v->kind), problems,
                                problems == 1 ? "" : "s");
    else if (verdict_is_decided(v))
        decision = arena_printf(c->arena, "%s: %s", verdict_name(v->kind), error_class_info(v->class)->name);
    if (verdict_is_decided(v) && v->by.len)
        decision = arena_printf(c->arena, STR_FMT " (" STR_FMT ")", STR_ARG(decision), STR_ARG(v->by));
    c->traces[c->outcome.trace_count++] =
        (struct call_trace){stage, decision, clock_mono_ns() - c->stage_began_ns};
}

void call_leave_stage(struct call *c, const char *stage)
{
    if (c->request.masked_count)
        drop_masked_problems(c);
    if (verdict_is_decided(&c->verdict) && !c->verdict.stage)
        c->verdict.stage = stage;
    if (c->verdict.shadowed && !c->verdict.shadowed->stage)
        c->verdict.shadowed->stage = stage;
    if (c->request.trace)
        record_trace(c, stage);
    if (c->span)
        call_span_stage(c, stage);
}

/* The log of calls, without their arguments: a pass without `would` at debug, the rest at info. */
void call_log_end(const struct call *c)
{
    static const char *const events[] = {
        [CALL_RUN] = "call", [CALL_CHECK] = "check", [CALL_REPORT] = "report"};
    const struct call_request *r = &c->request;
    const struct verdict *v = &c->verdict;
    bool plain_pass = v->kind == VERDICT_PASS && !v->would.len;
    /* Of a result that breaks its schema the place, which is no value: else the log does not say which field
     * of the tool to look at. */
    bool violates = v->class == CLASS_SCHEMA_MISMATCH && str_is(v->code, "schema_violation");
    log_event(plain_pass ? LOG_DEBUG : LOG_INFO, events[r->mode],
              LOG_STR("tool", str_cut(r->tool, TOOL_NAME_LOGGED_BYTES)),
              LOG_TEXT("verdict", verdict_name(v->kind)), LOG_TEXT("class", error_class_info(v->class)->name),
              LOG_STR("code", v->code), LOG_STR("would", v->would),
              LOG_TEXT("stage", v->stage ? v->stage : "settle"), LOG_STR("session", r->session),
              LOG_STR("label", r->label), LOG_STR("ext", r->ext),
              LOG_STR("why", violates ? v->detail : STR_NONE));
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

/* With marks, since the ledger's entry of a checked call is written at its report, which another daemon may
 * get. */
static struct ledger_call_id id_of(const struct call *c)
{
    bool approved = c->request.consent_count && c->verdict.class != CLASS_FORBIDDEN;
    unsigned marks = c->request.check.marks;
    if (c->request.mode == CALL_CHECK)
        marks = (c->verdict.would.len ? CALL_NOT_ENFORCED : 0) | (approved ? CALL_APPROVED : 0);
    return (struct ledger_call_id){ledger_place_id(&c->place), c->admission, call_uid(&c->request),
                                   (uint8_t)marks};
}

struct str call_id(struct call *c)
{
    if (c->id)
        return (struct str){c->id, LEDGER_CALL_ID_CHARS};
    struct ledger_call_id id = id_of(c);
    char *text = arena_alloc(c->arena, LEDGER_CALL_ID_CHARS + 1);
    ledger_call_id_write(c->gate->ledger, &id, text);
    c->id = text;
    return (struct str){text, LEDGER_CALL_ID_CHARS};
}

void call_report_of(const struct call *check, struct call_request *report)
{
    report->check = id_of(check);
}

enum err call_read_id(const struct gate *gate, struct arena *arena, struct str id,
                      struct call_request *report, struct why *why)
{
    if (id.len != LEDGER_CALL_ID_CHARS)
        return err_set(why, ERR_NOT_FOUND,
                       "expected the %u characters that toolgate/check gave, got %zu characters",
                       LEDGER_CALL_ID_CHARS, id.len);
    report->check.uid = call_uid(report);
    enum err err = ledger_call_id_read(gate->ledger, id, &report->check);
    if (err == ERR_UNAVAILABLE)
        return err_set(why, err,
                       "this daemon has not reached Redis since it started, so it cannot tell whose call "
                       "this is: report it again in a moment");
    if (err != OK)
        return err_set(why, ERR_NOT_FOUND,
                       "toolgate gave no check of this user this callId: report the one of the check's "
                       "reply, unchanged");
    struct str named =
        call_session_key(arena, &gate->generation->config, report->peer, report->session, report->connection);
    if (report->session.len && !call_is_of(named, report->check.session))
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

struct str call_failure_text(const struct call *c)
{
    const struct verdict *v = &c->verdict;
    return v->data.len ? ARENA_JOIN(c->arena, v->quoted, STR_LIT(" "), v->data) : v->quoted;
}

/* Times and the like make no result a new one; numbers are data of a read alone. What a write returns is not
 * compared in runs, nor is what a poll does. */
void call_compare(struct call *c, struct arena *arena, const struct json *value, struct str text,
                  struct ledger_call *settle)
{
    const struct ledger_limits *limits = settle->limits;
    bool failed = settle->class == LEDGER_CLASS_TOOL_ERROR;
    bool reads = limits->effects == LEDGER_EFFECTS_READ && !failed;
    bool compares = reads || limits->effects == LEDGER_EFFECTS_UNKNOWN;
    bool masks = failed || (compares && !limits->polls && !limits->compare_arguments &&
                            (!value || !json_is_longer(value, RESULT_MASK_MAX_BYTES)));
    if (masks)
        settle->masked = result_masked(arena, value, text, !reads);
    if (masks && !reads)
        settle->result = result_masked(arena, value, text, false);
    else if (value)
        settle->result = c ? call_result_hash(c, value) : json_fingerprint(arena, value, NULL, 0);
    else
        settle->result = hash_stable(text);
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
        const struct call_trace *traces = outcome->traces;
        json_field_open(out, "trace", '[');
        for (size_t i = 0; i < outcome->trace_count; i++) {
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
    if (text.len)
        json_put_object(out, FIELD_TEXT("type", "text"), FIELD_STR("text", text));
}

void call_reply_content(struct arena *arena, struct json_out *out, const struct call *call,
                        struct str protocol, const struct json *unsent)
{
    const struct call_outcome *outcome = call_outcome(call);
    const struct json *content = outcome->content;
    bool is_error = verdict_replaces_result(outcome->verdict);
    bool shows = !is_error || outcome->verdict->keeps_blocks;
    uint32_t count = shows && json_is(content, JSON_ARRAY) ? content->len : 0;
    json_field_open(out, "content", '[');
    if (is_error)
        call_reply_text_block(out, outcome->feedback.len ? outcome->feedback : outcome->verdict->detail);
    for (uint32_t i = 0; i < count; i++) /* the feedback has an error's text */
        if (!is_error || !str_is(json_str(json_get_text(&content->items[i], "type")), "text"))
            json_put(out, mcp_version_content(arena, protocol, &content->items[i]));
    if (unsent && !count)
        call_reply_text_block(out, json_to_str(arena, unsent));
    if (!is_error)
        call_reply_text_block(out, outcome->advice);
    json_close(out, ']');
}

void call_reply_report(struct json_out *out, const struct call *call)
{
    json_field_optional_str(out, "text", call_outcome(call)->feedback);
    json_field_optional_str(out, "advice", call_outcome(call)->advice);
    call_reply_content(NULL, out, call, STR_NONE, NULL);
}

/* ---- which tools exist for one request ---- */

/* Only examples call a tool that is not registered. */
static bool is_granted(const struct call *c, const struct call_request *r, const struct tool *tool)
{
    if (tool->unregistered && !r->ignore_prepare && !r->force_enforce)
        return false;
    return !r->peer || (peer_may_call(&c->generation->config, r->peer, tool->name) &&
                        peer_sees_upstream(&c->generation->config, r->peer, tool->target.upstream));
}

/* tools/list has no tools that the client registered: prepare_tools first sees them in tools/call. */
static struct client_tools *listed_own(const struct call_request *r)
{
    return r->mode == CALL_RUN ? NULL : r->client_tools;
}

static bool is_shown(const struct call *c, const struct call_request *r, const struct tool *tool,
                     struct client_tools *own)
{
    struct catalog_request view = {.all = true,
                                   .peer = r->peer,
                                   .session = r->session,
                                   .goal = r->goal,
                                   .step = r->step,
                                   .context = r->context,
                                   .past = r->past,
                                   .client_tools = own};
    /* a report's tool has run already: it is judged even if it is hidden now */
    return r->ignore_prepare || r->mode == CALL_REPORT || catalog_shows(c->arena, c->generation, &view, tool);
}

static bool exists(const struct call *c, const struct call_request *r, const struct tool *tool)
{
    bool in_no_list = tool->unregistered && !(tool->policy && tool->policy->hooks[HOOK_PREPARE]);
    return is_granted(c, r, tool) && (in_no_list || is_shown(c, r, tool, listed_own(r)));
}

const struct tool *tool_lookup_find(const struct call *c, const struct call_request *r)
{
    const struct tool *tool = client_tools_find(r->client_tools, c->generation, r->tool);
    if (tool)
        return is_shown(c, r, tool, r->client_tools) ? tool : NULL;
    tool = generation_find(c->generation, r->tool);
    return tool && exists(c, r, tool) ? tool : NULL;
}

size_t tool_lookup_suggest(const struct call *c, const struct call_request *r,
                           struct str out[TOOL_LOOKUP_ALL_MAX], size_t *close)
{
    struct client_tools *own = listed_own(r);
    struct generation *generation = c->generation;
    size_t own_count = client_tools_count(own), all_count = generation->tool_count, count = 0, found = 0;
    struct str *names = ARENA_ARRAY(c->arena, struct str, own_count + all_count);
    for (size_t i = 0; i < own_count; i++) /* the client's own come first */
        if (client_tools_find(own, generation, client_tools_name_at(own, i)))
            names[count++] = client_tools_name_at(own, i);
    bool has_own = count;
    for (size_t i = 0; i < all_count; i++) {
        const struct tool *tool = generation->tools[i];
        bool duplicate = has_own && client_tools_find(own, generation, tool->name);
        if (!duplicate && (r->mode != CALL_RUN || tool_is_listed(tool)) && is_granted(c, r, tool))
            names[count++] = tool->name;
    }
    /* The closest names go first. Few names are all listed: then only what is alike was perhaps meant. */
    bool few = count <= TOOL_LOOKUP_ALL_MAX;
    size_t order[SUGGEST_MEANT + TOOL_LOOKUP_ALL_MAX], meant = suggest_meant(r->tool, names, count, order);
    size_t like = 0;
    for (size_t i = 0; i < meant; i++)
        if (!few || suggest_score(r->tool, names[order[i]]) >= SUGGEST_CLOSE)
            order[like++] = order[i];
    size_t listed = like;
    for (size_t i = 0; few && i < count; i++) {
        bool is_close = false;
        for (size_t k = 0; k < like; k++)
            is_close |= order[k] == i;
        if (!is_close)
            order[listed++] = i;
    }
    *close = 0;
    for (size_t i = 0; i < listed; i++) { /* prepare hooks run for these names only */
        struct str name = names[order[i]];
        const struct tool *of_client = client_tools_find(own, generation, name);
        const struct tool *tool = of_client ? NULL : generation_find(generation, name);
        if (of_client ? is_shown(c, r, of_client, own) : tool && exists(c, r, tool)) {
            out[found++] = name;
            *close += i < like;
        }
    }
    return found;
}
