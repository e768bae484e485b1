/*
 * A judge has a world for each toolset: a generation with the tools of that name. All worlds share the
 * ledger. Tools that a conversation carries, and tools without a description, are registered as a client
 * would register them.
 */
#include "replay/judge.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/hash.h"
#include "catalog/client_tools.h"
#include "catalog/generation.h"
#include "gate/decision_mask.h"
#include "gate/ids.h"
#include "gate/simulator.h"
#include "json/build.h"
#include "json/write.h"
#include "json/parse.h"
#include "json/path.h"
#include "result/result.h"
#include "upstream/upstream.h"

#include <stdlib.h>
#include <unistd.h>

#define JUDGE_MASKED_MAX 64u /* masked values of one call; a record lists fewer */

struct world {
    struct str toolset;
    struct generation *generation;
    struct gate gate;
    struct client_tools *bare; /* tools that only the recording names: any object is accepted */
};

struct tool_set { /* the tools of a conversation, in one world */
    struct hash128 id;
    uint32_t world;
    struct client_tools *tools;
};

struct judge {
    struct judge_options options;
    struct ledger *ledger;
    struct world worlds[JUDGE_TOOLSETS_MAX];
    uint32_t world_count;
    struct tool_set sets[JUDGE_TOOL_SETS_MAX];
    size_t set_count, next_set;
    const struct json *last_tools; /* of the value whose set was found last; its memory may be used again */
    uint64_t last_serial;
    struct tool_set *last_set;
};

/* ---- files of tools ---- */

/* The definition in MCP's form, recognised by its members; false: it has no name. */
static bool read_definition(struct arena *arena, const struct json *definition, struct json *out)
{
    const struct json *function = json_get_text(definition, "function");
    const struct json *d = json_is(function, JSON_OBJECT) ? function : definition;
    const struct json *schema = json_get_text(d, "inputSchema");
    if (!json_str(json_get_text(d, "name")).len)
        return false;
    *out = *d;
    schema = schema ? schema : json_get_text(d, "input_schema");
    schema = schema ? schema : json_get_text(d, "parameters");
    if (json_is(schema, JSON_OBJECT))
        *out = json_with(arena, d, STR_LIT("inputSchema"), *schema);
    return true;
}

enum err tool_file_read(struct arena *arena, const char *word, struct tool_file *out, struct why *why)
{
    struct json *file = ARENA_NEW(arena, struct json);
    /* The part before '=' is a toolset unless it is part of a path. */
    const char *equals = strchr(word, '='), *slash = strchr(word, '/');
    bool named =
        equals && equals != word && equals[1] && !(slash && slash < equals) && access(word, F_OK) != 0;
    out->toolset = named ? (struct str){word, (size_t)(equals - word)} : STR_NONE;
    out->file = str_of(named ? equals + 1 : word);
    enum err err = json_read_input(arena, out->file.at, TOOL_FILE_MAX_BYTES, file, why);
    if (err != OK)
        return err;
    const struct json *list = generation_tools_in_file(file);
    if (!list)
        return err_set(
            why, ERR_CONFIG,
            "%s: expected the tools as an array or as {\"tools\": […]}, as MCP, OpenAI or Anthropic write "
            "them, got %s",
            out->file.at, json_type_name((enum json_type)file->type));
    struct json *items = ARENA_ARRAY(arena, struct json, list->len + 1);
    size_t count = 0;
    for (uint32_t i = 0; i < list->len; i++)
        count += read_definition(arena, &list->items[i], &items[count]);
    out->list = json_keep(arena, json_array(items, count));
    if (list->len && !count)
        return err_set(why, ERR_CONFIG, "%s: none of its %u definitions has a name", out->file.at, list->len);
    return OK;
}

/* ---- worlds ---- */

struct stored_tools {
    const char *folder;
    const struct upstream_spec **specs; /* of the configuration, which the build has taken over */
    size_t count;
};

static struct tool_list *read_stored_tools(void *owner, struct str upstream)
{
    const struct stored_tools *stored = owner;
    for (size_t i = 0; i < stored->count; i++)
        if (str_eq(stored->specs[i]->name, upstream))
            return tool_cache_read(stored->folder, stored->specs[i], UPSTREAM_TOOLS, TOOL_CACHE_ANY);
    return NULL;
}

/* Builds it without its examples: they are not what is asked about. A policy whose tool is not known waits
 * for it. */
