/* How often, how much and how long: retry, loop. */
#include "policy/declare_parts.h"

static const struct field retry_fields[] = {
    {.name = "repair",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct policy, repair),
     .sentence = "How often the model may mend its arguments, in a row; 2 where nothing is said."},
    {.name = "same_call",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct policy, same_call),
     .sentence = "How often the very same call may run in a turn; where nothing is said, by its effects: 3, "
                 "read 5, write 2, destructive 1."},
    {.name = "transient",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct policy, transient),
     .sentence =
         "How often a call that failed for a moment only may be tried again; 3 where nothing is said."},
};

const struct field_table declare_retry_table = {.of = "retry",
                                                .type = "toolgate.Retry",
                                                .sentence = "How often the model may try again.",
                                                FIELD_TABLE(retry_fields)};

void declare_retry(struct declaring *d, const struct field *field, int at)
{
    declare_must_be_table(d, NULL, field->name, at, "{ repair = 2, same_call = 3 }");
    fields_read(d, at, field->name, retry_fields, declare_retry_table.count, d->policy);
}

static const struct field poll_fields[] = {
    {.name = "max",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct policy, poll_max),
     .sentence = "How often it may be asked; 20 where nothing is said."},
    {.name = "every",
     .kind = FIELD_ABSENT,
     .choices = "a pause between polls is not served by this version: remove it; max bounds how often"},
};

const struct field_table declare_poll_table = {.of = "loop.poll",
                                               .type = "toolgate.Poll",
                                               .sentence = "A tool that is meant to be asked again.",
                                               FIELD_TABLE(poll_fields)};

/* poll = true, or poll = { max = 20 } */
static void read_poll(struct declaring *d, const struct field *field, int at)
{
    d->policy->polls = true;
    if (lua_isboolean(d->L, at)) {
        d->policy->polls = lua_toboolean(d->L, at);
        return;
    }
    declare_must_be_table(d, "loop", field->name, at, "true or { max = 20 }");
    fields_read(d, at, "poll", poll_fields, declare_poll_table.count, d->policy);
}

static const struct field loop_fields[] = {
    {.name = "repeats",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct policy, repeats),
     .sentence =
         "The identical call in a row, with an identical result, that is refused; 3 where nothing is said."},
    {.name = "halt",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct policy, halt),
     .sentence = "And the one that ends the run; 5 where nothing is said."},
    {.name = "across_turns",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct policy, across_turns),
     .sentence = "What goes on turn after turn ends here; 5 where nothing is said."},
    {.name = "volatile",
     .kind = FIELD_TEXTS,
     .offset = offsetof(struct policy, volatiles),
     .sentence = "Arguments that don't make a call a different one."},
    {.name = "poll",
     .kind = FIELD_OWN,
     .read = read_poll,
     .form = "true  or  { max = 20 }",
     .type = "boolean|toolgate.Poll",
     .sentence = "The tool is meant to be asked again until something has changed."},
};

const struct field_table declare_loop_table = {.of = "loop",
                                               .type = "toolgate.Loop",
                                               .sentence = "What counts as going round in circles.",
                                               FIELD_TABLE(loop_fields)};

void declare_loop(struct declaring *d, const struct field *field, int at)
{
    declare_must_be_table(d, NULL, field->name, at, "{ repeats = 3 }");
    fields_read(d, at, field->name, loop_fields, declare_loop_table.count, d->policy);
}
