/*
 * The state, its bounds, and the one protected call everything goes through.
 *
 * The deadline: past the budget the tick sets a hook on every call, return
 * and instruction and leaves it armed, so that a loop around pcall ends too:
 * each instruction after the pcall raises again. A jump out of the signal
 * handler would be undefined, so whatever a hook cannot stop is not in the
 * sandbox: no xpcall, newproxy, coroutines, metatables or load, and the
 * pattern functions and table.sort are ours (string_library.c, table_library.c).
 */
#include "sandbox/sandbox.h"
#include "base/arena.h"
#include "sandbox/bridge.h"
#include "sandbox/bytecode.h"
#include "sandbox/read_only_proxy.h"
#include "sandbox/heap.h"
#include "sandbox/deadline.h"
#include "sandbox/libraries.h"

#include <luajit.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GC_SLACK_BYTES 1048576u /* what the collector itself may need when the heap is full */

/* The same words, for policies without stand-ins, with such in loops only, and with such anywhere
 * (read_only_proxy.h).
 */
enum words_kind { WORDS_STOCK, WORDS_QUICK, WORDS_AWARE, WORDS_KINDS };

struct sandbox {
    lua_State *L;
    struct heap heap;
    size_t live; /* bytes that were left when all was collected last */
    const struct sandbox_context *now;
    struct sandbox_frame {
        sandbox_step *step;
        void *context;
        struct deadline_run *run;
        const char *stack; /* where the C stack stood when the step began */
    } frame;
    struct bytecode_opcodes opcodes;
    int enter_ref, mark_refs[MARK_COUNT];
    int words_refs[WORDS_KINDS], own_refs[WORDS_KINDS];
    sandbox_line_callback *trace; /* NULL: lines are not counted */
    void *tracer;
};

struct sandbox *sandbox_of(lua_State *L)
{
    void *heap;
    lua_getallocf(L, &heap);
    return (struct sandbox *)((char *)heap - offsetof(struct sandbox, heap));
}

const struct sandbox_context *sandbox_context(const struct sandbox *sandbox)
{
    return sandbox->now;
}

const struct bytecode_opcodes *sandbox_opcodes(const struct sandbox *sandbox)
{
    return &sandbox->opcodes;
}

size_t sandbox_memory_bytes(const struct sandbox *sandbox)
{
    return sandbox->heap.cap;
}

/* ---- deadline --------------------------------------------------------------- */

int sandbox_raise_deadline(lua_State *L)
{
    const struct deadline_run *run = sandbox_of(L)->frame.run;
    return luaL_error(L, "ran longer than its %d ms (config limits.policy_ms)", run ? (int)run->budget : 0);
}

static void kill_hook(lua_State *L, lua_Debug *where)
{
    (void)where;
    sandbox_raise_deadline(L);
}

/* In the signal handler; lua_sethook is made for that. */
static void on_late(void *owner)
{
    lua_sethook(owner, kill_hook, LUA_MASKCALL | LUA_MASKRET | LUA_MASKCOUNT, 1);
}

bool sandbox_deadline_passed(struct sandbox *sandbox)
{
    return sandbox->frame.run && sandbox->frame.run->late;
}

/* ---- lines, for coverage ------------------------------------------------------ */

static void trace_hook(lua_State *L, lua_Debug *where)
{
    struct sandbox *sandbox = sandbox_of(L);
    if (lua_getinfo(L, "S", where) && where->source[0] == '@')
        sandbox->trace(sandbox->tracer, where->source + 1, where->currentline);
}

void sandbox_trace_lines(struct sandbox *sandbox, sandbox_line_callback *trace, void *context)
{
    sandbox->trace = trace;
    sandbox->tracer = context;
}

/* ---- C stack ---------------------------------------------------------------- */

void sandbox_check_stack(lua_State *L, const char *word)
{
    const char *here = __builtin_frame_address(0);
    if (here + SANDBOX_STACK_BYTES < sandbox_of(L)->frame.stack)
        luaL_error(L, "%s: functions called from within %s are nested too deep", word, word);
}

/* ---- running ---------------------------------------------------------------- */

