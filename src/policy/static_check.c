/* Finds names that do not exist in the bytecode of a policy. Reports only certain cases; any other missing
 * name fails when it is read at run time. */
#include "policy/policy_internal.h"
#include "base/arena.h"
#include "base/suggest.h"
#include "policy/field.h"
#include "policy/source_location.h"
#include "sandbox/libraries.h"

/* Of the first two parameters of a hook, which keep their registers. */
enum { ARGS_REGISTER, CALL_REGISTER };

#define CHECK_READS_MAX 64u /* names of arguments that a check reads; no further ones are looked at */

struct check {
    lua_State *L;
    const struct bytecode_opcodes *ops;
    const struct bytecode *file;
    struct diagnostics *diagnostics;
    int words;       /* index of the table of words */
    struct str *own; /* globals that the file sets itself */
    size_t own_count;
};

static bool is_op(const struct bytecode *code, uint32_t i, uint8_t op)
{
    return i < code->count && BYTECODE_OP(code->at[i]) == op;
}

/* Some instruction may jump to this one; operands that look like a jump count, too. */
static bool is_target(const struct bytecode *code, uint32_t i)
{
    for (uint32_t from = 0; from < code->count; from++)
        if (from + 1 + BYTECODE_D(code->at[from]) - BYTECODE_JUMP_BIAS == i)
            return true;
    return false;
}

/* Pushes the field, past any metatable; false if it is nil. */
static bool push_field(lua_State *L, int table, struct str name)
{
    lua_pushlstring(L, name.at, name.len);
    lua_rawget(L, table);
    return !lua_isnil(L, -1);
}

static void unknown_global(struct check *c, int line, struct str name)
{
    struct str names[LIBRARIES_NAMES_MAX];
    size_t count = libraries_collect_names(c->L, c->words, names);
    if (str_is(name, "needs") || str_is(name, "drops") || str_is(name, "defaults") ||
        str_is(name, "refuses")) {
        diagnostics_add(c->diagnostics, line,
                        "'" STR_FMT "' continues a rule: write when { … } : " STR_FMT
                        " …, with no comma before it",
                        STR_ARG(name), STR_ARG(name));
        return;
    }
    for (size_t i = 0; i < c->own_count && count < LIBRARIES_NAMES_MAX; i++)
        names[count++] = c->own[i];
    struct str text = libraries_missing(c->diagnostics->arena, NULL, name, names, count);
    diagnostics_add(c->diagnostics, line, STR_FMT, STR_ARG(text));
}

static void check_read(struct check *c, const struct bytecode *code, uint32_t i)
{
    struct str name = bytecode_text(code, BYTECODE_D(code->at[i]));
    int top = lua_gettop(c->L);
    bool known = push_field(c->L, c->words, name);
    for (size_t own = 0; own < c->own_count && !known; own++)
        known = str_eq(c->own[own], name);
    if (!known)
        unknown_global(c, bytecode_line(code, i), name);
    bool reads_field = known && is_op(code, ++i, c->ops->field_read) &&
                       BYTECODE_B(code->at[i]) == BYTECODE_A(code->at[i - 1]) && !is_target(code, i);
    struct str names[LIBRARIES_NAMES_MAX];
    struct str field = reads_field ? bytecode_text(code, BYTECODE_C(code->at[i])) : STR_NONE;
    if (field.at && libraries_push_wrapped(c->L, -1)) { /* the word is a library */
        int table = lua_gettop(c->L);
        if (!push_field(c->L, table, field)) {
            struct arena *arena = c->diagnostics->arena;
            struct str text = libraries_missing(arena, arena_dup(arena, name).at, field, names,
                                                libraries_collect_names(c->L, table, names));
            diagnostics_add(c->diagnostics, bytecode_line(code, i), STR_FMT, STR_ARG(text));
        }
    }
    lua_settop(c->L, top);
}

static void check_function(struct check *c, const struct bytecode *code)
{
    for (uint32_t i = 0; i < code->count; i++) {
        if (is_op(code, i, c->ops->global_read))
            check_read(c, code, i);
        if (!is_op(code, i, c->ops->global_write) || code == c->file)
            continue; /* only the file itself may set globals; in a function it is a forgotten `local` */
        struct str name = str_cut(bytecode_text(code, BYTECODE_D(code->at[i])), 60);
        diagnostics_add(c->diagnostics, bytecode_line(code, i),
                        "'" STR_FMT
                        "' is set as a global inside of a function: a policy keeps nothing between "
                        "calls; write local " STR_FMT,
                        STR_ARG(name), STR_ARG(name));
    }
    for (uint32_t i = 0; i < code->constant_count; i++)
        if (code->constants[i].function)
            check_function(c, code->constants[i].function);
}

