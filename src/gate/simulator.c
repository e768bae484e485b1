/* Playing the agent: one call, or the calls before it. */
#include "gate/simulator.h"

#include "base/arena.h"
#include "gate/arguments.h"
#include "gate/ids.h"
#include "gate/verdict.h"
#include "result/result.h"
#include "json/canonical.h"
#include "base/suggest.h"

static int64_t played_ms =
    SIMULATOR_TIME_MS; /* a ledger asks for the time and hands over nothing to find it by */

static int64_t played_clock(void)
{
    return played_ms;
}

void simulator_set_clock(int64_t ms)
{
    played_ms = ms;
}

enum err simulator_ledger(struct ledger **out, struct why *why)
{
    struct ledger_options options = {.now_ms = played_clock};
    return ledger_new_local(&options, out, why);
}

/* ---- one call --------------------------------------------------------------- */

static void never(void *owner, struct call *call)
{
    (void)owner, (void)call; /* the local ledger answers at once */
}

static struct call *make(struct gate *gate, struct arena *arena, struct call_request request,
                         enum call_mode mode)
{
    request.mode = mode;
    struct call *call = call_new(gate, arena, &request);
    call_start(call, never, NULL);
    return call;
}

struct call *simulator_check(struct gate *gate, struct arena *arena, const struct call_request *request)
{
    return make(gate, arena, *request, CALL_CHECK);
}

struct call *simulator_report(struct gate *gate, struct arena *arena, const struct call_request *request)
{
    return make(gate, arena, *request, CALL_REPORT);
}

struct call *play(struct gate *gate, struct arena *arena, const struct call_request *request,
                  const struct json *result)
{
    const struct tool *tool = generation_find(gate->generation, request->tool);
    bool told =
        tool && tool->runner == RUNNER_UPSTREAM && result; /* nothing outside is run: it stands for it */
    bool runs_here = told || (tool && tool->runner == RUNNER_LUA);
    struct call_request asked = *request;
    asked.simulated_result = result;
    struct call *call = make(gate, arena, asked, runs_here ? CALL_RUN : CALL_CHECK);
    if (runs_here || !result || call_verdict(call)->kind != VERDICT_PASS)
        return call;
    asked.call_id = call_id(call);
    asked.arguments = call_arguments(call);
    asked.result = result;
    call_free(call);
    return simulator_report(gate, arena, &asked);
}

static struct str session_key(struct gate *gate, struct arena *arena, const struct call_request *r)
{
    return call_session_key(arena, generation_config(gate->generation), r->peer, r->session, r->connection);
}

void simulator_add_seen_ids(struct gate *gate, struct arena *arena, const struct call_request *request,
                            const struct json *ids)
{
    struct str key = session_key(gate, arena, request);
    for (uint32_t i = 0; json_is(ids, JSON_ARRAY) && i < ids->len; i++) {
        struct hash128 hash = ids_hash(&ids->items[i]);
        ledger_see(gate->ledger, key, &hash, 1);
    }
}

/* ---- the calls before it ------------------------------------------------------ */

struct past {
    struct gate *gate;
    struct arena *arena;
    struct ledger_place place;
    const struct json *entry;
    struct str name;
    const struct tool *tool; /* NULL: none of this generation */
    const struct ledger_limits *limits;
    enum error_class class;
    uint64_t admission;
    struct hash128 arguments;
};

static enum err unknown_class(struct str name, uint32_t at, struct why *why)
{
    struct str names[CLASS_COUNT];
    for (int i = 0; i < CLASS_COUNT; i++)
        names[i] = str_of(error_class_info((enum error_class)i)->name);
    struct str meant = suggest_closest(name, names, CLASS_COUNT);
    return err_set(why, ERR_NOT_FOUND, "history[%u]: unknown class '" STR_FMT "'%s" STR_FMT "%s", at + 1,
                   STR_ARG(name), meant.len ? " (did you mean '" : ": expected ok, tool_error, …",
                   STR_ARG(meant), meant.len ? "'?)" : "");
}

static uint32_t number_of(const struct json *entry, const char *name, uint32_t otherwise)
{
    int64_t n;
    return json_int(json_get_text(entry, name), &n) && n >= 0 && n <= UINT32_MAX ? (uint32_t)n : otherwise;
}

