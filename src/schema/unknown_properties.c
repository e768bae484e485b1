/* Members that an open schema lets pass without knowing them. */
#include "json/build.h"
#include "schema/explain.h"
#include "schema/in_place_applicators.h"
#include "base/suggest.h"

#define NAMES_COMPARED 256u

static bool any_pattern(struct pass *pass, const struct props *props, struct str key)
{
    for (uint32_t i = 0; i < props->pattern_count; i++)
        if (pass_matches(pass, props->patterns[i].pattern, key))
            return true;
    return false;
}

/* A schema for all other members, unless it only says yes or no, declares them. */
static bool declares_rest(const struct props *props)
{
    return props->rest && props->rest->source->type == JSON_OBJECT && props->rest->source->len > 0;
}

static bool is_declared(struct pass *pass, const struct in_place_nodes *all, const struct json_member *m)
{
    for (uint32_t i = 0; i < all->count; i++) {
        const struct props *props = all->props[i];
        const struct prop *p = props ? props_find(props, m->key) : NULL;
        if (props && (p || any_pattern(pass, props, m->key) || declares_rest(props)))
            return true;
    }
    return pass->too_complex != NULL; /* nobody is sent away unheard */
}

static bool names_any(const struct in_place_nodes *all)
{
    for (uint32_t i = 0; i < all->count; i++)
        if (all->props[i] && (all->props[i]->has_properties || all->props[i]->pattern_count))
            return true;
    return false;
}

/* Declared names that the object does not use yet: only those can have been meant. Hardly an object has a
 * stranger, so they are gathered for the first one. */
struct unused {
    size_t count;
    struct str names[NAMES_COMPARED];
};

static struct unused *gather_unused(struct arena *arena, const struct in_place_nodes *all,
                                    const struct json *instance)
{
    struct unused *unused = ARENA_NEW(arena, struct unused);
    for (uint32_t i = 0; i < all->count; i++)
        for (uint32_t k = 0; all->props[i] && k < all->props[i]->declared && unused->count < NAMES_COMPARED;
             k++)
            if (!json_get(instance, all->props[i]->list[k].key))
                unused->names[unused->count++] = all->props[i]->list[k].key;
    return unused;
}

static void say_stranger(struct explain_ctx *e, const struct unused *unused, const struct json_member *m)
{
    struct location at = {NULL, m->key.at ? m->key : STR_LIT(""), 0};
    message_unknown_field(e, suggest_closest(m->key, unused->names, unused->count), true, &at);
}

/* False: the schema names nothing, so nobody is a stranger to it. */
static bool gather(const struct schema *schema, const struct json *instance, struct in_place_nodes *all)
{
    in_place_collect(all, schema->root);
    return instance->type == JSON_OBJECT && names_any(all);
}

void schema_unknown_properties(const struct schema *schema, const struct json *instance,
                               struct problems *problems)
{
    struct explain_ctx e = {.pass = pass_begin(schema), .problems = problems, .arena = problems->arena};
    struct unused *unused = NULL;
    struct in_place_nodes all;
    if (!gather(schema, instance, &all))
        return;
    for (uint32_t i = 0; i < instance->len; i++) {
        const struct json_member *m = &instance->members[i];
        if (is_declared(&e.pass, &all, m))
            continue;
        if (problems_full(problems)) {
            problems->more++;
            continue;
        }
        if (!unused)
            unused = gather_unused(problems->arena, &all, instance);
        say_stranger(&e, unused, m);
    }
}

const struct json *schema_drop_unknown_properties(struct arena *arena, const struct schema *schema,
                                                  const struct json *instance)
{
    struct pass pass = pass_begin(schema);
    struct in_place_nodes all;
    uint32_t count = 0;
    if (!gather(schema, instance, &all))
        return instance;
    struct json_member *known = ARENA_ARRAY(arena, struct json_member, instance->len);
    for (uint32_t i = 0; i < instance->len; i++)
        if (is_declared(&pass, &all, &instance->members[i]))
            known[count++] = instance->members[i];
    if (count == instance->len)
        return instance;
    struct json *fresh = ARENA_NEW(arena, struct json);
    *fresh = json_object(arena, known, count);
    return fresh;
}