void static_check_file(lua_State *L, const struct bytecode *file, struct diagnostics *diagnostics)
{
    struct check c = {.L = L, .ops = sandbox_opcodes(L), .file = file, .diagnostics = diagnostics};
    luaL_checkstack(L, 8, "checking names");
    sandbox_push_builtins(L);
    c.words = lua_gettop(L);
    c.own = ARENA_ARRAY(diagnostics->arena, struct str, file->count);
    for (uint32_t i = 0; i < file->count; i++)
        if (is_op(file, i, c.ops->global_write))
            c.own[c.own_count++] = bytecode_text(file, BYTECODE_D(file->at[i]));
    check_function(&c, file);
    lua_settop(L, c.words - 1);
}

/* The instruction puts a value into the register, or may. */
static bool overwrites(const struct bytecode_opcodes *ops, uint32_t ins, uint32_t parameter)
{
    if (BYTECODE_OP(ins) == ops->set_nil)
        return BYTECODE_A(ins) <= parameter && parameter <= BYTECODE_D(ins);
    return BYTECODE_A(ins) == parameter && !bytecode_writes_upvalue(ops, ins) &&
           !memchr(ops->no_register, (int)BYTECODE_OP(ins), sizeof(ops->no_register));
}

/* The hook or a function in it assigns to the parameter in this register, or to a field of that name of any
 * table. */
static bool is_set(const struct bytecode_opcodes *ops, const struct bytecode *code, uint32_t parameter,
                   struct str field, bool inner)
{
    for (uint32_t i = 0; i < code->count; i++) {
        uint32_t ins = code->at[i];
        if (is_op(code, i, ops->field_write) && str_eq(bytecode_text(code, BYTECODE_C(ins)), field))
            return true;
        uint16_t upvalue = inner && bytecode_writes_upvalue(ops, ins) ? code->upvalues[BYTECODE_A(ins)] : 0;
        if ((upvalue & BYTECODE_UPVALUE_LOCAL) && (upvalue & 0xff) == parameter)
            return true;
        if (!inner && overwrites(ops, ins, parameter))
            return true;
    }
    for (uint32_t i = 0; i < code->constant_count; i++)
        if (code->constants[i].function && is_set(ops, code->constants[i].function, parameter, field, true))
            return true;
    return false;
}

void static_check_call(lua_State *L, const struct bytecode *hook, struct diagnostics *diagnostics)
{
    const struct bytecode_opcodes *ops = sandbox_opcodes(L);
    struct str meant;
    if (hook->parameters <= CALL_REGISTER)
        return;
    for (uint32_t i = 0; i < hook->count; i++) {
        if (!is_op(hook, i, ops->field_read) || BYTECODE_B(hook->at[i]) != CALL_REGISTER)
            continue;
        struct str field = bytecode_text(hook, BYTECODE_C(hook->at[i]));
        if (!field.at || call_table_find(field, &meant) || is_set(ops, hook, CALL_REGISTER, field, false))
            continue;
        field = str_cut(field, 60);
        const char *hint =
            meant.len ? arena_printf(diagnostics->arena, " (did you mean call.%s?)", meant.at).at : "";
        diagnostics_add(diagnostics, bytecode_line(hook, i), "there is no call." STR_FMT "%s", STR_ARG(field),
                        hint);
    }
}

/* Nothing but reads can happen to the arguments: they are not set, passed on, kept or captured. */
static bool only_reads_args(const struct bytecode_opcodes *ops, const struct bytecode *hook)
{
    for (uint32_t i = 0; i < hook->count; i++) {
        uint32_t ins = hook->at[i];
        bool sets_item = is_op(hook, i, ops->field_write) || is_op(hook, i, ops->key_write) ||
                         is_op(hook, i, ops->index_write);
        if ((sets_item && BYTECODE_B(ins) == ARGS_REGISTER) ||
            (is_op(hook, i, ops->copy) && BYTECODE_D(ins) == ARGS_REGISTER) ||
            overwrites(ops, ins, ARGS_REGISTER))
            return false;
    }
    for (uint32_t i = 0; i < hook->constant_count; i++) {
        const struct bytecode *inner = hook->constants[i].function;
        for (uint32_t u = 0; inner && u < inner->upvalue_count; u++)
            if ((inner->upvalues[u] & BYTECODE_UPVALUE_LOCAL) && (inner->upvalues[u] & 0xff) == ARGS_REGISTER)
                return false;
    }
    return hook->parameters > ARGS_REGISTER;
}

