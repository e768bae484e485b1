/*
 * One LuaJIT state that runs untrusted code with bounds on time (a deadline
 * that sets a hook), memory (a capped heap) and C stack. The JIT is off, and
 * code has access only to the builtins it is given. All policies of a
 * generation share a state; each has an environment of its own.
 *
 * This header exposes lua_State: only src/sandbox and src/policy include it.
 */
#ifndef TOOLGATE_SANDBOX_SANDBOX_H
#define TOOLGATE_SANDBOX_SANDBOX_H

#include "base/err.h"
#include "base/str.h"
#include "json/value.h"

#include <lauxlib.h>
#include <lua.h>
#include <stdint.h>

struct arena;
struct bridge_run;
struct json_files;
struct lua_module_use;
struct bytecode_opcodes;
struct policy_call;
struct token;

#define SANDBOX_SOURCE_MAX_BYTES 1048576u /* of a file of policies or configuration */

struct sandbox;

#define SANDBOX_BUILTINS_CHUNK "=(builtins)" /* chunk name of embedded Lua: no error names a line in it */

/* What the sandbox and the builtins need to know of the current run. */
struct sandbox_context {
    const struct policy_call *call; /* NULL outside of hooks */
    const struct json *args;        /* call.args; NULL outside of result */
    struct arena *arena;            /* for strings and values of this run */
    const char *folder;             /* while loading: of files beside the policy; NULL: none */
    const char *file;               /* as the operator named it */
    const struct token *tokens;     /* while loading: of the file */
    uint64_t source_hash;           /* identifies the content of a file that stalls */
    const char *hook; /* the function that runs and its first line, for errors without a position */
    int hook_line;
    struct json_files *files;       /* while loading: cache of json "…" */
    struct lua_module_use *modules; /* while loading: what require finds; NULL: nothing */
    struct str *raised;             /* gets the words of an error() that ended the run; NULL: not wanted */
    bool shares_time;               /* its limit is what other runs have left, not the configuration's */
    bool loading;
    bool keeps_origins; /* records which table came from which JSON value (bridge.h) */
};

/* Runs inside the protected call; may raise Lua errors. */
typedef void sandbox_step(lua_State *L, void *context);

/* Opens the libraries and pushes the table of all builtins: once a state, inside the protected call. */
typedef void sandbox_open_builtins(lua_State *L);

struct sandbox *sandbox_new(uint32_t memory_kb, sandbox_open_builtins *open_builtins);
void sandbox_free(struct sandbox *sandbox); /* accepts NULL */

/* Runs the step within `budget_ms`. If it fails, returns ERR_POLICY, past the deadline ERR_TIMEOUT, with the
 * message "file:line: …"; if memory ran out, garbage is collected. The Lua stack is always restored. */
enum err sandbox_run(struct sandbox *sandbox, uint32_t budget_ms, const struct sandbox_context *now,
                     sandbox_step *step, void *context, struct why *why);

/* From now on `trace` is called for each line that runs, with its chunk (sandbox_chunk), which is slow; NULL
 * ends it. Not called past a deadline. */
typedef void sandbox_line_callback(void *context, const char *chunk, int line);
void sandbox_trace_lines(struct sandbox *sandbox, sandbox_line_callback *trace, void *context);

/* The string at `at`, which Lua holds; STR_NONE: it is not one. */
static inline struct str sandbox_string(lua_State *L, int at)
{
    struct str s = STR_NONE;
    if (lua_type(L, at) == LUA_TSTRING)
        s.at = lua_tolstring(L, at, &s.len);
    return s;
}

static inline void sandbox_push_string(lua_State *L, struct str s) /* nil if it is empty */
{
    if (s.len)
        lua_pushlstring(L, s.at, s.len);
    else
        lua_pushnil(L);
}

/* Long loops in C must check whether the current run is past its deadline; the second raises an error. */
bool sandbox_deadline_passed(struct sandbox *sandbox);
void sandbox_check_deadline(lua_State *L);

/* Raises an error if callbacks are nested so deep that the C stack would overflow. */
void sandbox_check_stack(lua_State *L, const char *function);

/* The builtin pcall. LuaJIT's own does not check the stack, which pcall(unpack { pcall, pcall, … }) overflows
 * (its issue 1048). */
int sandbox_pcall(lua_State *L);

int sandbox_error(lua_State *L); /* the builtin error: with it a tool's own `run` says that it has failed */

/* Lua's name of the file in its messages, a suffix of `file`: the last component if the path is long. */
const char *sandbox_chunk(const char *file);

/* Pushes the chunk of a file with a new environment, or raises the syntax error. Refuses bytecode. */
void sandbox_load(lua_State *L, struct str source, const char *file);

/* Push the table of all builtins; the table of globals that the file of this environment has set, or nil. */
void sandbox_push_builtins(lua_State *L);
void sandbox_push_globals(lua_State *L, int environment);

const struct sandbox_context *sandbox_context(lua_State *L);
struct bridge_run *sandbox_bridge(lua_State *L);
const struct bytecode_opcodes *sandbox_opcodes(lua_State *L);
size_t sandbox_memory_bytes(lua_State *L); /* the limit for all policies together */

/* The kind of a marked table: its metatable, which policies can neither read nor change. */
enum mark {
    MARK_NONE,
    MARK_ARRAY,       /* a JSON array, also if empty */
    MARK_OBJECT,      /* a JSON object, also if empty */
    MARK_SET,         /* set{…}: its keys are the members */
    MARK_OUTCOME,     /* repair, refuse, ok, … */
    MARK_DECLARATION, /* tool "…" {…}, gateway {…} */
    MARK_RULE,
    MARK_CONDITION, /* above, between, none_of, is, … */
    MARK_TYPE,      /* of params */
    MARK_ID,        /* an id format, or seen */
    MARK_CALL,      /* the `call` table */
    MARK_COUNT
};
enum mark sandbox_mark(lua_State *L, int at);         /* of a read-only proxy: its table's */
void sandbox_set_mark(lua_State *L, enum mark mark);  /* of the table on top */
void sandbox_push_mark(lua_State *L, enum mark mark); /* the metatable itself */

#endif
