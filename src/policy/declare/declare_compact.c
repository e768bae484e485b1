/* compact = { … }: what a result that is too large for a model is shortened to. */
#include "policy/declare/declare_internal.h"

#define BUDGET     RANGE(POLICY_COMPACT_MIN, 1000000000u, "a whole number from 200")
#define AT(member) .offset = offsetof(struct policy, compact.member)

static const struct field compact_fields[] = {
    {"max_bytes", FIELD_WHOLE, "20000", "integer",
     "The size that a larger result is shortened to. Default 20000, if neither budget is given.",
     AT(max_bytes), BUDGET},
    {"max_tokens", FIELD_WHOLE, "5000", "integer",
     "The same in tokens, as estimated: one for about four letters, three digits or two signs.",
     AT(max_tokens), BUDGET},
    {"keep", FIELD_STRINGS, "{ \"events[].id\", \"title\" }", NULL,
     "Fields that are never removed: a path as in gives_ids, or the name of a field anywhere.", AT(keep)},
    {"drop", FIELD_STRINGS, "{ \"events[].raw\" }", NULL, "Fields that are removed first, named likewise.",
     AT(drop)},
};

const struct field_table declare_compact_table =
    FIELD_TABLE("compact", "toolgate.Compact", "What a result that is too large for a model is shortened to.",
                compact_fields);

/* compact = true, false, or { max_bytes = 20000, … } */
void declare_compact(struct declaration *d, const struct field *field, int at)
{
    struct policy_compact *compact = &d->policy->compact;
    compact->on = !field_is_false(d, at);
    if (!lua_isboolean(d->L, at)) {
        field_require_table(d, field->name, at, "true, false or { max_bytes = 20000 }");
        field_read_table(d, at, field->name, &declare_compact_table, d->policy);
    }
    if (!compact->max_bytes && !compact->max_tokens)
        compact->max_bytes = POLICY_COMPACT_BYTES;
}
