/*
 * Makes a schema usable that its author got nearly right: compiles it, removes
 * the keywords at which that stumbles, and does so again until nothing is left
 * to remove. The result accepts at least what the schema would have accepted:
 * a keyword goes with everything that would become stricter without it.
 */
#include "schema/compile.h"

#include "json/build.h"

#define ROUNDS_MAX 16u /* a removed reference may leave another one without its target */

/* Of one subschema, by the address of its JSON. */
struct faults {
    bool whole; /* it is no schema: anything is accepted in its place */
    struct fault_keyword {
        const char *name;
        struct fault_keyword *next;
    } * keywords;
};

enum err compile_fault(struct compiler *c, const struct json *source, const char *keyword, struct str pointer,
                       enum err err)
{
    if (!c->faults)
        return err;
    struct faults *f = map_get(c->faults, address_of(&source));
    if (!f) {
        const struct json **key = ARENA_NEW(c->arena, const struct json *);
        *key = source;
        f = ARENA_NEW(c->arena, struct faults);
        map_add(c->faults, address_of(key), f);
    }
    if (keyword) {
        struct fault_keyword *k = ARENA_NEW(c->arena, struct fault_keyword);
        *k = (struct fault_keyword){keyword, f->keywords};
        f->keywords = k;
    }
    f->whole |= !keyword;
    struct arena *arena = c->fault_warnings->arena;
    if (problems_skip(c->fault_warnings))
        return OK;
    problems_add(c->fault_warnings,
                 (struct problem){.path = arena_dup(arena, pointer),
                                  .code = "schema",
                                  .message = arena_printf(arena, "%s; it is left out", c->why->text),
                                  .warning = true});
    return OK;
}

struct rewriter {
    struct arena *arena;
    struct map *faults;
    bool loosens_definitions; /* what a reference leads to may accept more than before */
};

static bool has_keyword(const struct faults *f, struct str name)
{
    for (const struct fault_keyword *k = f ? f->keywords : NULL; k; k = k->next)
        if (str_is(name, k->name))
            return true;
    return false;
}

/* Any that leads to a definition that became looser, or to somewhere else. */
static bool has_loose_reference(const struct rewriter *r, const struct json *v)
{
    for (uint32_t i = 0; i < json_child_count(v); i++) {
        const struct json *child = json_child(v, i);
        struct str key = v->type == JSON_OBJECT ? v->members[i].key : STR_NONE, to = json_str(child);
        bool refers = str_is(key, "$ref") || str_is(key, "$dynamicRef");
        bool to_definition = str_starts(to, "#/$defs/") || str_starts(to, "#/definitions/");
        if ((refers && (r->loosens_definitions || !to_definition)) || has_loose_reference(r, child))
            return true;
    }
    return false;
}

static struct json rewrite(const struct rewriter *r, const struct json *v, bool is_schema, bool *changed);

/* The value of a keyword that holds schemas. */
static struct json rewrite_value(const struct rewriter *r, const struct json *v, enum keyword_holds holds,
                                 bool *changed)
{
    if (holds == HOLDS_NONE)
        return *v;
    if (v->type != JSON_ARRAY || map_get(r->faults, address_of(&v))) /* a list where one schema belongs */
        return rewrite(r, v, holds != HOLDS_MAP && holds != HOLDS_MAP_OR_NAMES, changed);
    struct json *items = ARENA_ARRAY(r->arena, struct json, v->len);
    for (uint32_t i = 0; i < v->len; i++)
        items[i] = rewrite(r, &v->items[i], true, changed);
    return *changed ? json_array(items, v->len) : *v;
}

