/* The private part of policies and their set: Lua references, rules and counters. Only files of this room
 * include this header. */
#ifndef TOOLGATE_POLICY_POLICY_INTERNAL_H
#define TOOLGATE_POLICY_POLICY_INTERNAL_H

#include "policy/policy_hooks.h"
#include "policy/policy_set.h"
#include "sandbox/bytecode.h"
#include "sandbox/diagnostics.h"
#include "sandbox/freeze.h"
#include "sandbox/sandbox.h"

struct buf;
struct call_field;
struct token;

/* ---- modules: the files of policies/lib, which policies and each other get by require "lib.NAME". Each runs
 * once per set, before all policies, in the same sandbox with an environment of its own; what it returns is
 * read-only. ---- */

#define LUA_MODULES_MAX 256u /* files in lib */

enum lua_module_state { MODULE_UNLOADED, MODULE_LOADING, MODULE_LOADED, MODULE_BROKEN, MODULE_QUARANTINED };

struct lua_module {
    struct str name, file, source; /* "lib.paths", "policies/lib/paths.lua" */
    enum lua_module_state state;
    int ref;                   /* its value in the registry, once it is loaded */
    struct policy_wants wants; /* what its functions read of `call` */
};

struct lua_modules {
    struct lua_module *list; /* by name */
    size_t count, next;      /* next: the first that is not loaded yet */
    uint64_t hash;           /* of all names and texts; 0: none exist */
};

/* What one file requires, gathered while it loads. */
struct lua_module_use {
    const struct policy_set *set;
    struct policy_wants wants;
    const struct lua_module *stalled; /* one that is quarantined; NULL: none */
};

/* Files that json "…" has read for a set of policies, each once. */
struct json_files {
    struct json_file {
        struct json_file *next;
        struct str path;
        struct json value;
    } * first;
    uint64_t hash; /* over all of them */
    struct arena *arena;
};

/* ---- rules: a condition on the arguments, and what follows from it, as data. rule.c evaluates them, except
 * for predicates; each counts how often it changed or refused something. ---- */

enum condition_kind {
    COND_VALUES,   /* any of `values` */
    COND_NONE_OF,  /* given, and none of `values` */
    COND_NUMBERS,  /* a number between `low` and `high` */
    COND_TIMES,    /* a string that is a time between them */
    COND_GIVEN,    /* given, and not null */
    COND_ABSENT,   /* left out, or null */
    COND_PREDICATE /* given, and the Lua function returns true */
};

/* One end of a range; `value` NULL: it has none. */
struct bound {
    const struct json *value; /* a number, or a time as a string */
    double seconds;           /* COND_TIMES: the same as seconds since 1970 */
    bool open;                /* the bound itself is outside */
};

struct range {
    struct bound low, high;
};

struct predicate {
    struct str words;  /* its description */
    size_t test;       /* its index in rules.tests */
    const void *which; /* identifies the function */
    bool takes_call;   /* it has a third parameter */
};

/* Most conditions are values: what the others need is apart, as there may be many policies. */
struct rule_condition {
    struct str path;
    enum condition_kind kind;
    const struct json *values;
    size_t count;
    const struct range *range;         /* COND_NUMBERS, COND_TIMES; else NULL */
    const struct predicate *predicate; /* COND_PREDICATE; else NULL */
};

struct refusal {
    struct str code, message, hint;
};

/* What predicates need. Without it no predicate runs, and none holds. */
struct condition_tests {
    lua_State *L;
    const int *refs;
    const struct rule *rule; /* whose predicate runs, for its errors */
};

struct rule {
    const struct rule_condition *conditions; /* all of these, predicates last; none: always */
    size_t condition_count;
    const struct json *needs, *drops;      /* lists of names; NULL: none */
    const struct json *one_of, *exclusive; /* lists of such lists; NULL: none */
    const struct json *defaults;           /* an object; NULL: none */
    const struct refusal *refusal;         /* NULL: it does not refuse */
    struct str when; /* the condition in words, `when action is "by_ids"`; empty: always */
    struct str words;
    int line;
};

struct rules {
    struct rule *list;
    size_t count;
    uint64_t *hits;
    int *tests; /* references to predicates */
    size_t test_count;
};

/* The items of a list of a rule, which may be NULL. */
static inline uint32_t rule_items(const struct json *list)
{
    return list ? list->len : 0;
}
static inline struct str rule_name(const struct json *list, uint32_t i)
{
    return json_str(&list->items[i]);
}

/* It holds for this value (NULL: left out); predicates never do. */
bool condition_matches(const struct rule_condition *c, const struct json *value);
void condition_describe(struct buf *out, const struct rule_condition *c); /* limit is above 100 */

/* The new arguments, `args` itself if nothing changed; adds problems. Rules with predicates need `tests` and
 * may raise Lua errors; without it they do not hold. */
