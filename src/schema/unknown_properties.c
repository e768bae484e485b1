/* Members that an open schema accepts without declaring them. */
#include "json/build.h"
#include "schema/explain.h"

/* A schema for additional properties declares them, unless it only allows or forbids them. If the pass gives
 * up, the member counts as declared: nothing is refused or dropped without a full check. */
static bool is_declared(struct pass *pass, const struct in_place_nodes *all, const struct json_member *m)
{
    for (uint32_t i = 0; i < all->count; i++) {
        const struct props *props = all->props[i];
        if (!props)
            continue;
        const struct json *rest = props->rest ? props->rest->source : NULL;
        if (props_find(props, m->key) || (json_is(rest, JSON_OBJECT) && rest->len > 0))
            return true;
        for (uint32_t k = 0; k < props->pattern_count; k++)
            if (pass_matches(pass, props->patterns[k].pattern, m->key))
                return true;
    }
    return pass->too_complex != NULL;
}

/* The nodes of the root; false if they declare no property at all, so that none is unknown. */
static bool collect_declarations(const struct schema *schema, const struct json *instance,
                                 struct in_place_nodes *all)
{
    bool found = false;
    in_place_collect(all, schema->root, NULL, NULL);
    for (uint32_t i = 0; i < all->count && !found; i++)
        found = all->props[i] && (all->props[i]->has_properties || all->props[i]->pattern_count);
    return found && instance->type == JSON_OBJECT;
}

void schema_unknown_properties(const struct schema *schema, const struct json *instance,
                               struct problems *problems, struct schema_work *work)
{
    struct explain_ctx e = {.pass = pass_begin(schema, work), .problems = problems, .arena = problems->arena};
    struct in_place_nodes all __attribute__((uninitialized)); /* 1.5 KB; `count` says how much is written */
    struct object_scope object = {NULL, schema->root, instance, NULL, NULL};
    if (!collect_declarations(schema, instance, &all))
        return;
    e.object = &object;
    for (uint32_t i = 0; i < instance->len; i++) {
        const struct json_member *m = &instance->members[i];
        if (is_declared(&e.pass, &all, m))
            continue;
        if (problems_full(problems)) {
            problems->more++;
            continue;
        }
        struct location at = {NULL, m->key.at ? m->key : STR_LIT(""), 0};
        misplaced_advise(&e, m->key, &at);
    }
}

const struct json *schema_drop_unknown_properties(struct arena *arena, const struct schema *schema,
                                                  const struct json *instance, struct schema_work *work)
{
    struct pass pass = pass_begin(schema, work);
    struct in_place_nodes all __attribute__((uninitialized)); /* 1.5 KB; `count` says how much is written */
    uint32_t count = 0;
    if (!collect_declarations(schema, instance, &all))
        return instance;
    struct json_member *known = ARENA_ARRAY(arena, struct json_member, instance->len);
    for (uint32_t i = 0; i < instance->len; i++)
        if (is_declared(&pass, &all, &instance->members[i]))
            known[count++] = instance->members[i];
    if (count == instance->len)
        return instance;
    return json_keep(arena, json_object(arena, known, count));
}