/* What applies to the members or items that another keyword has not named. */
static bool is_rest(const struct faults *f, const struct json *schema, struct str name)
{
    const struct json *properties = json_get_text(schema, "properties");
    bool names_some = properties && properties->type != JSON_NULL && properties->len;
    bool of_members =
        (has_keyword(f, STR_LIT("properties")) && names_some) || has_keyword(f, STR_LIT("patternProperties"));
    bool of_items = has_keyword(f, STR_LIT("prefixItems")) || has_keyword(f, STR_LIT("items"));
    return (of_members && str_is(name, "additionalProperties")) ||
           (of_items && (str_is(name, "additionalItems") || str_is(name, "items")));
}

/* An object of schemas by name if `is_schema` is not set. */
static struct json rewrite(const struct rewriter *r, const struct json *v, bool is_schema, bool *changed)
{
    static const char *const texts[] = {"title", "description"};
    /* With a looser subschema, or a reference to one, these would accept less. */
    static const char *const inverses[] = {
        "not", "if", "contains", "oneOf", "unevaluatedItems", "unevaluatedProperties"};
    const struct faults *f = map_get(r->faults, address_of(&v));
    bool inside = f != NULL;
    if (v->type != JSON_OBJECT || (f && f->whole)) {
        struct json_member kept[2];
        size_t count = 0;
        for (size_t i = 0; f && i < 2; i++)
            if (json_get_text(v, texts[i]))
                kept[count++] = json_member(str_of(texts[i]), *json_get_text(v, texts[i]));
        *changed |= inside;
        return f ? json_object(r->arena, kept, count) : *v;
    }
    struct json_member *members = ARENA_ARRAY(r->arena, struct json_member, v->len + 1);
    bool *loose = ARENA_ARRAY(r->arena, bool, v->len + 1);
    for (uint32_t i = 0; i < v->len; i++) {
        const struct keyword *k = is_schema ? keyword_find(NULL, v->members[i].key) : NULL;
        enum keyword_holds holds = !is_schema ? HOLDS_ONE : k ? (enum keyword_holds)k->holds : HOLDS_NONE;
        members[i] = v->members[i];
        members[i].value = rewrite_value(r, &v->members[i].value, holds, &loose[i]);
        inside |= loose[i];
    }
    size_t count = 0;
    for (uint32_t i = 0; i < v->len; i++) {
        struct str name = members[i].key;
        bool inverse = is_schema && STR_IS_ONE_OF(name, inverses) &&
                       (loose[i] || has_loose_reference(r, &members[i].value));
        bool unevaluated = is_schema && inside && str_starts(name, "unevaluated");
        if (has_keyword(f, name) || inverse || unevaluated || (is_schema && is_rest(f, v, name)))
            inside = true;
        else
            members[count++] = members[i];
        if (inverse && str_is(name, "oneOf") && !has_keyword(f, name) && !json_get_text(v, "anyOf"))
            members[count++] = json_member(STR_LIT("anyOf"), members[i].value);
    }
    *changed |= inside;
    return inside ? json_object(r->arena, members, count) : *v;
}

enum err schema_repair(struct arena *arena, const struct json *source, const struct json **out,
                       struct problems *warnings, struct why *why)
{
    static const char *const definitions[] = {"$defs", "definitions"};
    enum err err = OK;
    for (unsigned round = 0; round < ROUNDS_MAX; round++) {
        struct arena *scratch = arena_new();
        struct compiler c = {
            .arena = scratch, .why = why, .faults = map_new(scratch), .fault_warnings = warnings};
        struct schema schema = {.source = source};
        bool changed = false;
        err = compile_document(&c, &schema);
        struct rewriter r = {arena, c.faults, false};
        bool any = !err && map_count(c.faults);
        for (size_t i = 0; any && i < sizeof(definitions) / sizeof(*definitions); i++)
            if (json_get_text(source, definitions[i]))
                rewrite(&r, json_get_text(source, definitions[i]), false, &r.loosens_definitions);
        if (any)
            source = json_keep(arena, rewrite(&r, source, true, &changed));
        arena_free(scratch);
        if (err || !changed)
            break;
    }
    *out = source;
    return err;
}