static bool add_world(struct judge *judge, struct str toolset, struct generation_report *report)
{
    struct config config;
    struct world *world = &judge->worlds[judge->world_count];
    struct generation_definitions *files =
        ARENA_ARRAY(report->arena, struct generation_definitions, judge->options.tool_file_count + 1);
    struct stored_tools stored = {.folder = judge->options.upstreams};
    struct tool_list_source lists = {read_stored_tools, &stored};
    struct generation_build_options options = {
        .given = files, .tool_lists = judge->options.upstreams ? &lists : NULL, .tools_changed = true};
    for (size_t i = 0; i < judge->options.tool_file_count;
         i++) { /* those for all records, and the toolset's */
        const struct tool_file *file = &judge->options.tools[i];
        if (!file->toolset.len || str_eq(file->toolset, toolset))
            files[options.given_count++] = (struct generation_definitions){file->file, file->list};
    }
    struct why why;
    if (config_load(judge->options.sources, &config, &why) != OK) {
        generation_report_error(report, "%s", why.text);
        config_free(&config);
        return false;
    }
    config.enforce_shadow = true;
    if (judge->options.no_policies)
        config.policies = NULL;
    stored.specs = config.upstreams;
    stored.count = config.upstream_count;
    if (generation_build(&config, judge->world_count + 1, &options, &world->generation, report) != OK)
        return false;
    world->toolset = toolset;
    world->bare = client_tools_new(NULL);
    world->gate = (struct gate){.generation = world->generation, .ledger = judge->ledger, .admissions = 1};
    judge->world_count++;
    return true;
}

struct judge *judge_new(const struct judge_options *options, struct generation_report *report)
{
    struct judge *judge = alloc_zeroed(sizeof(*judge));
    judge->options = *options;
    judge->ledger = simulator_ledger();
    bool built = add_world(judge, STR_NONE, report);
    for (size_t i = 0; built && i < options->tool_file_count; i++) {
        struct str toolset = options->tools[i].toolset;
        uint32_t k = 0;
        while (k < judge->world_count && !str_eq(judge->worlds[k].toolset, toolset))
            k++;
        if (k == judge->world_count && k < JUDGE_TOOLSETS_MAX)
            built = add_world(judge, toolset, report);
    }
    if (built)
        return judge;
    judge_free(judge);
    return NULL;
}

void judge_free(struct judge *judge)
{
    if (!judge)
        return;
    for (size_t i = 0; i < judge->set_count; i++)
        client_tools_free(judge->sets[i].tools);
    for (uint32_t i = 0; i < judge->world_count; i++) {
        client_tools_free(judge->worlds[i].bare);
        generation_unref(judge->worlds[i].generation);
    }
    ledger_free(judge->ledger);
    free(judge);
}

uint64_t judge_evicted(const struct judge *judge)
{
    struct ledger_status status;
    ledger_status(judge->ledger, &status);
    return status.forgotten;
}

/* ---- tools that the recording describes, or only names ---- */

/* A new set takes the place of the oldest one, if there are as many as are kept. */
static struct tool_set *find_or_make_set(struct judge *judge, uint32_t world, struct arena *arena,
                                         const struct json *list)
{
    struct hash128 id = json_fingerprint(arena, list, NULL, 0);
    for (size_t i = 0; i < judge->set_count; i++)
        if (judge->sets[i].world == world && judge->sets[i].id.low == id.low &&
            judge->sets[i].id.high == id.high)
            return &judge->sets[i];
    struct tool_set *set = &judge->sets[judge->next_set++ % JUDGE_TOOL_SETS_MAX];
    client_tools_free(set->tools);
    *set = (struct tool_set){id, world, client_tools_new(NULL)};
    for (uint32_t i = 0; i < list->len; i++) {
        struct json definition;
        const struct tool *tool;
        struct why why; /* a definition that does not compile: its calls are those of an unknown tool */
        if (read_definition(arena, &list->items[i], &definition))
            client_tools_register(set->tools, judge->worlds[world].generation, &definition, &tool, &why);
    }
    if (judge->set_count < JUDGE_TOOL_SETS_MAX)
        judge->set_count++;
    return set;
}

/* The tools of a conversation, which is one value: its calls come one after another. */
static struct client_tools *carried_tools(struct judge *judge, uint32_t world, struct arena *arena,
                                          const struct recorded_call *call)
{
    bool same = judge->last_set && judge->last_tools == call->tools &&
                judge->last_serial == call->line->serial && judge->last_set->world == world;
    if (!same)
        judge->last_set = find_or_make_set(judge, world, arena, call->tools);
    judge->last_tools = call->tools;
    judge->last_serial = call->line->serial;
    return judge->last_set->tools;
}