/* As the pipeline would have it: mended and normalised, so that the same call written differently is the
 * same. */
static struct hash128 fingerprint(const struct past *p)
{
    static const struct json none = {.type = JSON_OBJECT};
    const struct json *given = json_get_text(p->entry, "args");
    const struct policy *policy = p->tool ? p->tool->policy : NULL;
    struct arguments args;
    arguments_read(&args, p->arena, given ? given : &none, STR_NONE, generation_config(p->gate->generation));
    if (p->tool && args.now) {
        struct policy_call view = {.tool = p->name};
        arguments_check_schema(&args, p->arena, p->tool);
        arguments_check_rules(&args, p->arena, p->tool, &view);
    }
    return json_fingerprint(p->arena, args.now ? args.now : given, policy ? policy->volatiles : NULL,
                            policy ? policy->volatile_count : 0);
}

static bool admit(const struct past *p)
{
    struct ledger_admit request = {
        .place = p->place,
        .admission = p->admission,
        .tool = p->name,
        .arguments = p->arguments,
        .so_far = error_class_info(p->class)->admitted_as,
        .refused_as = str_of(error_class_info(p->class)->name),
        .limits = p->limits,
    };
    struct ledger_answer answer;
    ledger_admit(p->gate->ledger, &request, p->arena, &answer, NULL, NULL);
    return request.so_far == LEDGER_SO_FAR_VALID;
}

/* Without a result told, each call gave the same: its arguments alone tell whether it brought anything new.
 */
static void settle(const struct past *p)
{
    const struct hash128 *gives = NULL;
    size_t gives_count = 0;
    struct result result = {.value = NULL};
    struct ledger_settled settled;
    const struct json *told = json_get_text(p->entry, "result");
    const struct policy *policy = p->tool ? p->tool->policy : NULL;
    if (told)
        result_read(p->arena, told, &result);
    if (policy && result.value)
        gives_count = ids_in_result(p->arena, policy, result.value, &gives);
    struct ledger_settle request = {
        .place = p->place,
        .admission = p->admission,
        .tool = p->name,
        .arguments = p->arguments,
        .class = error_class_info(p->class)->settled_as,
        .label = str_of(error_class_info(p->class)->name),
        .result = result.value ? json_fingerprint(p->arena, result.value, NULL, 0) : hash_stable(STR_NONE),
        .limits = p->limits,
        .gives_ids = gives,
        .gives_id_count = gives_count,
    };
    ledger_settle(p->gate->ledger, &request, p->arena, &settled, NULL, NULL);
}

static enum err play_past(struct past *p, const struct call_request *r, uint32_t at, struct why *why)
{
    struct str name = json_str(json_get_text(p->entry, "tool"));
    struct str class = json_str(json_get_text(p->entry, "class"));
    if (error_class_named(class.len ? class : STR_LIT("ok"), &p->class) != OK)
        return unknown_class(class, at, why);
    p->name = name.len ? name : r->tool;
    p->tool = generation_find(p->gate->generation, p->name);
    if (p->tool && r->force_enforce)
        p->tool = tool_as_enforced(p->arena, p->tool);
    p->limits = p->tool ? &p->tool->limits : &ledger_default_limits;
    p->place.turn = number_of(p->entry, "turn", r->turn);
    p->place.step = arena_printf(p->arena, "history %u", at); /* a model message of its own */
    p->admission = ++p->gate->admissions;
    p->arguments = fingerprint(p);
    if (admit(p))
        settle(p);
    return OK;
}

enum err simulator_add_history(struct gate *gate, struct arena *arena, const struct call_request *request,
                               const struct json *history, struct why *why)
{
    int64_t now = played_ms;
    enum err err = OK;
    for (uint32_t i = 0; json_is(history, JSON_ARRAY) && i < history->len && err == OK; i++) {
        struct past p = {.gate = gate,
                         .arena = arena,
                         .entry = &history->items[i],
                         .place = {.session = session_key(gate, arena, request)}};
        simulator_set_clock(now - 1000 * (int64_t)number_of(p.entry, "ago", history->len - i));
        err = play_past(&p, request, i, why);
    }
    simulator_set_clock(now);
    return err;
}