void static_check_args(lua_State *L, const struct bytecode *hook, struct arena *arena, struct policy *policy)
{
    const struct bytecode_opcodes *ops = sandbox_opcodes(L);
    struct argument_read *reads = NULL;
    bool is_sure = only_reads_args(ops, hook);
    size_t count = 0;
    for (uint32_t i = 0; i < hook->count && count < CHECK_READS_MAX && is_sure; i++) {
        bool reads_field = is_op(hook, i, ops->field_read) && BYTECODE_B(hook->at[i]) == ARGS_REGISTER;
        struct str name = reads_field ? bytecode_text(hook, BYTECODE_C(hook->at[i])) : STR_NONE;
        size_t before = 0;
        while (before < count && !str_eq(reads[before].name, name))
            before++;
        if (!name.at || before < count)
            continue;
        reads = arena_grow(arena, reads, count, sizeof(*reads));
        reads[count++] = (struct argument_read){arena_dup(arena, name), bytecode_line(hook, i)};
    }
    policy->check_reads = reads;
    policy->check_read_count = count;
}

/* ---- the fields of outcomes, in the source: a hook that fails only in one branch may never run before it is
 * needed ---- */

static void unknown_field(struct diagnostics *d, int line, const struct word_fields *fields, struct str name)
{
    struct str names[sizeof(fields->names) / sizeof(fields->names[0])];
    size_t count = 0;
    for (; fields->names[count]; count++) {
        names[count] = str_of(fields->names[count]);
        if (str_eq(names[count], name))
            return;
    }
    struct str meant = suggest_closest(name, names, count);
    diagnostics_add(d, line, "%s: unknown field '" STR_FMT "'%s", fields->word, STR_ARG(str_cut(name, 60)),
                    field_hint(d->arena, meant));
}

/* From behind a `{`. The items of a list have the same fields. */
static void check_table(struct diagnostics *d, const struct token *t, size_t i,
                        const struct word_fields *fields)
{
    for (; location_is_item(t, i); i = location_next_item(t, i)) {
        int line = t[i].line;
        struct str name = location_field_name(t, &i);
        const struct word_fields *inner = NULL;
        if (name.len)
            unknown_field(d, line, fields, name);
        if (!name.len && strcmp(fields->word, "repair") == 0)
            inner = fields;
        else if (str_is(name, "follow_up") && strcmp(fields->word, "ok") == 0)
            inner = word_fields_of("ok.follow_up");
        if (inner && token_is(t[i], '{'))
            check_table(d, t, i + 1, inner);
    }
}

/* Words that take a table, and words that take their values in order, for which a table is a mistake. */
static const char *const outcomes[][2] = {
    {"refuse", "(code, message, hint)"},
    {"ask", "(question, choices)"},
    {"retry", "(message, hint)"},
    {"partial", "(code, detail, next_args, hint)"},
    {"garbage", "(code, detail, hint)"},
    {"broken", "(code, detail)"},
    {"transient", "(detail, after_seconds)"},
    {"failed", "(code, detail, hint)"},
    {"need_user", "(question, choices)"},
    {"repair", NULL},
    {"ok", NULL},
    {"tool_return", NULL},
};

void static_check_outcomes(const struct token *t, struct diagnostics *diagnostics)
{
    const size_t count = sizeof(outcomes) / sizeof(outcomes[0]);
    for (size_t w = 0; w < count; w++) {
        const char *word = outcomes[w][0], *values = outcomes[w][1];
        if (location_redefines(t, word))
            continue;
        for (size_t i = 0; t[i].kind != TOKEN_END; i++) {
            size_t brace = i + 1 + token_is(t[i + 1], '(');
            if (!location_is_call(t, i, word) || !token_is(t[brace], '{'))
                continue;
            if (values)
                diagnostics_add(diagnostics, t[i].line, "%s: expected its values in order, %s%s, got a table",
                                word, word, values);
            else
                check_table(diagnostics, t, brace + 1, word_fields_of(word));
        }
    }
}

/* Lua takes the last of two fields of one name, so that a guard would be gone without a word. */
void static_check_repeated(const struct token *t, struct diagnostics *diagnostics)
{
    struct repeated_field *list;
    size_t count = location_repeated_fields(diagnostics->arena, t, &list);
    for (size_t i = 0; i < count; i++)
        diagnostics_add(diagnostics, list[i].line, REPEATED_FIELD, STR_ARG(str_cut(list[i].name, 60)),
                        list[i].first);
}