static int enter(lua_State *L)
{
    struct sandbox *sandbox = sandbox_of(L);
    sandbox->frame.stack = __builtin_frame_address(0);
    sandbox->frame.step(L, sandbox->frame.context);
    return 0;
}

/* LuaJIT cuts a long chunk name from the left, so a long path goes by its end. */
const char *sandbox_chunk(const char *file)
{
    const char *slash = strrchr(file, '/');
    return strlen(file) < LUA_IDSIZE - 2 || !slash ? file : slash + 1;
}

/* Errors come as what `error` was given: a sentence, or anything else. */
static void explain_failure(const struct sandbox *sandbox, int status, struct why *why)
{
    lua_State *L = sandbox->L;
    const struct sandbox_context *now = sandbox->now;
    const char *chunk = sandbox_chunk(now->file);
    const char *text = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
    char place[32] = "";
    if (now->hook)
        snprintf(place, sizeof(place), ":%d: %s", now->hook_line, now->hook);
    if (status == LUA_ERRMEM)
        err_set(why, ERR_POLICY,
                "%s%s: out of memory: all policies together may use %zu KB (config limits.policy_kb)",
                now->file, place, sandbox->heap.cap / 1024);
    else if (!text)
        err_set(why, ERR_POLICY, "%s%s: the error raised is a %s: error(…) takes a sentence", now->file,
                place, luaL_typename(L, -1));
    else if (str_starts(str_of(text), chunk))
        err_set(why, ERR_POLICY, "%.*s%s", (int)(chunk - now->file), now->file, text);
    else
        err_set(why, ERR_POLICY, "%s%s: %s", now->file, place, text);
}

/* LuaJIT never collects by itself when an allocation fails: unless we do, the next call fails too. */
static void collect(struct sandbox *sandbox)
{
    sandbox->heap.slack = GC_SLACK_BYTES;
    bridge_release(sandbox->L);
    lua_gc(sandbox->L, LUA_GCCOLLECT, 0);
    sandbox->heap.slack = 0;
    sandbox->live = sandbox->heap.used;
}

/* Lua's own collector walks by what is allocated, so a call of a few large texts may leave most of the memory
 * to it, and the next call, of whatever policy, would find none: each begins with half of what there can be.
 */
static bool is_littered(const struct sandbox *sandbox)
{
    const struct heap *heap = &sandbox->heap;
    size_t room = heap->cap > sandbox->live ? heap->cap - sandbox->live : 0;
    return heap->used > sandbox->live && heap->used - sandbox->live > room / 2;
}

enum err sandbox_run(struct sandbox *sandbox, uint32_t budget_ms, const struct sandbox_context *now,
                     sandbox_step *step, void *context, struct why *why)
{
    lua_State *L = sandbox->L;
    struct deadline_run run = {.budget = (int)budget_ms,
                               .watchdog = (int)(budget_ms + SANDBOX_WATCHDOG_MS),
                               .on_late = on_late,
                               .owner = L,
                               .file = now->file,
                               .text = now->text};
    struct sandbox_frame outer = sandbox->frame;
    uint64_t failures = sandbox->heap.failures;
    int top = lua_gettop(L);
    sandbox->frame = (struct sandbox_frame){.step = step, .context = context, .run = &run};
    sandbox->now = now;
    lua_rawgeti(L, LUA_REGISTRYINDEX, sandbox->enter_ref);
    if (sandbox->trace)
        lua_sethook(L, trace_hook, LUA_MASKLINE, 0);
    deadline_enter(&run);
    int status = lua_pcall(L, 0, 0, 0);
    deadline_leave(&run);
    if (run.late || sandbox->trace)
        lua_sethook(L, NULL, 0, 0);
    if (status != 0)
        explain_failure(sandbox, status, why);
    lua_settop(L, top);
    if (sandbox->heap.failures != failures || (!outer.run && is_littered(sandbox)))
        collect(sandbox);
    sandbox->frame = outer;
    return status == 0 ? OK : ERR_POLICY;
}

/* ---- marks -------------------------------------------------------------------- */

