/* See static_check.h. What cannot be told for sure is left to the run, where every missing name is an error
 * as well.
 */
#include "policy/static_check.h"
#include "base/arena.h"
#include "policy/call_table.h"
#include "sandbox/libraries.h"
#include "sandbox/sandbox.h"

#define CALL_REGISTER 1u /* the second parameter's: parameters keep their registers */

struct naming {
    lua_State *L;
    const struct bytecode_opcodes *ops;
    const struct bytecode *file;
    struct diagnostics *complaints;
    int words;       /* index of the table of words */
    struct str *own; /* globals that the file sets itself */
    size_t own_count;
};

static bool is_op(const struct bytecode *code, uint32_t i, uint8_t op)
{
    return i < code->count && bytecode_op(code->at[i]) == op;
}

/* May the instruction be reached by a jump? Whatever reads as one counts. */
static bool is_target(const struct bytecode *code, uint32_t i)
{
    for (uint32_t from = 0; from < code->count; from++)
        if (from + 1 + bytecode_d(code->at[from]) - BYTECODE_JUMP_BIAS == i)
            return true;
    return false;
}

static bool is_own(const struct naming *n, struct str name)
{
    for (size_t i = 0; i < n->own_count; i++)
        if (str_eq(n->own[i], name))
            return true;
    return false;
}

/* Pushes what the table has under the name, past any metatable. */
static bool push_field(lua_State *L, int table, struct str name)
{
    lua_pushlstring(L, name.at, name.len);
    lua_rawget(L, table);
    return !lua_isnil(L, -1);
}

/* ---- globals --------------------------------------------------------------------- */

static void unknown_global(struct naming *n, int line, struct str name)
{
    struct str names[LIBRARIES_NAMES_MAX];
    char text[LIBRARIES_SENTENCE_MAX];
    size_t count = libraries_collect_names(n->L, n->words, names, 0);
    for (size_t i = 0; i < n->own_count && count < LIBRARIES_NAMES_MAX; i++)
        names[count++] = n->own[i];
    libraries_format_missing(text, sizeof(text), NULL, name, names, count);
    diagnostics_add(n->complaints, line, "%s", text);
}

/* The word on top is a library, and the instruction at `i` reads a field of it. */
static void check_field(struct naming *n, const struct bytecode *code, uint32_t i, struct str library)
{
    struct str names[LIBRARIES_NAMES_MAX], field = bytecode_text(code, bytecode_c(code->at[i]));
    char text[LIBRARIES_SENTENCE_MAX];
    if (!field.at || !libraries_push_wrapped(n->L, -1))
        return;
    int table = lua_gettop(n->L);
    if (!push_field(n->L, table, field)) {
        libraries_format_missing(text, sizeof(text), arena_dup(n->complaints->arena, library).at, field,
                                 names, libraries_collect_names(n->L, table, names, 0));
        diagnostics_add(n->complaints, bytecode_line(code, i), "%s", text);
    }
}

static void check_read(struct naming *n, const struct bytecode *code, uint32_t i)
{
    struct str name = bytecode_text(code, bytecode_d(code->at[i]));
    int top = lua_gettop(n->L);
    if (!push_field(n->L, n->words, name) && !is_own(n, name))
        unknown_global(n, bytecode_line(code, i), name);
    else if (is_op(code, i + 1, n->ops->field_read) &&
             bytecode_b(code->at[i + 1]) == bytecode_a(code->at[i]) && !is_target(code, i + 1))
        check_field(n, code, i + 1, name);
    lua_settop(n->L, top);
}

/* Only the file itself may set globals, and only while it is loaded: in a function it is a forgotten `local`.
 */
static void check_write(struct naming *n, const struct bytecode *code, uint32_t i)
{
    struct str name = str_cut(bytecode_text(code, bytecode_d(code->at[i])), 60);
    if (code != n->file)
        diagnostics_add(n->complaints, bytecode_line(code, i),
                        "'" STR_FMT
                        "' is set as a global inside of a function: a policy keeps nothing between "
                        "calls; write local " STR_FMT,
                        STR_ARG(name), STR_ARG(name));
}

