/*
 * A walk from the functions that were declared and the globals of the file,
 * with a queue in the place of recursion: what a policy builds may be nested
 * deeper than the C stack. Values are replaced where they are kept: in the
 * variables of closures, in the table of globals, and in tables.
 */
#include "sandbox/freeze.h"
#include "sandbox/read_only_proxy.h"
#include "sandbox/iterator_check.h"
#include "sandbox/sandbox.h"
#include "sandbox/string_library.h"

#include <string.h>

struct settling {
    lua_State *L;
    const struct bytecode_opcodes *ops;
    struct diagnostics *diagnostics;
    int met;   /* table: what was met -> its stand-in, or true */
    int queue; /* table: functions and tables whose content is still to be settled */
    int first, last;
    const char *name; /* by which what is settled now is reached */
    bool froze;
};

/* ---- assignments ------------------------------------------------------------------ */

struct level {
    const struct bytecode *code;
    const struct level *up;
};

/* Does the variable live longer than a call of the outermost function: that has it from outside. */
static bool is_kept(const struct level *level, uint32_t variable)
{
    for (; level->up; level = level->up) {
        if (level->code->outer[variable] & BYTECODE_UPVALUE_LOCAL)
            return false;
        variable = level->code->outer[variable] & 0xff;
    }
    return true;
}

static void check_assignments(struct settling *s, const struct bytecode *code, const struct level *up)
{
    struct level level = {code, up};
    for (uint32_t i = 0; i < code->count; i++) {
        uint32_t variable = bytecode_a(code->at[i]);
        if (!bytecode_writes_upvalue(s->ops, code->at[i]) || variable >= code->outer_count ||
            !is_kept(&level, variable))
            continue;
        struct str name = str_cut(code->outer_names[variable], 60);
        diagnostics_add(s->diagnostics, bytecode_line(code, i),
                        "keeps state between calls: '" STR_FMT
                        "' is older than the call that sets it here: write "
                        "local " STR_FMT "; " PROXY_WRITE_HINT,
                        STR_ARG(name), STR_ARG(name));
    }
    for (uint32_t i = 0; i < code->constant_count; i++)
        if (code->constants[i].function)
            check_assignments(s, code->constants[i].function, &level);
}

/* ---- the walk ------------------------------------------------------------------------ */

static void look_at_deadline(lua_State *L)
{
    if (sandbox_deadline_passed(sandbox_of(L)))
        sandbox_raise_deadline(L);
}

/* Notes what stands for the value at `at`: the value on top, which is taken. */
static void note(struct settling *s, int at)
{
    lua_pushvalue(s->L, at);
    lua_insert(s->L, -2);
    lua_rawset(s->L, s->met);
}

static void enqueue(struct settling *s, int at)
{
    lua_pushvalue(s->L, at);
    lua_rawseti(s->L, s->queue, ++s->last);
}

/* Replaces the value on top by what was noted for it; false where there is nothing. */
static bool is_met(struct settling *s)
{
    lua_pushvalue(s->L, -1);
    lua_rawget(s->L, s->met);
    bool met = !lua_isnil(s->L, -1);
    if (lua_type(s->L, -1) == LUA_TUSERDATA)
        lua_replace(s->L, -2);
    else
        lua_pop(s->L, 1);
    return met;
}

static void settle_table(struct settling *s)
{
    int at = lua_gettop(s->L);
    proxy_push(s->L, s->name);
    lua_pushvalue(s->L, -1);
    note(s, at);
    enqueue(s, at);
    lua_replace(s->L, at);
    s->froze = true;
}

/* The stock functions that know no stand-ins are replaced by those that do. */
static void settle_native(struct settling *s)
{
    lua_Debug where = {0};
    if (lua_tocfunction(s->L, -1) == string_library_gmatch_step) {
        lua_rawgeti(s->L, s->queue, s->first - 1); /* whoever reaches it */
        bool function = lua_isfunction(s->L, -1);
        if (function)
            lua_getinfo(s->L, ">S", &where);
        else
            lua_pop(s->L, 1);
        diagnostics_add(
            s->diagnostics, function ? where.linedefined : 1,
            "keeps state between calls: '%s' is a loop of gmatch that was begun when the file was "
            "loaded: call gmatch in the function",
            s->name);
        return;
    }
    lua_pushvalue(s->L, -1);
    proxy_aware_function(s->L);
    if (lua_isnil(s->L, -1))
        lua_pop(s->L, 1);
    else
        lua_replace(s->L, -2);
}

/* Replaces the value on top by what is to stand in its place. */
static void settle_value(struct settling *s)
{
    int type = lua_type(s->L, -1);
    if (type == LUA_TFUNCTION && lua_iscfunction(s->L, -1)) {
        settle_native(s);
    } else if ((type == LUA_TFUNCTION || type == LUA_TTABLE) && !is_met(s)) {
        if (type == LUA_TTABLE) {
            settle_table(s);
            return;
        }
        lua_pushboolean(s->L, true);
        note(s, lua_gettop(s->L) - 1);
        enqueue(s, -1);
    }
}

/* ---- what is in a function, in a table ------------------------------------------------- */

