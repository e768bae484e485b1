/*
 * The lines that can run are those of the bytecode, so that no comment, blank
 * or `else` counts; LuaJIT's line hook reports those that do run.
 */
#include "policy/coverage.h"

#include "base/arena.h"
#include "sandbox/bytecode.h"
#include "policy/policy_internal.h"
#include "io/file.h"
#include "policy/policy_hooks.h"
#include "policy/policy_set.h"

#include <stdlib.h>

struct coverage {
    struct arena *arena;
    struct coverage_file *files;
    size_t count;
    size_t first;      /* of the set that is being counted */
    const char *chunk; /* the chunk of the last line, and its file: a hook runs in one file */
    struct coverage_file *hit;
};

struct coverage *coverage_new(void)
{
    struct coverage *c = calloc(1, sizeof(*c));
    if (!c)
        abort();
    c->arena = arena_new();
    return c;
}

void coverage_free(struct coverage *c)
{
    if (!c)
        return;
    arena_free(c->arena);
    free(c);
}

const struct coverage_file *coverage_files(const struct coverage *c, size_t *count)
{
    *count = c->count;
    return c->files;
}

struct file_reading {
    struct coverage *c;
    struct coverage_file *file;
    struct str source;
    bool *runs; /* by line: it has code of a function */
};

static size_t count_functions(const struct bytecode *code)
{
    size_t count = 0;
    for (uint32_t i = 0; i < code->constant_count; i++)
        if (code->constants[i].function)
            count += 1 + count_functions(code->constants[i].function);
    return count;
}

/* The functions of the code, and the lines that they can run. */
static void add_functions(struct file_reading *r, const struct bytecode *outer)
{
    const struct policy *policy = r->file->policy;
    for (uint32_t i = 0; i < outer->constant_count; i++) {
        const struct bytecode *code = outer->constants[i].function;
        struct str name = STR_NONE;
        if (!code)
            continue;
        int first = (int)code->first_line;
        for (int hook = 0; policy && hook < HOOK_COUNT && !name.len; hook++)
            if (policy->hooks[hook] && policy->hook_lines[hook] == first)
                name = str_of(outcome_hook_name((enum policy_hook)hook));
        if (!name.len)
            name = arena_printf(r->c->arena, "function at line %d", first);
        r->file->functions[r->file->function_count++] = (struct coverage_function){name, first, 0};
        for (uint32_t n = 0; n < code->count; n++)
            r->runs[bytecode_line(code, n)] = true;
        add_functions(r, code);
    }
}

/* Compiled, never run. */
static int read_code(lua_State *L)
{
    struct file_reading *r = lua_touserdata(L, 1);
    struct coverage_file *f = r->file;
    size_t lines = 2; /* they begin with 1 */
    if (luaL_loadbufferx(L, r->source.at, r->source.len, "=coverage", "t") != 0)
        lua_error(L);
    const struct bytecode *code = bytecode_read(L, -1, r->c->arena);
    for (size_t i = 0; i < r->source.len; i++)
        lines += r->source.at[i] == '\n' || r->source.at[i] == '\r'; /* either ends a line of Lua */
    r->runs = ARENA_ARRAY(r->c->arena, bool, lines);
    f->functions = ARENA_ARRAY(r->c->arena, struct coverage_function, count_functions(code));
    add_functions(r, code);
    f->lines = ARENA_ARRAY(r->c->arena, struct coverage_line, lines);
    for (size_t line = 0; line < lines; line++)
        if (r->runs[line])
            f->lines[f->line_count++].line = (int)line;
    return 0;
}

/* `name`: its tool, or the module that it is; empty: it is the gateway. */
static void add_file(struct coverage *c, lua_State *L, struct str file, struct str name,
                     const struct policy *policy)
{
    struct file_reading r = {.c = c};
    struct why why;
    if (file_read(c->arena, file.at, SANDBOX_SOURCE_MAX_BYTES, &r.source, &why) != OK)
        return;
    c->files = arena_grow(c->arena, c->files, c->count, sizeof(*c->files));
    r.file = &c->files[c->count];
    *r.file = (struct coverage_file){.file = arena_dup(c->arena, file),
                                     .tool = arena_dup(c->arena, name),
                                     .policy = policy,
                                     .examples = policy ? policy->example_count : 0};
    c->count += lua_cpcall(L, read_code, &r) == 0;
    lua_settop(L, 0);
}

static void on_line(void *context, const char *chunk, int line)
{
    struct coverage *c = context;
    if (c->chunk != chunk) {
        c->chunk = chunk;
        c->hit = NULL;
        for (size_t i = c->first; i < c->count && !c->hit; i++)
            if (strcmp(sandbox_chunk(c->files[i].file.at), chunk) == 0)
                c->hit = &c->files[i];
    }
    struct coverage_file *f = c->hit;
    size_t low = 0, high = f ? f->line_count : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (f->lines[middle].line < line)
            low = middle + 1;
        else
            high = middle;
    }
    if (f && low < f->line_count && f->lines[low].line == line)
        f->lines[low].hits++;
}

void coverage_begin(struct coverage *c, struct policy_set *set)
{
    lua_State *L = luaL_newstate();
    if (!L)
        abort();
    c->first = c->count;
    c->chunk = NULL;
    bool listed = false; /* a gateway with check or result is a policy, too */
    for (size_t i = 0; i < set->count; i++) {
        add_file(c, L, set->list[i]->file, set->list[i]->name, set->list[i]);
        listed |= set->list[i]->file.at == set->gateway->file.at;
    }
    for (size_t i = 0; i < set->modules.count; i++)
        add_file(c, L, set->modules.list[i].file, set->modules.list[i].name, NULL);
    if (set->gateway->file.len && !listed)
        add_file(c, L, set->gateway->file, STR_NONE, NULL);
    lua_close(L);
    sandbox_trace_lines(set->sandbox, on_line, c);
}

void coverage_end(struct coverage *c, struct policy_set *set)
{
    sandbox_trace_lines(set->sandbox, NULL, NULL);
    for (size_t i = c->first; i < c->count; i++) {
        struct coverage_file *f = &c->files[i];
        const struct policy *policy = f->policy;
        for (size_t n = 0; n < f->function_count; n++) { /* entered, if its first line ran */
            size_t k = 0;
            while (k < f->line_count && f->lines[k].line < f->functions[n].line)
                k++;
            f->functions[n].hits = k < f->line_count ? f->lines[k].hits : 0;
        }
        f->rule_count = policy ? policy->rule_count : 0;
        f->policy = NULL;
        f->rules = ARENA_ARRAY(c->arena, struct coverage_rule, f->rule_count);
        for (size_t n = 0; n < f->rule_count; n++)
            f->rules[n] =
                (struct coverage_rule){arena_dup(c->arena, policy->rule_words[n]), policy->rule_hits[n]};
    }
}
