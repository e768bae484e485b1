/* How often, how much and how long: retry, loop. */
#include "policy/declare_parts.h"

void declare_retry(struct declaring *d, const struct field *field, int at)
{
    static const struct field fields[] = {
        {.name = "repair", .kind = FIELD_COUNT, .offset = offsetof(struct policy, repair)},
        {.name = "same_call", .kind = FIELD_COUNT, .offset = offsetof(struct policy, same_call)},
        {.name = "transient", .kind = FIELD_COUNT, .offset = offsetof(struct policy, transient)},
    };
    declare_must_be_table(d, NULL, field->name, at, "{ repair = 2, same_call = 3 }");
    fields_read(d, at, field->name, fields, sizeof(fields) / sizeof(fields[0]), d->policy);
}

/* poll = true, or poll = { max = 20 } */
static void read_poll(struct declaring *d, const struct field *field, int at)
{
    static const struct field fields[] = {
        {.name = "max", .kind = FIELD_COUNT, .offset = offsetof(struct policy, poll_max)},
        {.name = "every",
         .kind = FIELD_ABSENT,
         .choices = "a pause between polls is not served by this version: remove it; max bounds how often"},
    };
    d->policy->polls = true;
    if (lua_isboolean(d->L, at)) {
        d->policy->polls = lua_toboolean(d->L, at);
        return;
    }
    declare_must_be_table(d, "loop", field->name, at, "true or { max = 20 }");
    fields_read(d, at, "poll", fields, sizeof(fields) / sizeof(fields[0]), d->policy);
}

void declare_loop(struct declaring *d, const struct field *field, int at)
{
    static const struct field fields[] = {
        {.name = "repeats", .kind = FIELD_COUNT, .offset = offsetof(struct policy, repeats)},
        {.name = "halt", .kind = FIELD_COUNT, .offset = offsetof(struct policy, halt)},
        {.name = "across_turns", .kind = FIELD_COUNT, .offset = offsetof(struct policy, across_turns)},
        {.name = "volatile", .kind = FIELD_TEXTS, .offset = offsetof(struct policy, volatiles)},
        {.name = "poll", .kind = FIELD_OWN, .read = read_poll},
    };
    declare_must_be_table(d, NULL, field->name, at, "{ repeats = 3 }");
    fields_read(d, at, field->name, fields, sizeof(fields) / sizeof(fields[0]), d->policy);
}
