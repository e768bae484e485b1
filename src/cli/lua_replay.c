/* cli.replay: replays the recordings that `toolgate replay` names. The readers of lua/replay read their
 * lines: they get each parsed line as proxies, without making tables of it, and give the calls that they
 * find. A proxy dies with its line. */
#include "base/arena.h"
#include "base/clock.h"
#include "cli/lua_cli.h"
#include "cli/term.h"
#include "json/build.h"
#include "json/parse.h"
#include "replay/recorded_call.h"
#include "replay/replay.h"
#include "sandbox/lua_json.h"
#include "server/state_dir.h"

#include <math.h>
#include <sys/stat.h>

#define PROGRESS_EVERY_LINES 256u
#define PROGRESS_EVERY_US    200000
#define VALUE_MARK           "toolgate.recorded"
#define EXACT_BELOW          9007199254740992.0 /* 2^53: a larger number would lose digits as a double */

/* Of the one replay that a process runs. */
static struct {
    struct recorded_reader *reader;
    const struct recording_line *line;
    uint64_t generation;
} now;

struct proxy {
    const struct json *value;
    uint64_t generation;
};

/* ---- values of a line ---- */

static void push_proxy(lua_State *L, const struct json *value)
{
    struct proxy *proxy = lua_newuserdata(L, sizeof(*proxy));
    *proxy = (struct proxy){value, now.generation};
    luaL_getmetatable(L, VALUE_MARK);
    lua_setmetatable(L, -2);
}

static int push(lua_State *L, const struct json *value)
{
    double number;
    switch (value ? (enum json_type)value->type : JSON_NULL) {
    case JSON_NULL:
        lua_pushnil(L);
        break;
    case JSON_BOOL:
        lua_pushboolean(L, value->truth);
        break;
    case JSON_NUMBER:
        if (json_double(value, &number) && fabs(number) < EXACT_BELOW)
            lua_pushnumber(L, number);
        else
            lua_pushlstring(L, value->text, value->len);
        break;
    case JSON_STRING:
        lua_pushlstring(L, value->text, value->len);
        break;
    case JSON_ARRAY:
    case JSON_OBJECT:
        push_proxy(L, value);
        break;
    }
    return 1;
}

static const struct json *value_at(lua_State *L, int at)
{
    const struct proxy *proxy = luaL_checkudata(L, at, VALUE_MARK);
    if (proxy->generation != now.generation || !now.line)
        luaL_error(L, "a value of a line that was read before");
    return proxy->value;
}

/* A member of an object by its name, an item of an array from 1; nil: none. */
static int index_value(lua_State *L)
{
    const struct json *value = value_at(L, 1);
    if (lua_type(L, 2) == LUA_TSTRING)
        return push(L, json_get(value, lua_cli_str(L, 2)));
    double at = lua_tonumber(L, 2);
    bool within = json_is(value, JSON_ARRAY) && at >= 1 && at <= value->len;
    return push(L, within ? &value->items[(uint32_t)at - 1] : NULL);
}

static int length_of_value(lua_State *L)
{
    const struct json *value = value_at(L, 1);
    lua_pushnumber(L, json_is(value, JSON_ARRAY) ? value->len : 0);
    return 1;
}

/* log.raw(value, name): a member that is only handed on: a text is not copied into Lua. */
static int raw_member(lua_State *L)
{
    const struct json *value = json_get(value_at(L, 1), lua_cli_str(L, 2));
    if (!value || value->type == JSON_NULL)
        return 0;
    push_proxy(L, value);
    return 1;
}

/* log.kind(value): "array", "object", or nil. */
static int kind_of(lua_State *L)
{
    if (!lua_isuserdata(L, 1))
        return 0;
    lua_pushstring(L, json_type_name((enum json_type)value_at(L, 1)->type));
    return 1;
}

/* log.keys(object, most): the names of its first members, as one text. */
static int keys_of(lua_State *L)
{
    const struct json *value = value_at(L, 1);
    struct buf out = buf_in(now.line->arena);
    for (uint32_t i = 0; json_is(value, JSON_OBJECT) && i < value->len && i < luaL_checknumber(L, 2); i++)
        buf_printf(&out, "%s" STR_FMT, i ? ", " : "", STR_ARG(str_cut(value->members[i].key, 40)));
    lua_cli_push_str(L, buf_view(&out));
    return 1;
}

