/* Members that an open schema lets pass without knowing them. */
#include "schema/explain.h"
#include "schema/inplace.h"
#include "schema/suggest.h"

#define NAMES_COMPARED 256u

static bool any_pattern(const struct props *props, struct str key)
{
    for (uint32_t i = 0; i < props->pattern_count; i++)
        if (pattern_match(props->patterns[i].pattern, key) == PATTERN_MATCHES)
            return true;
    return false;
}

/* A schema for all other members, unless it only says yes or no, declares them. */
static bool declares_rest(const struct props *props)
{
    return props->rest && props->rest->source->type == JSON_OBJECT && props->rest->source->len > 0;
}

static bool is_declared(const struct inplace *all, const struct json_member *m)
{
    for (uint32_t i = 0; i < all->count; i++) {
        const struct props *props = all->props[i];
        const struct prop *p = props ? props_find(props, m->key, m->hash) : NULL;
        if (props && (p || any_pattern(props, m->key) || declares_rest(props)))
            return true;
    }
    return false;
}

static bool names_any(const struct inplace *all)
{
    for (uint32_t i = 0; i < all->count; i++)
        if (all->props[i] && (all->props[i]->said || all->props[i]->pattern_count))
            return true;
    return false;
}

static struct str closest_unused(struct arena *arena, const struct inplace *all, const struct json *instance,
                                 struct str key)
{
    struct str *names = ARENA_ARRAY(arena, struct str, NAMES_COMPARED);
    size_t count = 0;
    for (uint32_t i = 0; i < all->count; i++)
        for (uint32_t k = 0; all->props[i] && k < all->props[i]->declared && count < NAMES_COMPARED; k++)
            if (!json_get(instance, all->props[i]->list[k].key))
                names[count++] = all->props[i]->list[k].key;
    return suggest_one(key, names, count);
}

void schema_strangers(const struct schema *schema, const struct json *instance, struct problems *problems)
{
    struct explain e = {.problems = problems, .arena = problems->arena};
    struct inplace all;
    inplace_gather(&all, schema->root);
    if (instance->type != JSON_OBJECT || !names_any(&all))
        return;
    for (uint32_t i = 0; i < instance->len; i++) {
        const struct json_member *m = &instance->members[i];
        struct path at = {NULL, m->key.at ? m->key : STR_LIT(""), 0};
        if (!is_declared(&all, m))
            say_unknown(&e, closest_unused(e.arena, &all, instance, m->key), true, &at);
    }
}
