/* Makes a sample call from a tool's schema, and checks what came of it. */
#include "gate/examples_sample.h"

#include "base/arena.h"
#include "gate/verdict.h"
#include "json/build.h"
#include "json/path.h"
#include "policy/coverage.h"
#include "policy/policy_hooks.h"

/* The ids in the arguments, which the session has "seen" so that the call gets as far as `run`. */
static const struct json *ids_in(struct arena *arena, const struct policy *policy, const struct json *args)
{
    const struct json *values[LEDGER_IDS_MAX];
    struct json *list = ARENA_NEW(arena, struct json);
    struct json *items = ARENA_ARRAY(arena, struct json, policy->id_count * LEDGER_IDS_MAX + 1);
    size_t count = 0;
    for (size_t i = 0; i < policy->id_count; i++) {
        size_t found = json_path_scalars(args, policy->ids[i].path, values, LEDGER_IDS_MAX);
        for (size_t k = 0; k < found; k++)
            items[count++] = *values[k];
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
                                   .seen = ids_in(arena, tool->policy, args)};
    return true;
}

uint64_t examples_sample_faults(const struct policy *policy)
{
    const struct policy_failures *fault = policy_failures(policy);
    return fault ? fault->count : 0;
}

void examples_sample_check(struct arena *arena, const struct call *call, uint64_t faults,
                           struct example_outcome *o)
{
    const struct verdict *v = call_outcome(call)->verdict;
    struct example_mismatch *mismatch = &o->mismatches[0];
    if (examples_sample_faults(o->policy) > faults)
        *mismatch =
            (struct example_mismatch){"sample", STR_LIT("a policy that does not break"),
                                      arena_dup(arena, str_of(policy_failures(o->policy)->last.text)), NULL};
    else if (v->class == CLASS_SCHEMA_MISMATCH)
        *mismatch = (struct example_mismatch){"sample", STR_LIT("a result that fits the output schema"),
                                              v->detail.len ? v->detail : o->verdict, NULL};
    o->mismatch_count = mismatch->field != NULL;
    o->passed = !o->mismatch_count;
}