/* Each metatable knows its own mark at [1]; policies can neither read nor set one. */
static void make_marks(struct sandbox *sandbox)
{
    lua_State *L = sandbox->L;
    for (int i = 0; i < MARK_COUNT; i++) {
        lua_createtable(L, 1, 1);
        lua_pushinteger(L, i);
        lua_rawseti(L, -2, 1);
        lua_pushboolean(L, 0);
        lua_setfield(L, -2, "__metatable");
        sandbox->mark_refs[i] = luaL_ref(L, LUA_REGISTRYINDEX);
    }
}

void sandbox_push_mark(lua_State *L, enum mark mark)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, sandbox_of(L)->mark_refs[mark]);
}

void sandbox_set_mark(lua_State *L, enum mark mark)
{
    sandbox_push_mark(L, mark);
    lua_setmetatable(L, -2);
}

/* Of a stand-in: its table's. */
enum mark sandbox_mark(lua_State *L, int at)
{
    enum mark mark = MARK_NONE;
    int top = lua_gettop(L), type = lua_type(L, at);
    if (type == LUA_TUSERDATA && proxy_is(L, at)) {
        lua_pushvalue(L, at);
        proxy_unwrap(L, at = top + 1);
        type = LUA_TTABLE;
    }
    if (type == LUA_TTABLE && lua_getmetatable(L, at)) {
        lua_rawgeti(L, -1, 1);
        mark = (enum mark)lua_tointeger(L, -1);
    }
    lua_settop(L, top);
    return mark;
}

/* ---- environments --------------------------------------------------------------- */

/*
 * A policy's environment is an empty table; its metatable sends reads to the
 * words, and writes here. While the file loads they go into a table of its
 * own between the two; afterwards they are refused, as a policy keeps nothing
 * from one call to the next.
 */
static int set_global(lua_State *L)
{
    struct sandbox *sandbox = sandbox_of(L);
    const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "?";
    if (!sandbox->now->loading)
        return luaL_error(L, "'%s' is set as a global: a policy keeps nothing between calls; write local %s",
                          name, name);
    sandbox_push_builtins(L);
    lua_pushvalue(L, 2);
    lua_rawget(L, -2);
    if (!lua_isnil(L, -1))
        return luaL_error(
            L, "'%s' is a word of policies and can't be set: write local %s, or choose another name", name,
            name);
    lua_pop(L, 1);
    lua_getmetatable(L, 1);
    lua_getfield(L, -1, "__index");
    if (lua_rawequal(L, -1, -3)) { /* the first one */
        lua_newtable(L);
        lua_rawgeti(L, LUA_REGISTRYINDEX, sandbox->own_refs[WORDS_STOCK]);
        lua_setmetatable(L, -2);
        lua_pushvalue(L, -1);
        lua_setfield(L, -4, "__index");
    }
    lua_pushvalue(L, 2);
    lua_pushvalue(L, 3);
    lua_rawset(L, -3);
    return 0;
}

static void push_environment(lua_State *L)
{
    lua_newtable(L);
    lua_createtable(L, 0, 3);
    sandbox_push_builtins(L);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, set_global);
    lua_setfield(L, -2, "__newindex");
    lua_setmetatable(L, -2);
}

void sandbox_push_builtins(lua_State *L)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, sandbox_of(L)->words_refs[WORDS_STOCK]);
}

void sandbox_push_globals(lua_State *L, int environment)
{
    lua_getmetatable(L, environment);
    lua_getfield(L, -1, "__index");
    lua_remove(L, -2);
    sandbox_push_builtins(L);
    if (lua_rawequal(L, -1, -2)) {
        lua_pushnil(L);
        lua_replace(L, -3);
    }
    lua_pop(L, 1);
}

