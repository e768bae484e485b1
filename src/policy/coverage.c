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
    size_t count, room;
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
    const struct policy *policy; /* NULL: the gateway */
    size_t instructions, functions;
};

static void count_code(struct file_reading *r, const struct bytecode *code, bool inner)
{
    r->instructions += inner ? code->count : 0;
    r->functions += inner;
    for (uint32_t i = 0; i < code->constant_count; i++)
        if (code->constants[i].function)
            count_code(r, code->constants[i].function, true);
}

static void add_code(struct file_reading *r, const struct bytecode *code, bool inner)
{
    struct coverage_file *f = r->file;
    int first = (int)code->first_line;
    struct str name = STR_NONE;
    for (int i = 0; inner && r->policy && i < HOOK_COUNT && !name.len; i++)
        if (r->policy->code->hooks[i].ref != HOOK_NONE && r->policy->code->hooks[i].line == first)
            name = str_of(outcome_hook_name((enum policy_hook)i));
    if (inner && !name.len)
        name = arena_printf(r->c->arena, "function at line %d", first);
    if (inner)
        f->functions[f->function_count++] = (struct coverage_function){name, first, 0};
    for (uint32_t i = 0; inner && i < code->count; i++)
        f->lines[f->line_count++].line = bytecode_line(code, i);
    for (uint32_t i = 0; i < code->constant_count; i++)
        if (code->constants[i].function)
            add_code(r, code->constants[i].function, true);
}

static int by_line(const void *a, const void *b)
{
    const struct coverage_line *x = a, *y = b;
    return (x->line > y->line) - (x->line < y->line);
}

/* Compiled, never run. */
static int read_code(lua_State *L)
{
    struct file_reading *r = lua_touserdata(L, 1);
    if (luaL_loadbufferx(L, r->source.at, r->source.len, "=coverage", "t") != 0)
        lua_error(L);
    const struct bytecode *code = bytecode_read(L, -1, r->c->arena);
    count_code(r, code, false);
    r->file->lines = ARENA_ARRAY(r->c->arena, struct coverage_line, r->instructions + 1);
    r->file->functions = ARENA_ARRAY(r->c->arena, struct coverage_function, r->functions + 1);
    add_code(r, code, false);
    struct coverage_file *f = r->file;
    size_t kept = 0;
    qsort(f->lines, f->line_count, sizeof(*f->lines), by_line);
    for (size_t i = 0; i < f->line_count; i++) /* an instruction each, several of a line */
        if (!kept || f->lines[kept - 1].line != f->lines[i].line)
            f->lines[kept++] = f->lines[i];
    f->line_count = kept;
    return 0;
}

/* `name`: its tool, or the module that it is; empty: it is the gateway. */
static void add_file(struct coverage *c, lua_State *L, struct str file, struct str name,
                     const struct policy *policy)
{
    struct file_reading r = {.c = c, .policy = policy};
    struct why why;
    if (file_read(c->arena, file.at, SANDBOX_SOURCE_MAX_BYTES, &r.source, &why) != OK)
        return;
    if (c->count == c->room) {
        size_t room = c->room ? c->room * 2 : 16;
        struct coverage_file *more = ARENA_ARRAY(c->arena, struct coverage_file, room);
        if (c->count)
            memcpy(more, c->files, c->count * sizeof(*more));
        c->files = more;
        c->room = room;
    }
    r.file = &c->files[c->count];
    *r.file = (struct coverage_file){.file = arena_dup(c->arena, file),
                                     .tool = arena_dup(c->arena, name),
                                     .examples = policy ? policy->example_count : 0};
    c->count += lua_cpcall(L, read_code, &r) == 0;
    lua_settop(L, 0);
}

static struct coverage_file *file_of(struct coverage *c, const char *chunk)
{
    if (c->chunk == chunk)
        return c->hit;
    c->chunk = chunk;
    c->hit = NULL;
    for (size_t i = c->first; i < c->count && !c->hit; i++)
        if (strcmp(sandbox_chunk(c->files[i].file.at), chunk) == 0)
            c->hit = &c->files[i];
    return c->hit;
}

static void on_line(void *context, const char *chunk, int line)
{
    struct coverage_file *f = file_of(context, chunk);
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

/* A gateway with check or result is a policy, too. */
static bool is_listed(const struct policy_set *set, struct str file)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->list[i]->file.at == file.at)
            return true;
    return false;
}

void coverage_begin(struct coverage *c, struct policy_set *set)
{
    lua_State *L = luaL_newstate();
    if (!L)
        abort();
    c->first = c->count;
    c->chunk = NULL;
    for (size_t i = 0; i < set->count; i++)
        add_file(c, L, set->list[i]->file, set->list[i]->name, set->list[i]);
    for (size_t i = 0; i < set->modules.count; i++)
        add_file(c, L, set->modules.list[i].file, set->modules.list[i].name, NULL);
    if (set->gateway_file.len && !is_listed(set, set->gateway_file))
        add_file(c, L, set->gateway_file, STR_NONE, NULL);
    lua_close(L);
    sandbox_trace_lines(set->sandbox, on_line, c);
}

/* NULL: it is a module. */
static const struct policy *policy_of_file(const struct policy_set *set, const struct coverage_file *f)
{
    const struct policy *policy = policy_set_find(set, f->tool);
    if (policy && str_eq(policy->file, f->file))
        return policy;
    for (size_t i = 0; i < set->count; i++) /* a policy for several tools has no tool's name */
        if (str_eq(set->list[i]->file, f->file))
            return set->list[i];
    return NULL;
}

void coverage_end(struct coverage *c, struct policy_set *set)
{
    sandbox_trace_lines(set->sandbox, NULL, NULL);
    for (size_t i = c->first; i < c->count; i++) {
        struct coverage_file *f = &c->files[i];
        const struct policy *policy = f->tool.len ? policy_of_file(set, f) : NULL;
        for (size_t n = 0; n < f->function_count; n++) { /* entered, if its first line ran */
            size_t k = 0;
            while (k < f->line_count && f->lines[k].line < f->functions[n].line)
                k++;
            f->functions[n].hits = k < f->line_count ? f->lines[k].hits : 0;
        }
        f->rule_count = policy ? policy->rule_count : 0;
        f->rules = ARENA_ARRAY(c->arena, struct coverage_rule, f->rule_count + 1);
        for (size_t n = 0; n < f->rule_count; n++)
            f->rules[n] = (struct coverage_rule){arena_dup(c->arena, policy->rule_words[n]),
                                                 policy_rule_hits(policy)[n]};
    }
}
