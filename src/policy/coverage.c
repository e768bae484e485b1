/* The lines that can run are those of the bytecode, so that no comment, blank or `else` counts; LuaJIT's
 * line hook reports those that do run. */
#include "policy/coverage.h"

#include "base/arena.h"
#include "policy/policy_internal.h"
#include "io/file.h"

#include <stdlib.h>

struct coverage {
    struct arena *arena; /* it lies there, too */
    struct coverage_file *files;
    size_t count;
    size_t first;      /* of the set that is being counted */
    const char *chunk; /* the chunk of the last line, and its file: a hook runs in one file */
    struct coverage_file *hit;
};

struct coverage *coverage_new(void)
{
    struct arena *arena = arena_new();
    struct coverage *c = ARENA_NEW(arena, struct coverage);
    c->arena = arena;
    return c;
}

void coverage_free(struct coverage *c)
{
    if (c)
        arena_free(c->arena);
}

const struct coverage_file *coverage_files(const struct coverage *c, size_t *count)
{
    *count = c->count;
    return c->files;
}

struct file_reading {
    struct arena *arena;
    struct coverage_file *file;
    struct str source;
};

static void mark_functions(struct coverage_file *f, const struct bytecode *outer)
{
    for (uint32_t i = 0; i < outer->constant_count; i++) {
        const struct bytecode *code = outer->constants[i].function;
        if (!code)
            continue;
        for (uint32_t n = 0; n < code->count; n++)
            f->lines[bytecode_line(code, n)] |= LINE_IN_FUNCTION;
        f->lines[code->first_line] |= LINE_BEGINS_FUNCTION;
        mark_functions(f, code);
    }
}

/* Compiled, never run. */
static int read_code(lua_State *L)
{
    struct file_reading *r = lua_touserdata(L, 1);
    struct coverage_file *f = r->file;
    if (luaL_loadbufferx(L, r->source.at, r->source.len, "=coverage", "t") != 0)
        lua_error(L);
    f->line_count = 2; /* they begin with 1 */
    for (size_t i = 0; i < r->source.len; i++)
        f->line_count += r->source.at[i] == '\n' || r->source.at[i] == '\r'; /* either ends a line of Lua */
    f->lines = ARENA_ARRAY(r->arena, unsigned char, f->line_count);
    mark_functions(f, bytecode_read(L, -1, r->arena));
    return 0;
}

/* `name`: its tool, or the module that it is; empty: it is the gateway. */
static void add_file(struct coverage *c, lua_State *L, struct str file, struct str name,
                     const struct policy *policy)
{
    struct file_reading r = {.arena = c->arena};
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
    if (c->hit && (size_t)line < c->hit->line_count)
        c->hit->lines[line] |= LINE_RAN;
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
        for (int hook = 0; policy && hook < HOOK_COUNT; hook++) { /* entered, if its first line ran */
            size_t line = (size_t)policy->hook_lines[hook];
            bool here = policy->hooks[hook] && line < f->line_count && f->lines[line] & LINE_BEGINS_FUNCTION;
            while (here && line < f->line_count && !(f->lines[line] & LINE_IN_FUNCTION))
                line++;
            f->hooks_missed[hook] = here && !(line < f->line_count && f->lines[line] & LINE_RAN);
        }
        f->rule_count = policy ? policy->rule_count : 0;
        f->policy = NULL;
        f->rules = ARENA_ARRAY(c->arena, struct coverage_rule, f->rule_count);
        for (size_t n = 0; n < f->rule_count; n++)
            f->rules[n] = (struct coverage_rule){arena_dup(c->arena, policy_rule_words(policy, n)),
                                                 policy->rule_hits[n] > 0};
    }
}
