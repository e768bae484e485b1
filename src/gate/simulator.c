/* Plays the agent for one call, and gives its session a past. */
#include "gate/simulator.h"

#include "base/arena.h"
#include "base/suggest.h"
#include "gate/arguments.h"
#include "gate/ids.h"
#include "gate/call_state.h"
#include "gate/verdict.h"
#include "json/write.h"
#include "result/result.h"
#include "policy/policy_hooks.h"

static int64_t clock_ms = SIMULATOR_TIME_MS; /* global: the ledger calls its clock without a context */

static int64_t read_clock(void)
{
    return clock_ms;
}

void simulator_set_clock(int64_t ms)
{
    clock_ms = ms;
}

struct ledger *simulator_ledger(void)
{
    return ledger_new_local(&(struct ledger_options){.now_ms = read_clock});
}

struct call *simulator_make(struct gate *gate, struct arena *arena, const struct call_request *request,
                            enum call_mode mode)
{
    struct call_request copy = *request;
    copy.mode = mode;
    struct call *call = call_new(gate, arena, &copy);
    call_start(call, NULL, NULL); /* the local ledger always answers at once */
    return call;
}

struct call *simulator_call(struct gate *gate, struct arena *arena, const struct call_request *request,
                            const struct json *result)
{
    const struct tool *tool = generation_find(gate->generation, request->tool);
    bool runs = tool && (tool->runner == RUNNER_LUA || (tool->runner == RUNNER_UPSTREAM && result));
    struct call_request copy = *request;
    copy.simulated_result = result;
    struct call *call = simulator_make(gate, arena, &copy, runs ? CALL_RUN : CALL_CHECK);
    if (runs || !result || call_outcome(call)->verdict->kind != VERDICT_PASS)
        return call;
    struct why why;
    call_read_id(gate, arena, call_id(call), &copy, &why);
    copy.arguments = call_outcome(call)->arguments;
    copy.result = result;
    call_free(call);
    return simulator_make(gate, arena, &copy, CALL_REPORT);
}

static struct str session_key(struct gate *gate, struct arena *arena, const struct call_request *r)
{
    return call_session_key(arena, &gate->generation->config, r->peer, r->session, r->connection);
}

void simulator_add_seen_ids(struct gate *gate, struct arena *arena, const struct call_request *request,
                            const struct json *ids)
{
    struct str key = session_key(gate, arena, request);
    for (uint32_t i = 0; json_is(ids, JSON_ARRAY) && i < ids->len; i++) {
        struct hash128 hash = ids_hash(&ids->items[i]);
        struct ledger_call see = {.place.session = key, .gives_ids = &hash, .gives_id_count = 1};
        ledger_ask(gate->ledger, LEDGER_SEE, &see, arena, NULL, NULL, NULL);
    }
}

struct past_call {
    struct gate *gate;
    struct arena *arena;
    const struct json *entry;
    struct ledger_place place;
    struct str name;
    const struct tool *tool; /* NULL: unknown */
    enum error_class class;
    const struct json *context; /* of the request whose past this is */
};

static enum err read_class(struct past_call *past, uint32_t number, struct why *why)
{
    struct str name = json_str(json_get_text(past->entry, "class")), names[CLASS_COUNT];
    if (error_class_named(name.len ? name : STR_LIT("ok"), &past->class) == OK)
        return OK;
    for (int i = 0; i < CLASS_COUNT; i++)
        names[i] = str_of(error_class_info((enum error_class)i)->name);
    struct str closest = suggest_closest(name, names, CLASS_COUNT);
    return err_set(why, ERR_NOT_FOUND, "history[%u]: unknown class '" STR_FMT "'%s" STR_FMT "%s", number,
                   STR_ARG(name), closest.len ? " (did you mean '" : ": expected ok, tool_error, …",
                   STR_ARG(closest), closest.len ? "'?)" : "");
}