static void check_function(struct naming *n, const struct bytecode *code)
{
    for (uint32_t i = 0; i < code->count; i++)
        if (is_op(code, i, n->ops->global_read))
            check_read(n, code, i);
        else if (is_op(code, i, n->ops->global_write))
            check_write(n, code, i);
    for (uint32_t i = 0; i < code->constant_count; i++)
        if (code->constants[i].function)
            check_function(n, code->constants[i].function);
}

static void find_own(struct naming *n)
{
    const struct bytecode *file = n->file;
    n->own = ARENA_ARRAY(n->complaints->arena, struct str, file->count);
    for (uint32_t i = 0; i < file->count; i++)
        if (is_op(file, i, n->ops->global_write))
            n->own[n->own_count++] = bytecode_text(file, bytecode_d(file->at[i]));
}

void static_check_file(lua_State *L, const struct bytecode *file, struct diagnostics *complaints)
{
    struct naming n = {.L = L, .ops = sandbox_opcodes(sandbox_of(L)), .file = file, .complaints = complaints};
    luaL_checkstack(L, 8, "checking names");
    sandbox_push_builtins(L);
    n.words = lua_gettop(L);
    find_own(&n);
    check_function(&n, file);
    lua_settop(L, n.words - 1);
}

/* ---- call.… ------------------------------------------------------------------------ */

/* May the instruction give the parameter another value? */
static bool overwrites_call(const struct bytecode_opcodes *ops, uint32_t ins)
{
    if (bytecode_op(ins) == ops->set_nil)
        return bytecode_a(ins) <= CALL_REGISTER && CALL_REGISTER <= bytecode_d(ins);
    return bytecode_a(ins) == CALL_REGISTER && !bytecode_writes_upvalue(ops, ins);
}

static bool is_outer_call(const struct bytecode *code, uint32_t i)
{
    return (code->upvalues[i] & BYTECODE_UPVALUE_LOCAL) && (code->upvalues[i] & 0xff) == CALL_REGISTER;
}

/* Does a function inside of the hook set its `call`? Or a field of that name, of whatever table? */
static bool is_set(const struct bytecode_opcodes *ops, const struct bytecode *code, struct str field,
                   bool inner)
{
    for (uint32_t i = 0; i < code->count; i++) {
        uint32_t ins = code->at[i];
        if (is_op(code, i, ops->field_write) && str_eq(bytecode_text(code, bytecode_c(ins)), field))
            return true;
        if (inner && bytecode_writes_upvalue(ops, ins) && is_outer_call(code, bytecode_a(ins)))
            return true;
        if (!inner && overwrites_call(ops, ins))
            return true;
    }
    for (uint32_t i = 0; i < code->constant_count; i++)
        if (code->constants[i].function && is_set(ops, code->constants[i].function, field, true))
            return true;
    return false;
}

void static_check_call(lua_State *L, const struct bytecode *hook, struct diagnostics *complaints)
{
    const struct bytecode_opcodes *ops = sandbox_opcodes(sandbox_of(L));
    struct str meant;
    if (hook->parameters <= CALL_REGISTER)
        return;
    for (uint32_t i = 0; i < hook->count; i++) {
        if (!is_op(hook, i, ops->field_read) || bytecode_b(hook->at[i]) != CALL_REGISTER)
            continue;
        struct str field = bytecode_text(hook, bytecode_c(hook->at[i]));
        if (!field.at || call_table_has(field, &meant) || is_set(ops, hook, field, false))
            continue;
        field = str_cut(field, 60);
        if (meant.len)
            diagnostics_add(complaints, bytecode_line(hook, i),
                            "there is no call." STR_FMT " (did you mean call." STR_FMT "?)", STR_ARG(field),
                            STR_ARG(meant));
        else
            diagnostics_add(complaints, bytecode_line(hook, i), "there is no call." STR_FMT, STR_ARG(field));
    }
}
