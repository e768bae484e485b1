/*
 * Annotations above `run`: found here, read by lua/policy/annotations.lua.
 * They come before all fields, as others need the schema; a field `schema` or
 * `description` replaces theirs.
 */
#include "base/arena.h"
#include "json/build.h"
#include "sandbox/bridge.h"
#include "policy/declare/declare_internal.h"
#include "policy/source_location.h"
#include "policy/vocabulary/vocabulary.h"
#include "base/suggest.h"

#define COMMENTS_MAX 10000 /* lines of comments in one file */
#define NAMES_MAX    256   /* candidates for "did you mean" */

/* Pushes the list of comments { line, text }; *from and *to: those right above the line, 0 if there are none.
 */
static void push_comments(struct declaration *d, int above, int *from, int *to)
{
    struct doc_comments comments = {d->source, d->source, 1};
    struct str text;
    int line, last = -1, begin = 0; /* the first remark begins, also on line 1 */
    *from = *to = 0;
    lua_newtable(d->L);
    for (int n = 1; n <= COMMENTS_MAX && doc_comments_next(&comments, &text, &line); n++, last = line) {
        lua_createtable(d->L, 0, 3);
        lua_pushinteger(d->L, line);
        lua_setfield(d->L, -2, "line");
        lua_pushlstring(d->L, text.at, text.len);
        lua_setfield(d->L, -2, "text");
        lua_rawseti(d->L, -2, n);
        if (line != last + 1)
            begin = n;
        if (line + 1 == above) {
            *from = begin;
            *to = n;
        }
    }
}

/* Pushes `run` and returns its line; 0 if it is no function of the file. */
static int push_run(lua_State *L, int fields)
{
    lua_Debug where;
    lua_pushliteral(L, "run");
    lua_rawget(L, fields);
    if (!lua_isfunction(L, -1) || lua_iscfunction(L, -1))
        return 0;
    lua_pushvalue(L, -1);
    lua_getinfo(L, ">S", &where);
    return where.linedefined;
}

static void push_text(lua_State *L, struct str s)
{
    lua_pushlstring(L, s.len ? s.at : "", s.len);
}

/* Calls the reader of comments; it returns the schema, the description and lines by name. */
static void read_comments(struct declaration *d, int comments, int from, int to, int line)
{
    lua_State *L = d->L;
    struct str own, call;
    location_parameters(d->source, line, &own, &call);
    vocabulary_push_annotations(L);
    lua_pushstring(L, sandbox_chunk(d->file.at));
    lua_pushvalue(L, comments);
    lua_pushinteger(L, from);
    lua_pushinteger(L, to);
    push_text(L, own);
    push_text(L, call);
    lua_call(L, 6, 3);
}

void declare_annotations(struct declaration *d, int fields)
{
    lua_State *L = d->L;
    int top = lua_gettop(L), line, from = 0, to = 0;
    if (!memmem(d->source.at, d->source.len, "---@param", 9) || !(line = push_run(L, fields)))
        goto out;
    push_comments(d, line, &from, &to);
    if (!from)
        push_comments(d, location_of_field(d->source, NULL, STR_LIT("run")), &from, &to);
    if (!from)
        goto out;
    read_comments(d, lua_gettop(L), from, to, line);
    if (lua_isnil(L, -3))
        goto out;
    d->policy->schema = field_json(d, "annotations", lua_gettop(L) - 2, NULL);
    d->policy->description = field_string(d, lua_gettop(L) - 1);
    d->annotated = bridge_read_copy(L, -1, "annotations", NULL, d->set->arena);
out:
    lua_settop(L, top);
}

/* The schema has the name; if not, *closest is the closest one. */
static bool is_known(const struct json *properties, struct str name, struct str *closest)
{
    struct str names[NAMES_MAX];
    size_t count = 0;
    for (uint32_t i = 0; i < properties->len && count < NAMES_MAX; i++)
        names[count++] = properties->members[i].key;
    *closest = suggest_closest(name, names, count);
    return json_get(properties, name) != NULL;
}

void declare_check_annotations(struct declaration *d)
{
    const struct json *properties = json_get_text(d->policy->schema, "properties");
    struct str closest;
    int64_t line = 0;
    for (uint32_t i = 0; d->annotated && json_is(properties, JSON_OBJECT) && i < d->annotated->len; i++) {
        const struct json_member *member = &d->annotated->members[i];
        if (is_known(properties, member->key, &closest) || !json_int(&member->value, &line))
            continue;
        struct str meant =
            closest.len ? arena_printf(d->set->arena, " (did you mean '" STR_FMT "'?)", STR_ARG(closest))
                        : STR_LIT("");
        luaL_error(d->L,
                   "%s:%d: annotations: '%s' is not in the schema%s, which decides: correct the annotation",
                   sandbox_chunk(d->file.at), (int)line, arena_dup(d->set->arena, member->key).at, meant.at);
    }
}