const struct json *rule_apply_all(const struct rules *rules, const struct json *args, struct arena *arena,
                                  struct problems *problems, struct condition_tests *tests);

/* The first rule that refuses these arguments, or NULL. */
const struct rule *rule_find_refusal(const struct rules *rules, const struct json *args,
                                     struct condition_tests *tests);

/* Whether a rule looks at, demands, drops or fills in this argument. */
bool rule_any_names(const struct rules *rules, struct str argument);

/* ---- a policy and its set ---- */

#define HOOK_NONE LUA_NOREF

struct policy_code {
    int hooks[HOOK_COUNT]; /* the functions in the registry, or HOOK_NONE */
    struct rules rules;
    struct str stalled; /* of a quarantined policy: the file that stalled: its own, or one that it requires */
};

struct policy_set {
    struct arena *examples;  /* holds the examples; NULL once they are freed */
    struct arena *arena;     /* holds everything else */
    struct arena_pool *pool; /* the same, for what policies repeat */
    struct sandbox *sandbox;
    struct policy_set_options options;
    const char *folder; /* NULL: loaded from a string */
    struct policy **list;
    size_t count;
    struct map *by_name;      /* policies of one tool */
    struct policy **overlays; /* policies for several tools, in the order of their files */
    size_t overlay_count;
    struct json_files files;
    struct lua_modules modules;
    struct policy *gateway;
    struct policy_stall *stalls; /* the quarantined files */
    size_t stall_count;
    uint64_t hash;
};

static inline void policy_wants_add(struct policy_wants *wants, const struct policy_wants *more)
{
    wants->history |= more->history;
    wants->facts |= more->facts;
    wants->progress |= more->progress;
}

/* Pushes a field of the table at `at`, past any metatable; of a module's read-only table the table itself. */
static inline void table_push_field(lua_State *L, int at, const char *name)
{
    lua_pushstring(L, name);
    lua_rawget(L, at < 0 ? at - 1 : at);
    proxy_unwrap(L, -1);
}

/* The same for item `i` of the list at `at`. */
static inline void table_push_item(lua_State *L, int at, size_t i)
{
    lua_rawgeti(L, at, (int)i);
    proxy_unwrap(L, -1);
}

/* Whether the table has another key than 1 to `count`, which is on top then. */
bool table_has_other_key(lua_State *L, int at, size_t count);

int lua_modules_require(lua_State *L); /* the word require (policy_set.c) */

/* ---- policy_hooks.c: the table `call` of hooks ---- */

/* Its field of this name; if none exists, NULL, and *meant is the closest name or STR_NONE. */
const struct call_field *call_table_find(struct str name, struct str *meant);
void call_table_push(lua_State *L); /* a table for the running hook */
void call_table_open(lua_State *L); /* once per Lua state */

/* ---- vocabulary.c and words.c: the words of policies, which lua/policy/reference.lua documents ---- */

/* Opens the libraries and pushes the table of all words. Once per Lua state, protected. */
void vocabulary_open(lua_State *L);

/* Pushes the function of lua/policy/annotations.lua that makes a schema of comments. */
void vocabulary_push_annotations(lua_State *L);

/* The fields that a word takes: "repair", "ok", "ok.follow_up", "tool_return"; NULL for any other. */
struct word_fields {
    const char *word, *names[8]; /* NULL ends them */
};
const struct word_fields *word_fields_of(const char *word);

extern const luaL_Reg words_in_c[], word_builtins[]; /* for policies; for the words that are written in Lua */

/* Reads the strings of the list at `list`, which owns them, up to the first other item; returns how many. */
size_t word_read_names(lua_State *L, int list, struct str *names, size_t most);

/* Seconds since 1970 of an ISO 8601 time; seconds of "PT1H30M" or "1.5h". False: it is not one. */
bool word_time_parse(struct str text, double *seconds);
bool word_duration_parse(struct str text, double *seconds);

/* ---- static_check.c: names that do not exist, found before any of the file runs ---- */

/* Globals and fields of libraries in the whole file. */
void static_check_file(lua_State *L, const struct bytecode *file, struct diagnostics *complaints);

/* Fields of the second parameter of a hook, if that surely is `call`. */
void static_check_call(lua_State *L, const struct bytecode *hook, struct diagnostics *complaints);

/* Takes the fields that a hook `check` reads of its first parameter, if it surely does nothing else with it.
 */
void static_check_args(lua_State *L, const struct bytecode *hook, struct arena *arena, struct policy *policy);

/* Fields that repair { … }, ok { … } and tool_return { … } do not take, and tables for words that take their
 * values in order, where they are written out. */
void static_check_outcomes(const struct token *t, struct diagnostics *complaints);

/* Fields that a table has twice. */
void static_check_repeated(const struct token *t, struct diagnostics *complaints);

#endif
