/* compact = { … }: what a result that is too large for a model is shortened to. */
#include "policy/declare/declare_internal.h"

static void read_budget(struct declaration *d, const struct field *field, int at)
{
    double n = lua_type(d->L, at) == LUA_TNUMBER ? lua_tonumber(d->L, at) : 0;
    if (!(n >= POLICY_COMPACT_MIN && n <= 1e9 && n == (double)(uint32_t)n))
        fields_wrong(d, "compact", field->name, at, "a whole number from 200");
    *(uint32_t *)((char *)d->policy + field->offset) = (uint32_t)n;
}

#define AT(member) .offset = offsetof(struct policy, compact.member)

static const struct field compact_fields[] = {
    {.name = "max_bytes",
     .kind = FIELD_OWN,
     .read = read_budget,
     AT(max_bytes),
     .form = "20000",
     .type = "integer",
     .sentence = "What a result may have; a larger one is shortened to it. 20000 where no budget is named."},
    {.name = "max_tokens",
     .kind = FIELD_OWN,
     .read = read_budget,
     AT(max_tokens),
     .form = "5000",
     .type = "integer",
     .sentence = "The same in tokens, as estimated: about one for four letters, three digits or two signs."},
    {.name = "keep",
     .kind = FIELD_TEXTS,
     AT(keep),
     .form = "{ \"events[].id\", \"title\" }",
     .sentence = "Fields that stay whatever goes: a path as in gives_ids, or the name of a field anywhere."},
    {.name = "drop",
     .kind = FIELD_TEXTS,
     AT(drop),
     .form = "{ \"events[].raw\" }",
     .sentence = "Fields that go first, named likewise."},
};

const struct field_table declare_compact_table = {
    .of = "compact",
    .type = "toolgate.Compact",
    .sentence = "What a result that is too large for a model is shortened to.",
    FIELD_TABLE(compact_fields)};

/* compact = true, false, or { max_bytes = 20000, … } */
void declare_compact(struct declaration *d, const struct field *field, int at)
{
    struct policy_compact *compact = &d->policy->compact;
    compact->on = !lua_isboolean(d->L, at) || lua_toboolean(d->L, at);
    if (!lua_isboolean(d->L, at)) {
        declare_must_be_table(d, NULL, field->name, at, "true, false or { max_bytes = 20000 }");
        fields_read(d, at, field->name, compact_fields, declare_compact_table.count, d->policy);
    }
    if (!compact->max_bytes && !compact->max_tokens)
        compact->max_bytes = POLICY_COMPACT_BYTES;
}
