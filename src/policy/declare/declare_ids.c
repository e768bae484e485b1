/* ids = { argument = seen(), other = shape "uuid" }. */
#include "policy/declare/declare_internal.h"
#include "base/arena.h"

#include <stdlib.h>

#define IDS_MAX 256u

/* A bare shape or seen, or a bare word: `ids = { id = seen }` lacks its parentheses. */
static void read_id(struct declaration *d, struct policy_id *id)
{
    int at = lua_gettop(d->L);
    if (lua_type(d->L, at - 1) != LUA_TSTRING)
        fields_wrong(d, NULL, "ids", at, "{ argument = seen() or shape \"uuid\" }");
    id->path = fields_text(d, at - 1);
    if (sandbox_mark(d->L, at) != MARK_ID)
        fields_wrong(d, "ids", id->path.at, at, "seen(), seen { … } or shape \"…\"");
    id->format = declare_raw_text(d, at, "shape");
    id->look_up = declare_raw_text(d, at, "look_up");
    lua_pushliteral(d->L, "seen");
    lua_rawget(d->L, at);
    id->seen = lua_toboolean(d->L, -1);
    lua_pop(d->L, 1);
}

static int by_path(const void *a, const void *b)
{
    return str_cmp(((const struct policy_id *)a)->path, ((const struct policy_id *)b)->path);
}

void declare_ids(struct declaration *d, const struct field *field, int at)
{
    struct policy_id *ids = ARENA_ARRAY(d->set->arena, struct policy_id, IDS_MAX);
    declare_must_be_table(d, NULL, field->name, at, "{ argument = seen() }");
    for (lua_pushnil(d->L); lua_next(d->L, at); lua_pop(d->L, 1)) {
        if (d->policy->id_count == IDS_MAX)
            fields_complain(d, NULL, field->name, "'ids': expected at most %u arguments", IDS_MAX);
        read_id(d, &ids[d->policy->id_count++]);
    }
    qsort(ids, d->policy->id_count, sizeof(*ids), by_path);
    d->policy->ids = ids;
}
