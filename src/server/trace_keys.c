/* What cannot be passed on is dropped and named; what can is kept as it came. */
#include "server/trace_keys.h"

#include "base/arena.h"
#include "base/trace_context.h"
#include "server/gate_keys.h"
#include "server/problems.h"
#include "server/request.h"

static bool find(struct str name, enum trace_key *key)
{
    for (unsigned i = 0; i < TRACE_KEYS; i++)
        if (str_eq(trace_key_names[i], name)) {
            *key = (enum trace_key)i;
            return true;
        }
    return false;
}

static void note_dropped(struct request *r, enum trace_key key, const char *why)
{
    gate_keys_notice(r, PROBLEM_TRACE_CONTEXT,
                     arena_printf(r->arena, "params._meta." STR_FMT " %s: it is not passed on",
                                  STR_ARG(trace_key_names[key]), why));
}

bool trace_keys_take(struct request *r, const struct json_member *member)
{
    enum trace_key key;
    if (!find(member->key, &key))
        return false;
    if (json_is(&member->value, JSON_NULL)) /* as good as no key */
        return true;
    struct str value = json_str(&member->value);
    const char *fault =
        json_is(&member->value, JSON_STRING) ? trace_context_fault(key, value) : "is no string";
    if (fault) {
        note_dropped(r, key, fault);
        return true;
    }
    if (!r->trace_context)
        r->trace_context = ARENA_NEW(r->arena, struct trace_context);
    r->trace_context->values[key] = value;
    return true;
}

void trace_keys_end(struct request *r)
{
    struct trace_context *context = r->trace_context;
    if (!context || !context->values[TRACE_STATE].len || context->values[TRACE_PARENT].len)
        return;
    context->values[TRACE_STATE] = STR_NONE;
    note_dropped(r, TRACE_STATE, "has no valid traceparent beside it");
}