/* log.parse(text): the value that a text holds as JSON; nil: it holds none. */
static int parse_text(lua_State *L)
{
    struct json_error fault;
    struct json *value = ARENA_NEW(now.line->arena, struct json);
    if (lua_type(L, 1) != LUA_TSTRING)
        return 0;
    struct str text = arena_dup(now.line->arena, lua_cli_str(L, 1));
    struct json_limits limits = {.nodes = RECORDING_LINE_MAX_NODES};
    if (json_parse(now.line->arena, text, &limits, value, &fault) != OK && !fault.soft)
        return 0;
    return push(L, value);
}

/* NULL: nil. */
static const struct json *json_at(lua_State *L, int at)
{
    struct arena *arena = now.line->arena;
    if (lua_isnoneornil(L, at))
        return NULL;
    if (lua_isuserdata(L, at))
        return value_at(L, at);
    return lua_json_read(L, at, "a reader's value", arena);
}

/* log.keep_tools(list): the definitions that the calls of this file have from here on. */
static int keep_tools(lua_State *L)
{
    struct arena *before = now.reader->file_arena;
    now.reader->file_arena = arena_new();
    now.reader->tools = json_keep(now.reader->file_arena, json_copy(now.reader->file_arena, value_at(L, 1)));
    arena_free(before);
    return 0;
}

/* ---- the calls that a reader finds ---- */

static struct str text_field(lua_State *L, const char *name)
{
    lua_getfield(L, 1, name);
    struct str text = lua_isstring(L, -1) ? arena_dup(now.line->arena, lua_cli_str(L, -1)) : STR_NONE;
    lua_pop(L, 1);
    return text;
}

static uint32_t number_field(lua_State *L, const char *name)
{
    lua_getfield(L, 1, name);
    double number = lua_tonumber(L, -1);
    lua_pop(L, 1);
    return number > 0 && number < UINT32_MAX ? (uint32_t)number : 0;
}

/* What the conversation at 1 says of each of its calls. `id` at 2. */
static struct recorded_call call_of(lua_State *L, enum recorded_kind kind)
{
    struct arena *arena = now.line->arena;
    struct recorded_call call = {.kind = kind, .line = now.line};
    luaL_checktype(L, 1, LUA_TTABLE);
    call.id = lua_isstring(L, 2) ? arena_dup(arena, lua_cli_str(L, 2)) : STR_NONE;
    call.session = text_field(L, "session");
    call.agent = text_field(L, "agent");
    call.turn = number_field(L, "turn");
    call.by_person = lua_cli_flag(L, "by_person");
    call.perhaps = lua_cli_flag(L, "perhaps");
    call.step = text_field(L, "step");
    if (number_field(L, "messages"))
        call.step = arena_printf(arena, "message %u", number_field(L, "messages"));
    lua_getfield(L, 1, "at");
    call.at_ms = recorded_time(json_at(L, -1));
    lua_getfield(L, 1, "tools");
    call.tools = lua_isuserdata(L, -1) ? value_at(L, lua_gettop(L)) : now.reader->tools;
    lua_pop(L, 2);
    return call;
}

static void set_call(lua_State *L, struct recorded_call *call)
{
    const struct json *arguments = json_at(L, 4);
    call->tool = lua_type(L, 3) == LUA_TSTRING ? arena_dup(now.line->arena, lua_cli_str(L, 3)) : STR_NONE;
    call->arguments = recorded_arguments(now.line->arena, arguments);
    call->arguments_unknown = !arguments;
}

static int seen(const struct recorded_call *call)
{
    if (call->tool.len || call->kind >= RECORDED_REPORT)
        now.reader->seen(now.reader->owner, call);
    return 0;
}

/* log.call(conversation, id, tool, arguments): a call whose result comes later. */
static int see_call(lua_State *L)
{
    struct recorded_call call = call_of(L, RECORDED_CHECK);
    set_call(L, &call);
    return seen(&call);
}

/* log.result(conversation, id, result, failed): of an earlier call. `failed`: true, or what it says. */
static int see_result(lua_State *L)
{
    static const struct json nothing = {.type = JSON_STRING, .text = ""};
    const struct json *result = json_at(L, 3);
    struct recorded_call call = call_of(L, RECORDED_REPORT);
    recorded_set_result(&call, result ? result : &nothing, json_at(L, 4));
    return seen(&call);
}

/* log.both(conversation, id, tool, arguments, result, failed): a call with what it brought, if anything. */
static int see_both(lua_State *L)
{
    struct recorded_call call = call_of(L, RECORDED_CALL);
    set_call(L, &call);
    recorded_set_result(&call, json_at(L, 5), json_at(L, 6));
    return seen(&call);
}