/* The function on top: our own words have what they have. */
static void enter_function(struct settling *s)
{
    lua_State *L = s->L;
    lua_Debug where;
    const char *name;
    int at = lua_gettop(L);
    lua_pushvalue(L, at);
    lua_getinfo(L, ">S", &where);
    if (strcmp(where.source, SANDBOX_BUILTINS_CHUNK) == 0)
        return;
    check_assignments(s, bytecode_read(L, at, s->diagnostics->arena), NULL);
    for (int i = 1; (name = lua_getupvalue(L, at, i)); i++) {
        s->name = name;
        settle_value(s);
        lua_setupvalue(L, at, i);
    }
}

/* Keys that are tables go by their stand-ins; the others stay. */
static void settle_keys(struct settling *s, int table)
{
    lua_State *L = s->L;
    lua_newtable(L);
    int keys = lua_gettop(L), count = 0;
    for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1))
        if (lua_istable(L, -2) || lua_isfunction(L, -2)) {
            lua_pushvalue(L, -2);
            lua_rawseti(L, keys, ++count);
        }
    for (int i = 1; i <= count; i++) {
        lua_rawgeti(L, keys, i);
        lua_pushvalue(L, -1);
        lua_rawget(L, table); /* key, value */
        lua_pushvalue(L, -2);
        lua_pushnil(L);
        lua_rawset(L, table);
        lua_insert(L, -2);
        settle_value(s);
        lua_insert(L, -2);
        lua_rawset(L, table);
    }
    lua_pop(L, 1);
}

/* The values of the table at `at`, each by the key where `by_key`, else all by the name of the table. */
static void enter_table(struct settling *s, int at, bool by_key)
{
    lua_State *L = s->L;
    bool keys = false;
    int i = 0;
    for (lua_pushnil(L); lua_next(L, at); lua_pop(L, 1)) {
        int key = lua_type(L, -2), value = lua_type(L, -1);
        keys = keys || key == LUA_TTABLE || key == LUA_TFUNCTION;
        if (++i % 1024 == 0)
            look_at_deadline(L);
        if (value != LUA_TTABLE && value != LUA_TFUNCTION)
            continue;
        if (by_key)
            s->name = key == LUA_TSTRING ? lua_tostring(L, -2) : "a global";
        settle_value(s);
        lua_pushvalue(L, -2);
        lua_pushvalue(L, -2);
        lua_rawset(L, at);
    }
    if (keys)
        settle_keys(s, at);
}

static void empty_queue(struct settling *s)
{
    lua_State *L = s->L;
    int top = lua_gettop(L);
    while (s->first <= s->last) {
        lua_rawgeti(L, s->queue, s->first++);
        look_at_deadline(L);
        if (lua_isfunction(L, -1)) {
            enter_function(s);
        } else {
            lua_pushvalue(L, -1);
            is_met(s); /* its stand-in has the name */
            s->name = proxy_name(L, -1);
            enter_table(s, top + 1, false);
        }
        lua_settop(L, top);
    }
}

/* ---- where it begins --------------------------------------------------------------------- */

/* Fields that were read as JSON: there can be no function in them, and they are large. */
static bool is_data(lua_State *L, int key)
{
    static const char *const names[] = {"examples", "schema", "output_schema", "annotations"};
    for (size_t i = 0; lua_type(L, key) == LUA_TSTRING && i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(lua_tostring(L, key), names[i]) == 0)
            return true;
    return false;
}

/* Was the table on top found before? From now on it was. */
static bool was_found(lua_State *L, int found)
{
    lua_pushvalue(L, -1);
    lua_rawget(L, found);
    bool was = !lua_isnil(L, -1);
    lua_pop(L, 1);
    lua_pushvalue(L, -1);
    lua_pushboolean(L, true);
    lua_rawset(L, found);
    return was;
}

/* All functions in the table at `declared` and the tables in there, which themselves nobody reaches. */
static void find_functions(struct settling *s, int declared)
{
    lua_State *L = s->L;
    int top = lua_gettop(L), tables = top + 1, found = top + 2, first = 1, last = 1;
    lua_newtable(L); /* in a row: what was declared, its fields, and so on */
    lua_newtable(L);
    lua_pushvalue(L, declared);
    lua_rawseti(L, tables, 1);
    for (; first <= last; lua_settop(L, found), first++) {
        lua_rawgeti(L, tables, first);
        look_at_deadline(L);
        for (lua_pushnil(L); lua_next(L, found + 1); lua_pop(L, 1)) {
            s->name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "an item";
            if (lua_isfunction(L, -1))
                settle_value(s);
            if (!lua_istable(L, -1) || (first == 2 && is_data(L, -2)) || was_found(L, found))
                continue;
            lua_pushvalue(L, -1);
            lua_rawseti(L, tables, ++last);
        }
    }
    lua_settop(L, top);
}

void freeze_file(lua_State *L, const struct bytecode *file, int environment, int declared,
                 struct diagnostics *diagnostics)
{
    int top = lua_gettop(L);
    struct settling s = {.L = L,
                         .ops = sandbox_opcodes(sandbox_of(L)),
                         .diagnostics = diagnostics,
                         .met = top + 1,
                         .queue = top + 2,
                         .first = 1};
    luaL_checkstack(L, 20, "settling");
    lua_newtable(L);
    lua_newtable(L);
    find_functions(&s, declared);
    sandbox_push_globals(L, environment);
    if (lua_istable(L, -1))
        enter_table(&s, top + 3, true);
    empty_queue(&s);
    if (s.froze)
        sandbox_use_proxies(L, environment, iterator_check_passes(s.ops, file));
    lua_settop(L, top);
}
