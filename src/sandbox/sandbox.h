/*
 * One LuaJIT state that runs what it did not write: bounded in time (a tick
 * that arms a hook), memory (a capped heap) and C stack, with the JIT off and
 * nothing in reach but the words it is given. Every policy has an environment
 * of its own; all of a generation share one state.
 *
 * Only files of this room include this header: it shows lua_State.
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
struct bridge_origins;
struct json_files;
struct bytecode_opcodes;
struct policy_call;

#define SANDBOX_STACK_BYTES      262144u  /* C stack that callbacks within callbacks may use */
#define SANDBOX_SOURCE_MAX_BYTES 1048576u /* of a file of policies or configuration */
#define SANDBOX_PATTERN_STEPS                                                                                \
    1000000u /* of one find, match, gmatch or gsub, and 32 more for each byte of the subject */

struct sandbox;

#define SANDBOX_BUILTINS_CHUNK "=(words)" /* the chunk name of embedded Lua: no error names a line in it */

/* What the words of this room need to know of the running call. */
struct sandbox_context {
    const struct policy_call *call; /* NULL outside of hooks */
    const struct json *args;        /* call.args; NULL outside of result */
    struct arena *arena;            /* where texts and values of this run go */
    const char *folder;             /* loading: files beside the policy; NULL: none */
    const char *file;               /* as the operator knows it */
    struct str source;              /* loading: its text */
    uint64_t text;                  /* hash of its text: with the name it says which file stalled */
    const char *hook; /* the function that runs and where it begins: the place of an error that has none */
    int hook_line;
    struct json_files *files; /* loading: what json "…" has read before; NULL: nobody remembers */
    bool loading;
    struct bridge_origins *origins; /* what goes over is remembered here; NULL: it is not */
    bool lazy;                      /* long texts go over when they are read */
};

/* Runs inside the protected call; may raise Lua errors. */
typedef void sandbox_step(lua_State *L, void *context);

/* Opens the libraries and pushes the table of all words that files may use. Runs once a state, protected. */
typedef void sandbox_open_builtins(lua_State *L);

struct sandbox *sandbox_new(uint32_t memory_kb, sandbox_open_builtins *open_words);
void sandbox_free(struct sandbox *sandbox);
struct sandbox *sandbox_of(lua_State *L);

/*
 * Runs the step within `budget_ms`. ERR_POLICY with a sentence "file:line: …"
 * where it failed for whatever reason; garbage is collected then if memory
 * had run out. The Lua stack is as before in every case.
 */
enum err sandbox_run(struct sandbox *sandbox, uint32_t budget_ms, const struct sandbox_context *now,
                     sandbox_step *step, void *context, struct why *why);

/* Each line that runs from now on is told with its chunk (sandbox_chunk), which makes everything slow; NULL
 * ends it. Past a deadline no lines are told. */
typedef void sandbox_line_callback(void *context, const char *chunk, int line);
void sandbox_trace_lines(struct sandbox *sandbox, sandbox_line_callback *trace, void *context);

/* True once the running step is past its deadline: loops in C ask this and then raise sandbox_raise_deadline.
 */
bool sandbox_deadline_passed(struct sandbox *sandbox);
int sandbox_raise_deadline(lua_State *L);

/* Raises an error where callbacks are nested so deep that the C stack would run out. */
void sandbox_check_stack(lua_State *L, const char *word);

/* What Lua calls the file in its messages: the path, or its last part where the path is long. Part of `file`.
 */
const char *sandbox_chunk(const char *file);

/* Pushes the chunk of a file with such an environment, or raises the syntax error. Text only, never bytecode.
 */
void sandbox_load(lua_State *L, struct str source, const char *file);

/* The table of all words; what the policy of this environment has set beside them, or nil. */
void sandbox_push_builtins(lua_State *L);
void sandbox_push_globals(lua_State *L, int environment);

/* From now on the words of this environment know stand-ins (read_only_proxy.h). `in_loops_only`: that is how
 * the file uses pairs and ipairs. */
void sandbox_use_proxies(lua_State *L, int environment, bool in_loops_only);

const struct sandbox_context *sandbox_context(const struct sandbox *sandbox);
const struct bytecode_opcodes *sandbox_opcodes(const struct sandbox *sandbox);
size_t sandbox_memory_bytes(const struct sandbox *sandbox); /* what all policies together may use */

/* Marked tables: a metatable that policies can neither read nor change. */
enum mark {
    MARK_NONE,
    MARK_ARRAY,       /* a JSON array, even when empty */
    MARK_OBJECT,      /* a JSON object, even when empty */
    MARK_LAZY,        /* a JSON object that leaves long texts out until they are read */
    MARK_SET,         /* set{…}: its keys are the members */
    MARK_OUTCOME,     /* repair, refuse, ok, … */
    MARK_DECLARATION, /* tool "…" {…}, gateway {…} */
    MARK_RULE,
    MARK_CONDITION, /* above, between, none_of, is, … */
    MARK_TYPE,      /* of params */
    MARK_ID,        /* seen, shape */
    MARK_CALL,      /* the `call` table */
    MARK_COUNT
};
enum mark sandbox_mark(lua_State *L, int at);
void sandbox_set_mark(lua_State *L, enum mark mark);  /* of the table on top */
void sandbox_push_mark(lua_State *L, enum mark mark); /* the metatable itself, to fill at set-up */

#endif