/* log.usage(conversation, input, cached, output): tokens. */
static int see_usage(lua_State *L)
{
    struct recorded_call call = call_of(L, RECORDED_USAGE);
    call.usage = (struct recorded_usage){(int64_t)luaL_checknumber(L, 2), (int64_t)luaL_checknumber(L, 3),
                                         (int64_t)luaL_checknumber(L, 4)};
    return seen(&call);
}

/* log.compacted(conversation): its model no longer sees what it has read. */
static int see_compaction(lua_State *L)
{
    struct recorded_call call = call_of(L, RECORDED_COMPACTION);
    return seen(&call);
}

/* ---- the readers of lua/replay ---- */

static const luaL_Reg functions[] = {{"kind", kind_of},
                                     {"keys", keys_of},
                                     {"parse", parse_text},
                                     {"raw", raw_member},
                                     {"keep_tools", keep_tools},
                                     {"call", see_call},
                                     {"result", see_result},
                                     {"both", see_both},
                                     {"usage", see_usage},
                                     {"compacted", see_compaction},
                                     {NULL, NULL}};

/* A number or a truth where the format has an object has no members, as a text has none of theirs. */
static void make_indexable(lua_State *L)
{
    lua_createtable(L, 0, 1);
    lua_newtable(L);
    lua_setfield(L, -2, "__index");
    lua_pushnumber(L, 0);
    lua_pushvalue(L, -2);
    lua_setmetatable(L, -2); /* of all numbers */
    lua_pushboolean(L, true);
    lua_pushvalue(L, -3);
    lua_setmetatable(L, -2);
    lua_pop(L, 3);
}

int lua_transcript_functions(lua_State *L)
{
    make_indexable(L);
    luaL_newmetatable(L, VALUE_MARK);
    lua_pushcfunction(L, index_value);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, length_of_value);
    lua_setfield(L, -2, "__len");
    return lua_cli_push_functions(L, functions);
}

/* The reader, a function of (value, file, number, part), is in the field `reader` of the options at 1. */
static bool read_transcript(void *owner, struct recorded_reader *reader, const struct recording_line *line,
                            const char **why)
{
    lua_State *L = owner;
    int top = lua_gettop(L);
    now.reader = reader;
    now.line = line;
    now.generation++;
    lua_getfield(L, 1, "reader");
    push(L, line ? line->value : NULL);
    lua_pushstring(L, reader->file);
    lua_pushnumber(L, line ? (double)line->number : 0);
    lua_pushnumber(L, line ? line->part : RECORDING_WHOLE);
    bool failed = lua_pcall(L, 4, 1, 0) != 0,
         understood = !failed && (line ? lua_isboolean(L, -1) && lua_toboolean(L, -1) : lua_isnil(L, -1));
    if (failed)
        *why = "its members are not of the types that its format has";
    else if (lua_type(L, -1) == LUA_TSTRING && line)
        *why = arena_dup(line->arena, lua_cli_str(L, -1)).at;
    else if (lua_type(L, -1) == LUA_TSTRING)
        *why = "a streamed reply ends within a call";
    lua_settop(L, top);
    now.line = NULL;
    return understood;
}

struct replay_command {
    struct config_sources sources; /* without `tools`: a judge adds them, by toolset */
    const char *against, *format;
    struct arena *arena;
    struct tool_file *tools;
    size_t tool_count;
    struct judge *policies, *compared;
    struct recording *recording;
    const char **files;
    size_t file_count;
    bool mine;
};

/* ---- what is loaded ---- */

/* Where the daemon of this configuration keeps its upstreams' tools; NULL: without a configuration there are
 * none. A decision log lies in its daemon's state folder, which systemd may have given: the configuration
 * does not know it then, and a folder beside a recording is taken. */
static const char *upstreams_folder(struct replay_command *c, const struct config_sources *sources)
{
    struct config config = {0};
    const char *folder = NULL;
    if (!sources->file ||
        config_load(sources, &config, NULL) != OK) { /* the judge reports why it does not load */
        config_free(&config);
        return NULL;
    }
    for (size_t i = 0; !folder && !state_dir_is_given(&config) && i < c->file_count; i++) {
        const char *slash = strrchr(c->files[i], '/');
        int len = slash ? (int)(slash - c->files[i]) + 1 : 0;
        const char *beside = arena_printf(c->arena, "%.*supstreams", len, c->files[i]).at;
        struct stat st;
        if (stat(beside, &st) == 0 && S_ISDIR(st.st_mode))
            folder = beside;
    }
    if (!folder)
        folder = state_dir_path(c->arena, &config, "upstreams");
    config_free(&config);
    return folder;
}