/* Coerced and normalised as in the pipeline, so that the same call written differently is the same. */
static struct hash128 fingerprint(const struct past_call *past)
{
    static const struct json none = {.type = JSON_OBJECT};
    const struct json *given = json_get_text(past->entry, "args");
    const struct tool *tool = past->tool;
    struct policy_call view = {.tool = past->name, .context = past->context};
    struct arguments args;
    arguments_read(&args, past->arena, past->tool, given ? given : &none, STR_NONE,
                   &past->gate->generation->config);
    if (past->tool && args.now) {
        arguments_check_schema(&args);
        arguments_check_rules(&args, &view);
        overlays_normalise(&args, &view);
    }
    return json_fingerprint(past->arena, args.now ? args.now : given, tool ? tool->volatiles : NULL,
                            tool ? tool->volatile_count : 0);
}

/* Admits it, and settles it if its class is one of calls that ran. Entries without a result all have the same
 * one. */
static void count_past_call(const struct past_call *past)
{
    const struct error_class_info *class = error_class_info(past->class);
    const struct policy *policy = past->tool ? past->tool->policy : NULL;
    const struct json *given = json_get_text(past->entry, "result");
    struct result result = {.value = NULL};
    struct ledger_answer answer;
    struct ledger_answer settled;
    struct ledger_call admit = {
        .place = past->place,
        .admission = ++past->gate->admissions,
        .tool = past->name,
        .arguments = fingerprint(past),
        .so_far = class->admitted_as,
        .refused_as = str_of(class->name),
        .limits = past->tool ? past->tool->limits : &ledger_default_limits,
    };
    ledger_ask(past->gate->ledger, LEDGER_ADMIT, &admit, past->arena, &answer, NULL, NULL);
    if (admit.so_far != LEDGER_SO_FAR_VALID)
        return;
    if (given)
        result_read(past->arena, given, &result);
    struct ledger_call settle = {
        .place = past->place,
        .admission = admit.admission,
        .tool = past->name,
        .arguments = admit.arguments,
        .class = class->settled_as,
        .label = str_of(class->name),
        .result = hash_stable(STR_NONE),
        .limits = admit.limits,
    };
    if (result.value) {
        const struct json *compared = result_compared(past->arena, policy, admit.limits, result.value);
        call_compare(NULL, past->arena, compared, STR_NONE, &settle);
        settle.under_way =
            call_under_way(past->arena, admit.limits, json_get_text(past->entry, "args"), &result);
    }
    if (policy && result.value)
        settle.gives_id_count = ids_in_result(past->arena, policy, result.value, &settle.gives_ids);
    ledger_ask(past->gate->ledger, LEDGER_SETTLE, &settle, past->arena, &settled, NULL, NULL);
}

static uint32_t number_or(const struct json *entry, const char *name, uint32_t otherwise)
{
    int64_t n;
    return json_int(json_get_text(entry, name), &n) && n >= 0 && n <= UINT32_MAX ? (uint32_t)n : otherwise;
}

enum err simulator_add_history(struct gate *gate, struct arena *arena, const struct call_request *request,
                               const struct json *history, struct why *why)
{
    int64_t now = clock_ms;
    enum err err = OK;
    for (uint32_t i = 0; json_is(history, JSON_ARRAY) && i < history->len && err == OK; i++) {
        const struct json *entry = &history->items[i];
        struct str name = json_str(json_get_text(entry, "tool"));
        struct past_call past = {.gate = gate,
                                 .arena = arena,
                                 .entry = entry,
                                 .context = request->context,
                                 .place = {.session = session_key(gate, arena, request),
                                           .turn = number_or(entry, "turn", request->turn),
                                           .step = arena_printf(arena, "history %u", i)},
                                 .name = name.len ? name : request->tool};
        past.tool = generation_find(gate->generation, past.name);
        if (past.tool && request->force_enforce)
            past.tool = tool_as_enforced(arena, past.tool, request->enforced_overlay);
        simulator_set_clock(now - 1000 * (int64_t)number_or(entry, "ago", history->len - i));
        err = read_class(&past, i + 1, why);
        if (err == OK)
            count_past_call(&past);
    }
    simulator_set_clock(now);
    return err;
}