/* The operator's definition comes first, then the recording's. False: it cannot be judged. */
static bool choose_tool(struct judge *judge, uint32_t index, struct arena *arena,
                        const struct recorded_call *call, struct call_request *request, bool *known)
{
    struct world *world = &judge->worlds[index];
    const struct tool *tool = generation_find(world->generation, call->tool);
    bool described = tool && tool_is_described(tool);
    if (!described && call->tools)
        request->client_tools = carried_tools(judge, index, arena, call);
    bool carried =
        request->client_tools && client_tools_find(request->client_tools, world->generation, call->tool);
    *known = tool || carried;
    if (carried || described)
        return true;
    request->client_tools = NULL;
    request->ignore_prepare = tool && tool->unregistered; /* else only an example may call it */
    if (tool)
        return true;
    /* Without a schema any object is accepted; the rules against loops apply to it. */
    struct json_member member = json_member(STR_LIT("name"), json_string(call->tool));
    struct json definition = json_object(arena, &member, 1);
    struct why why;
    request->client_tools = world->bare;
    return client_tools_find(world->bare, world->generation, call->tool) ||
           client_tools_register(world->bare, world->generation, &definition, &tool, &why) == OK;
}

/* ---- masked values ---- */

struct str judge_path_of_pointer(struct arena *arena, struct str pointer)
{
    struct buf path = buf_in(arena);
    if (!pointer.at)
        return STR_NONE;
    for (size_t from = 1, end; from <= pointer.len; from = end + 1) {
        bool is_index = true;
        for (end = from; end < pointer.len && pointer.at[end] != '/'; end++)
            is_index = is_index && ascii_is_digit(pointer.at[end]);
        struct str part = {pointer.at + from, end - from};
        if (is_index && part.len) {
            buf_printf(&path, "[" STR_FMT "]", STR_ARG(part));
            continue;
        }
        if (path.len)
            buf_byte(&path, '.');
        for (size_t i = 0; i < part.len; i++) /* ~1 is a slash, ~0 a tilde */
            if (part.at[i] == '~' && i + 1 < part.len)
                buf_byte(&path, part.at[++i] == '1' ? '/' : '~');
            else
                buf_byte(&path, part.at[i]);
    }
    return buf_view(&path);
}

/* Sets the masked paths of the request, and the arguments to judge. A mask with a tag tells calls apart.
 * Calls that differ only in values with another mask look alike: where the daemon saw that they differ, a
 * value of its own tells this call from others. */
static void set_masked(struct call_request *request, struct arena *arena, const struct recorded_call *call)
{
    const struct json *pointers = call->masked;
    struct str *paths = ARENA_ARRAY(arena, struct str, JUDGE_MASKED_MAX);
    size_t count = 0;
    for (uint32_t i = 0; json_is(pointers, JSON_ARRAY) && i < pointers->len && count < JUDGE_MASKED_MAX;
         i++) {
        paths[count] = judge_path_of_pointer(arena, json_str(&pointers->items[i]));
        count += paths[count].len > 0;
    }
    request->masked = paths;
    request->masked_count = count;
    if (!count || !call->line || memchr(paths[0].at, '[', paths[0].len) || call->repeated ||
        !json_is(call->arguments, JSON_OBJECT))
        return;
    struct str text = json_str(json_path_get(call->arguments, paths[0]));
    if (text.len && memmem(text.at, text.len, REDACTED_TAGGED, strlen(REDACTED_TAGGED)))
        return;
    struct json own =
        json_string(arena_printf(arena, "masked value of line %llu", (unsigned long long)call->line->number));
    request->arguments = json_keep(arena, json_path_with(arena, call->arguments, paths[0], own));
}

/* ---- calls ---- */

static struct call_request request_of(struct arena *arena, const struct recorded_call *call,
                                      const struct peer *peer)
{
    struct call_request request = {
        .tool = call->tool,
        .arguments = call->arguments,
        .session = call->session,
        .connection = call->line ? str_of(call->line->file) : STR_NONE,
        .turn = call->turn,
        .by_person = call->by_person,
        .agent = call->agent,
        .step = call->step,
        .label = call->label,
        .ext = call->ext,
        .peer = peer,
    };
    if (call->masked)
        set_masked(&request, arena, call);
    return request;
}

static void fill(struct judged *out, const struct call *call)
{
    const struct tool *tool = call_tool(call);
    out->verdict = call_outcome(call)->verdict;
    out->masked = call_outcome(call)->masked;
    if (tool)
        out->tool = tool->name;
}

struct forgotten {
    struct arena *arena;
    const struct call_request *report;
    const struct tool *tool;
};

/* Only of a call that its session no longer remembers. */
static struct hash128 forgotten_fingerprint(const void *of)
{
    const struct forgotten *f = of;
    return json_fingerprint(f->arena, f->report->arguments, f->tool->volatiles, f->tool->volatile_count);
}

/* A result that is known by its class and hash alone: the ledger counts it as it was judged then. */
static void settle_by_class(struct judge *judge, struct arena *arena, const struct call_request *report,
                            const struct tool *tool, const struct recorded_call *call)
{
    const struct error_class_info *class = error_class_info(call->result_class);
    struct forgotten forgotten = {arena, report, tool};
    struct ledger_answer settled;
    struct ledger_call settle = {
        .place = {.session_id = report->check.session, .turn = report->turn, .step = report->step},
        .admission = report->check.admission,
        .tool = tool->name,
        .fingerprint = forgotten_fingerprint,
        .of = &forgotten,
        .class = class->settled_as,
        .label = str_of(class->name),
        .result = hash_stable(call->result_hash),
        .limits = tool->limits,
    };
    ledger_ask(judge->ledger, LEDGER_SETTLE, &settle, arena, &settled, NULL, NULL);
}