static struct judge *load(struct replay_command *c, const char *policies)
{
    struct generation_report report;
    struct config_sources sources = c->sources;
    sources.policies = policies;
    struct judge_options options = {.sources = &sources,
                                    .no_policies = !policies && !sources.file,
                                    .upstreams = upstreams_folder(c, &sources),
                                    .tools = c->tools,
                                    .tool_file_count = c->tool_count};
    generation_report_init(&report, c->arena);
    struct judge *judge = judge_new(&options, &report);
    if (judge)
        return judge;
    report.warning_count = 0;
    lua_cli_print_report(&report);
    term_error("nothing was replayed: fix the errors above");
    return NULL;
}

/* ---- progress ---- */

struct progress {
    lua_State *L;
    int64_t last_us;
    uint64_t lines;
};

/* Calls the option `progress`, a function, with the bytes that were read, and all; 0: not known. */
static void show_progress(void *owner, const struct recording *recording)
{
    struct progress *progress = owner;
    if (++progress->lines % PROGRESS_EVERY_LINES != 0)
        return;
    uint64_t total, position = recording_position(recording, &total);
    int64_t now_us = clock_mono_us();
    if (now_us - progress->last_us < PROGRESS_EVERY_US)
        return;
    progress->last_us = now_us;
    lua_getfield(progress->L, 1, "progress");
    lua_pushnumber(progress->L, (lua_Number)position);
    lua_pushnumber(progress->L, (lua_Number)total);
    lua_call(progress->L, 2, 0);
}

/* ---- the command ---- */

static bool open_all(struct replay_command *c, enum recorded_format *format)
{
    struct recording_options options = {.documents = true, .lenient = c->mine};
    struct why why;
    *format = RECORDED_ANY;
    if (c->format && !recorded_format_named(str_of(c->format), format)) {
        term_error("--format: expected decisions, ndjson, openai, anthropic or mcp, got '%s'", c->format);
        return false;
    }
    c->tool_count = c->sources.tools_count;
    c->tools = ARENA_ARRAY(c->arena, struct tool_file, c->tool_count + 1);
    for (size_t i = 0; i < c->tool_count; i++)
        if (tool_file_read(c->arena, c->sources.tools[i], &c->tools[i], &why) != OK) {
            term_error("--tools: %s", why.text);
            return false;
        }
    c->sources.tools = NULL;
    c->sources.tools_count = 0;
    if (recording_open(c->files, c->file_count, &options, &c->recording, &why) != OK) {
        term_error("%s", why.text);
        return false;
    }
    log_open(LOG_ERROR, LOG_FORMAT_TEXT, NULL, NULL); /* decisions go to the report, not to the log */
    c->policies = load(c, c->sources.policies);
    c->compared = c->policies && c->against ? load(c, c->against) : NULL;
    return c->policies && (!c->against || c->compared);
}

int lua_replay(lua_State *L)
{
    enum recorded_format format;
    struct replay_report report;
    struct replay_command c = {
        .arena = arena_new(), .against = lua_cli_option(L, "against"), .format = lua_cli_option(L, "format")};
    c.mine = lua_cli_flag(L, "mine");
    c.sources = lua_cli_sources(L, c.arena);
    c.files = lua_cli_list(L, NULL, c.arena, &c.file_count);
    bool opened = open_all(&c, &format);
    if (opened) {
        struct progress progress = {.L = L, .last_us = clock_mono_us()};
        struct replay_options options = {.recording = c.recording,
                                         .format = format,
                                         .transcript = read_transcript,
                                         .transcripts = L,
                                         .policies = c.policies,
                                         .against = c.compared,
                                         .line_read = lua_cli_flag(L, "progress") ? show_progress : NULL,
                                         .owner = &progress};
        replay_run(&options, c.arena, &report);
        report.policies = c.sources.policies ? c.sources.policies : c.sources.file;
        report.against = c.against;
        struct buf views = buf_in(c.arena), text = buf_in(c.arena);
        replay_report_json(&report, true, &views);
        replay_report_json(&report, false, &text);
        lua_cli_push_str(L, buf_view(&views));
        lua_cli_push_str(L, buf_view(&text));
    }
    judge_free(c.policies);
    judge_free(c.compared);
    recording_close(c.recording);
    arena_free(c.arena);
    return opened ? 2 : lua_cli_end(L);
}
