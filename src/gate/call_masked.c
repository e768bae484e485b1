/*
 * A replayed call whose recording has masks in place of secrets: a problem at a masked place says nothing
 * about the call, and is dropped after each stage. What is left decides.
 */
#include "gate/call_state.h"

/* At the path itself, or inside of it. */
static bool is_masked(const struct call_request *r, struct str path)
{
    for (size_t i = 0; i < r->masked_count; i++) {
        struct str masked = r->masked[i];
        if (path.len >= masked.len && str_eq(str_cut(path, masked.len), masked) &&
            (path.len == masked.len || path.at[masked.len] == '.' || path.at[masked.len] == '['))
            return true;
    }
    return false;
}

/* True: at least one was dropped. */
static bool drop_masked(const struct call_request *r, struct problems *problems)
{
    size_t kept = 0, before = problems->count;
    for (size_t i = 0; i < before; i++) {
        const struct problem *p = &problems->list[i];
        if (is_masked(r, p->path))
            problems->errors -= !p->warning;
        else
            problems->list[kept++] = *p;
    }
    problems->count = kept;
    return kept < before;
}

void call_drop_masked(struct call *c)
{
    struct verdict *v = &c->verdict;
    bool of_arguments = v->class == CLASS_INVALID_ARGUMENTS || v->class == CLASS_FABRICATED_ID;
    bool dropped = drop_masked(&c->request, &c->args.problems);
    dropped |= drop_masked(&c->request, &v->problems);
    c->outcome.masked |= dropped;
    if (dropped && of_arguments && !v->problems.errors && !v->problems.more)
        verdict_discard(v, c->arena, false);
}