void sandbox_use_proxies(lua_State *L, int environment, bool in_loops_only)
{
    struct sandbox *sandbox = sandbox_of(L);
    enum words_kind kind = in_loops_only ? WORDS_QUICK : WORDS_AWARE;
    sandbox_push_globals(L, environment);
    if (lua_istable(L, -1)) {
        lua_rawgeti(L, LUA_REGISTRYINDEX, sandbox->own_refs[kind]);
        lua_setmetatable(L, -2);
    } else {
        lua_getmetatable(L, environment);
        lua_rawgeti(L, LUA_REGISTRYINDEX, sandbox->words_refs[kind]);
        lua_setfield(L, -2, "__index");
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

void sandbox_load(lua_State *L, struct str source, const char *file)
{
    lua_pushfstring(L, "@%s", sandbox_chunk(file));
    if (luaL_loadbufferx(L, source.at, source.len, lua_tostring(L, -1), "t") != 0)
        lua_error(L);
    push_environment(L);
    lua_setfenv(L, -2);
    lua_remove(L, -2);
}

/* ---- the state -------------------------------------------------------------------- */

/* The words on top, and what reads them behind globals of a policy's own. */
static void keep_words(lua_State *L, struct sandbox *sandbox, enum words_kind kind)
{
    lua_createtable(L, 0, 1);
    lua_pushvalue(L, -2);
    lua_setfield(L, -2, "__index");
    sandbox->own_refs[kind] = luaL_ref(L, LUA_REGISTRYINDEX);
    sandbox->words_refs[kind] = luaL_ref(L, LUA_REGISTRYINDEX);
}

/* Pushes a copy of the words at `from`, with those replaced that `exchange` has a substitute for
 * (read_only_proxy.h). */
static void push_variant(lua_State *L, int from, void (*exchange)(lua_State *L))
{
    lua_createtable(L, 0, 0);
    int to = lua_gettop(L);
    for (lua_pushnil(L); lua_next(L, from);) {
        lua_pushvalue(L, -2);
        lua_pushvalue(L, -2);
        exchange(L);
        lua_pushvalue(L, lua_isnil(L, -1) ? -3 : -1);
        lua_remove(L, -2);
        lua_rawset(L, to);
        lua_pop(L, 1);
    }
    libraries_guard_missing(L, NULL);
}

struct set_up {
    struct sandbox *sandbox;
    sandbox_open_builtins *open_words;
};

static void set_up(lua_State *L, void *context)
{
    const struct set_up *with = context;
    struct sandbox *sandbox = with->sandbox;
    bytecode_detect_opcodes(L, sandbox->now->arena, &sandbox->opcodes);
    make_marks(sandbox);
    with->open_words(L);
    int words = lua_gettop(L);
    push_variant(L, words, proxy_stock_function);
    keep_words(L, sandbox, WORDS_STOCK);
    push_variant(L, words, proxy_aware_function);
    keep_words(L, sandbox, WORDS_AWARE);
    keep_words(L, sandbox, WORDS_QUICK);
}

struct sandbox *sandbox_new(uint32_t memory_kb, sandbox_open_builtins *open_words)
{
    struct sandbox *sandbox = calloc(1, sizeof(*sandbox));
    struct set_up with = {sandbox, open_words};
    struct arena *arena = arena_new();
    struct sandbox_context now = {.arena = arena, .file = "the words of policies", .loading = true};
    struct why why = {""};
    if (!sandbox)
        abort();
    heap_init(&sandbox->heap, (size_t)memory_kb * 1024);
    sandbox->L = lua_newstate(heap_realloc, &sandbox->heap);
    if (!sandbox->L) {
        fprintf(stderr, "toolgate: no Lua state within %u KB (config limits.policy_kb)\n", memory_kb);
        abort();
    }
    luaJIT_setmode(sandbox->L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
    lua_pushcfunction(sandbox->L, enter);
    sandbox->enter_ref = luaL_ref(sandbox->L, LUA_REGISTRYINDEX);
    if (sandbox_run(sandbox, SANDBOX_LOAD_DEADLINE_MS, &now, set_up, &with, &why) != OK) {
        fprintf(stderr, "toolgate: the words of policies do not load: %s\n", why.text);
        abort();
    }
    sandbox->now = NULL;
    arena_free(arena);
    return sandbox;
}

/*
 * lua_close would walk every object to give each back alone, 2 ms for a
 * thousand policies while calls wait; all of it is the heap's. It has nothing
 * else to do: no object has a finalizer, and with the JIT off there is no
 * machine code.
 */
void sandbox_free(struct sandbox *sandbox)
{
    if (!sandbox)
        return;
    heap_clear(&sandbox->heap);
    free(sandbox);
}