static void report_result(struct judge *judge, struct world *world, struct arena *arena,
                          struct call_request *report, const struct tool *tool,
                          const struct recorded_call *call, struct judged *out)
{
    if (call->by_class) {
        if (tool)
            settle_by_class(judge, arena, report, tool, call);
        return;
    }
    report->has_error = !call->result; /* the recorded result as the report of an agent */
    report->result = call->result;
    report->error_message = call->error;
    struct call *reported = simulator_make(&world->gate, arena, report, CALL_REPORT);
    fill(out, reported);
    call_free(reported);
}

/* A tool that the daemon runs itself: its result stands in, in one pass. */
static const struct json *stand_in(struct arena *arena, const struct recorded_call *call)
{
    if (call->result || !call->error.len)
        return call->result;
    struct json text = json_string(call->error);
    struct json content = *recorded_result(arena, &text);
    return json_keep(arena, json_with(arena, &content, STR_LIT("isError"), json_bool(true)));
}

/* An output schema, or a result hook. */
static bool judges_results(const struct tool *tool)
{
    bool any = tool && (tool->output_schema || (tool->policy && tool->policy->hooks[HOOK_RESULT]));
    for (size_t i = 0; tool && i < tool->overlay_count; i++)
        any |= tool->overlays[i].policy->hooks[HOOK_RESULT];
    return any;
}

static const struct verdict pass = {.valid = true, .after_s = -1, .cost = -1};

void judge_call(struct judge *judge, struct arena *arena, const struct recorded_call *call,
                const struct peer *peer, struct judged *out)
{
    uint32_t index = 0;
    for (uint32_t i = 1; call->toolset.len && !index && i < judge->world_count; i++)
        index = str_eq(judge->worlds[i].toolset, call->toolset) ? i : 0;
    struct world *world = &judge->worlds[index];
    struct call_request request = request_of(arena, call, peer);
    *out = (struct judged){.verdict = &pass, .runs = true, .tool = call->tool};
    if (!choose_tool(judge, index, arena, call, &request, &out->known))
        return;
    const struct tool *tool = generation_find(world->generation, call->tool);
    bool in_one = call->kind == RECORDED_CALL && tool && tool->runner != RUNNER_AGENT &&
                  (request.simulated_result = stand_in(arena, call));
    struct call *made = simulator_make(&world->gate, arena, &request, in_one ? CALL_RUN : CALL_CHECK);
    fill(out, made);
    out->runs = out->verdict->kind == VERDICT_PASS || out->verdict->ran;
    out->rewrites = out->verdict->rewrites;
    out->unjudged = out->runs && !in_one && (!call->ran || call->by_class) && judges_results(call_tool(made));
    if (out->runs && !in_one) {
        struct call_request report = request;
        call_report_of(made, &report);
        out->open = (struct judge_open){true, index, report.check.session, report.check.admission};
        report.tool = out->tool;
        report.arguments = call_outcome(made)->arguments;
        if (call->kind == RECORDED_CALL && call->ran) {
            out->open.is_open = false;
            report_result(judge, world, arena, &report, call_tool(made), call, out);
        }
    }
    call_free(made);
}

void judge_report(struct judge *judge, struct arena *arena, const struct recorded_call *recorded,
                  const struct peer *peer, const struct judge_open *open, struct str tool, struct judged *out)
{
    struct world *world = &judge->worlds[open->world];
    struct recorded_call call = *recorded;
    *out = (struct judged){.verdict = &pass, .runs = true, .tool = tool};
    call.tool = tool;
    call.masked = NULL; /* of the arguments, which the check had */
    struct call_request report = request_of(arena, &call, peer);
    if (!choose_tool(judge, open->world, arena, &call, &report, &out->known))
        return;
    const struct tool *known = client_tools_find(report.client_tools, world->generation, tool);
    report.check.session = open->session_id;
    report.check.admission = open->admission;
    report_result(judge, world, arena, &report, known ? known : generation_find(world->generation, tool),
                  &call, out);
}

void judge_compaction(struct judge *judge, struct arena *arena, const struct recorded_call *call)
{
    const struct config *config = &judge->worlds[0].generation->config;
    struct ledger_answer turned;
    struct ledger_call turn = {
        .place.session = call_session_key(arena, config, NULL, call->session, str_of(call->line->file)),
        .compacted = true};
    ledger_ask(judge->ledger, LEDGER_TURN, &turn, arena, &turned, NULL, NULL);
}
