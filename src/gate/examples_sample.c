/* Sample calls: refused, asked about, failed or run, whatever the policy says; but it says it without
 * breaking. */
#include "gate/examples_sample.h"

#include "base/arena.h"
#include "gate/verdict.h"
#include "json/path.h"
#include "json/build.h"
#include "policy/coverage.h"

/* Ids of the sample are known ones, so that the call gets as far as `run`. */
static const struct json *ids_of(struct arena *arena, const struct policy *policy, const struct json *args)
{
    const struct json *values[LEDGER_IDS_MAX];
    struct json *list = ARENA_NEW(arena, struct json), *items = NULL;
    size_t count = 0;
    for (size_t i = 0; i < policy->id_count; i++) {
        size_t found = json_path_scalars(args, policy->ids[i].path, values, LEDGER_IDS_MAX);
        struct json *longer = ARENA_ARRAY(arena, struct json, count + found + 1);
        for (size_t k = 0; k < count; k++)
            longer[k] = items[k];
        for (size_t k = 0; k < found; k++)
            longer[count++] = *values[k];
        items = longer;
    }
    *list = json_array(items, count);
    return list;
}

bool examples_sample_make(struct arena *arena, const struct tool *tool, enum sample_extent extent,
                          struct policy_example *out)
{
    struct json *args = ARENA_NEW(arena, struct json);
    if (!tool->input_schema || !schema_sample(arena, tool->input_schema, extent, args))
        return false;
    *out = (struct policy_example){.name = extent == SAMPLE_ALL ? STR_LIT("every field of its schema")
                                                                : STR_LIT("required fields only"),
                                   .line = policy_hook_line(tool->policy, HOOK_RUN),
                                   .args = args,
                                   .seen = ids_of(arena, tool->policy, args)};
    return true;
}

uint64_t examples_sample_faults(const struct policy *policy)
{
    const struct policy_failures *fault = policy_failures(policy);
    return fault ? fault->count : 0;
}

static void fails(struct example_outcome *o, struct str expected, struct str got)
{
    o->mismatches[o->mismatch_count++] = (struct example_mismatch){"sample", expected, got, NULL};
}

void examples_sample_check(struct arena *arena, const struct call *call, uint64_t faults,
                           struct example_outcome *o)
{
    const struct verdict *v = call_verdict(call);
    if (examples_sample_faults(o->policy) > faults)
        fails(o, STR_LIT("a policy that does not break"),
              arena_dup(arena, str_of(policy_failures(o->policy)->last.text)));
    else if (v->class == CLASS_SCHEMA_MISMATCH)
        fails(o, STR_LIT("a result that fits the output schema"), v->detail.len ? v->detail : o->verdict);
    o->passed = !o->mismatch_count;
}
