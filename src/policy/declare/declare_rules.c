/* rules = { … } and ids = { … }: what arguments must be besides the schema. */
#include "base/arena.h"
#include "policy/declare/declare_internal.h"
#include "policy/rule/rule_conflicts.h"
#include "sandbox/diagnostics.h"

#include <stdlib.h>

#define IDS_MAX 256u

void declare_rules(struct declaration *d, const struct field *field, int at)
{
    struct rules *rules = &d->policy->code->rules;
    (void)field;
    rule_read_all(d->L, at, d->policy->schema, d->set->arena, rules);
    struct str *words = ARENA_ARRAY(d->set->arena, struct str, rules->count + 1);
    for (size_t i = 0; i < rules->count; i++) {
        words[i] = rules->list[i].words;
        d->policy->hooks[HOOK_CHECK] |= rules->list[i].refuses; /* refusals are part of that stage */
    }
    d->policy->rule_words = words;
    d->policy->rule_count = rules->count;
}

static void add_conflict(void *owner, bool certain, int line, struct str sentence)
{
    if (certain)
        diagnostics_add(owner, line, "rules: " STR_FMT, STR_ARG(sentence));
}

void declare_check_rules(struct declaration *d)
{
    struct diagnostics conflicts = {.arena = d->set->arena, .file = d->file.at};
    struct arena *scratch = arena_new(); /* the search raises no Lua error, so this is always freed */
    rule_conflicts_find(d->policy, NULL, scratch, add_conflict, &conflicts);
    arena_free(scratch);
    if (sandbox_deadline_passed(d->set->sandbox))
        sandbox_raise_deadline(d->L);
    diagnostics_raise(d->L, &conflicts);
}

/* Reads the pair on top of the stack. The value may also be a bare word, as in `ids = { id = seen }`. */
static void read_id(struct declaration *d, struct policy_id *id)
{
    int at = lua_gettop(d->L);
    if (lua_type(d->L, at - 1) != LUA_TSTRING)
        field_mismatch(d, "ids", at, "{ argument = seen() or shape \"uuid\" }");
    id->path = field_string(d, at - 1);
    if (sandbox_mark(d->L, at) != MARK_ID) {
        d->parent = "ids";
        field_mismatch(d, id->path.at, at, "seen(), seen { … } or shape \"…\"");
    }
    id->format = field_raw_string(d, at, "shape");
    id->look_up = field_raw_string(d, at, "look_up");
    lua_pushliteral(d->L, "seen");
    lua_rawget(d->L, at);
    id->seen = lua_toboolean(d->L, -1);
    lua_pushliteral(d->L, "strict");
    lua_rawget(d->L, at);
    id->strict = lua_toboolean(d->L, -1);
    lua_pop(d->L, 2);
}

static int by_path(const void *a, const void *b)
{
    return str_cmp(((const struct policy_id *)a)->path, ((const struct policy_id *)b)->path);
}

void declare_ids(struct declaration *d, const struct field *field, int at)
{
    struct policy_id *ids = ARENA_ARRAY(d->set->arena, struct policy_id, IDS_MAX);
    field_require_table(d, field->name, at, "{ argument = seen() }");
    for (lua_pushnil(d->L); lua_next(d->L, at); lua_pop(d->L, 1)) {
        if (d->policy->id_count == IDS_MAX)
            field_error(d, field->name, "'ids': expected at most %u arguments", IDS_MAX);
        read_id(d, &ids[d->policy->id_count++]);
    }
    qsort(ids, d->policy->id_count, sizeof(*ids), by_path);
    d->policy->ids = ids;
}
