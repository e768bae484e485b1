/* Reads what a policy's file returned by the rows of declare_fields.c, then checks what depends on several
 * fields. */
#include "policy/declare.h"
#include "base/arena.h"
#include "base/suggest.h"
#include "json/build.h"
#include "policy/source_location.h"
#include "sandbox/bridge.h"
#include "upstream/upstream_spec.h"

#include <stdarg.h>
#include <stdio.h>

#define NAMES_MAX    256u  /* candidates for "did you mean" */
#define GUARDS_MAX   256u  /* names and globs of one file */
#define COMMENTS_MAX 10000 /* lines of comments in one file */

/* ---- reading by rows ------------------------------------------------------- */

int field_error(struct declaration *d, const char *name, const char *format, ...)
{
    char text[600];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    const char *chunk = sandbox_chunk(d->file.at);
    int line = d->line ? d->line : location_of_field(d->tokens, d->parent, str_of(name));
    if (line)
        luaL_error(d->L, "%s:%d: %s", chunk, line, text);
    luaL_error(d->L, "%s: %s", chunk, text);
    __builtin_unreachable();
}

int field_mismatch(struct declaration *d, const char *name, int at, const char *expected)
{
    diagnostics_push_value(d->L, at);
    field_error(d, name, "'%s%s%s': expected %s, got %s", d->parent ? d->parent : "", d->parent ? "." : "",
                name, expected, lua_tostring(d->L, -1));
}

void field_require_table(struct declaration *d, const char *name, int at, const char *expected)
{
    if (!lua_istable(d->L, at) || sandbox_mark(d->L, at) != MARK_NONE)
        field_mismatch(d, name, at, expected);
}

struct str field_string(struct declaration *d, int at)
{
    struct str s = sandbox_string(d->L, at);
    bridge_charge(d->L, "a string", s.len);
    return arena_dup(d->arena, s);
}

void field_read_pairs(struct declaration *d, const struct field *field, int at)
{
    static const char expected[] = "{ NAME = \"value\" }, both strings";
    size_t most = (size_t)field->most, count = 0;
    struct name_value *list = ARENA_ARRAY(d->scratch, struct name_value, most);
    field_require_table(d, field->name, at, expected);
    for (lua_pushnil(d->L); lua_next(d->L, at); lua_pop(d->L, 1)) {
        int value = lua_gettop(d->L);
        if (lua_type(d->L, value - 1) != LUA_TSTRING || lua_type(d->L, value) != LUA_TSTRING)
            field_mismatch(d, field->name, value, expected);
        if (count == most)
            field_error(d, field->name, "'%s.%s': expected at most %zu", d->parent, field->name, most);
        list[count++] =
            (struct name_value){.name = field_string(d, value - 1), .value = field_string(d, value)};
    }
    *FIELD_INTO(d, field, struct name_values) =
        (struct name_values){.list = ARENA_KEEP(d->arena, list, count), .count = count};
}

const struct json *field_json(struct declaration *d, const char *what, int at, const struct json *schema)
{
    struct bridge_hints hints = {.original = bridge_origin(d->L, at), .schema = schema};
    const struct json *value = bridge_read(d->L, at, what, &hints, d->scratch);
    const struct json_file *file = d->set->files.first;
    while (file && !(value->raw_len && file->value.raw == value->raw))
        file = file->next;
    if (!file && value == hints.original)
        bridge_charge(d->L, what, bridge_size(value));
    if (file) /* its value is shared by all its readers */
        return json_keep(d->arena, *value);
    return d->arena == d->set->arena ? json_pool_copy(d->set->pool, value)
                                     : json_keep(d->arena, json_copy(d->arena, value));
}

/* What the row expects of a value, in words. */
static const char *expected_by(struct declaration *d, const struct field *field, int at)
{
    static const char *const words[] = {[FIELD_STRING] = "a string",
                                        [FIELD_BOOL] = "true or false",
                                        [FIELD_STRINGS] = "a list of strings",
                                        [FIELD_DATE] = "a date such as \"2026-12-01\"",
                                        [FIELD_ANY] = NULL};
    struct str choices[CHOICES_MAX];
    struct buf out = buf_in(d->scratch);
    bool large = lua_type(d->L, at) == LUA_TNUMBER && lua_tonumber(d->L, at) > FIELD_COUNT_MAX;
    if (field->expected || words[field->kind])
        buf_text(&out, field->expected ? field->expected : words[field->kind]);
    else if (field->kind == FIELD_COST)
        buf_printf(&out, "a number from %s to %u", field->least ? "0.000001" : "0", POLICY_COST_MAX);
    else if (field->kind == FIELD_CHOICE)
        for (size_t i = 0, count = field_choices(field, choices); i < count; i++)
            buf_printf(&out, "%s" STR_FMT, i ? ", " : "one of ", STR_ARG(choices[i]));
    bool counts = field->kind == FIELD_WHOLE || (field->kind == FIELD_CHOICE && field->most);
    if (!out.len || (field->kind == FIELD_CHOICE && field->most))
        buf_printf(&out, "%sa whole number from %lld", out.len ? ", or " : "", (long long)field->least);
    if (counts && !field->expected && field->most < FIELD_COUNT_MAX)
        buf_printf(&out, " to %lld", (long long)field->most);
    else if (field->kind == FIELD_COUNT && large)
        buf_printf(&out, " to %u", FIELD_COUNT_MAX);
    if (field->or_false)
        buf_text(&out, ", or false for no limit");
    return arena_dup(d->scratch, buf_view(&out)).at;
}

static void mismatch(struct declaration *d, const struct field *field, int at)
{
    struct str choices[CHOICES_MAX], given = sandbox_string(d->L, at), meant = STR_NONE;
    const char *expected = expected_by(d, field, at);
    if (field->kind == FIELD_CHOICE && !field->expected && given.at)
        meant = suggest_closest(given, choices, field_choices(field, choices));
    if (!meant.len)
        field_mismatch(d, field->name, at, expected);
    field_error(d, field->name, "'%s%s%s': expected %s, got \"" STR_FMT "\" (did you mean '" STR_FMT "'?)",
                d->parent ? d->parent : "", d->parent ? "." : "", field->name, expected,
                STR_ARG(str_cut(given, 60)), STR_ARG(meant));
}

/* The value as JSON that borrows its strings; null stands for what no simple field takes. */
static struct json scalar(struct declaration *d, int at)
{
    struct str s = sandbox_string(d->L, at);
    switch (lua_type(d->L, at)) {
    case LUA_TSTRING:
        bridge_charge(d->L, "a string", s.len);
        return json_string(s);
    case LUA_TBOOLEAN:
        return json_bool(lua_toboolean(d->L, at));
    case LUA_TNUMBER:
        return json_number(d->scratch, lua_tonumber(d->L, at));
    default:
        return json_null();
    }
}

bool table_has_other_key(lua_State *L, int at, size_t count)
{
    for (lua_pushnil(L); lua_next(L, at);) {
        lua_pop(L, 1);
        double key = lua_type(L, -1) == LUA_TNUMBER ? lua_tonumber(L, -1) : 0;
        if (!(key >= 1 && key <= (double)count))
            return true;
    }
    return false;
}

static void read_field(struct declaration *d, const struct field *field, int at)
{
    void *into = (char *)d->out + field->offset;
    if (field->kind == FIELD_CUSTOM) {
        field->read(d, field, at);
    } else if (field->kind == FIELD_TABLE) {
        bool is_switch = field->switches && lua_isboolean(d->L, at); /* in place of the table */
        if (!is_switch) {
            const char *path =
                d->parent ? arena_printf(d->scratch, "%s.%s", d->parent, field->name).at : field->name;
            field_require_table(d, field->name, at, field->expected);
            field_read_table(d, at, path, field->table, 0, into);
        }
        if (field->done)
            field->done(into, !is_switch ? FORM_TABLE : lua_toboolean(d->L, at) ? FORM_TRUE : FORM_FALSE);
    } else if (field->kind == FIELD_STRINGS) { /* one string stands for a list of one */
        bool is_list = lua_istable(d->L, at);
        size_t count = is_list ? lua_objlen(d->L, at) : 1;
        struct json *items = ARENA_ARRAY(d->scratch, struct json, count + 1);
        /* A set or a hole would leave names out, and nobody would be told. */
        if (is_list && table_has_other_key(d->L, at, count))
            mismatch(d, field, at);
        for (size_t i = 0; i < count; i++) {
            if (is_list)
                lua_rawgeti(d->L, at, (int)i + 1);
            else
                lua_pushvalue(d->L, at);
            items[i] = scalar(d, -1);
            if (items[i].type != JSON_STRING)
                mismatch(d, field, -1);
            lua_pop(d->L, 1);
        }
        struct json list = json_array(items, count);
        field_store(field, &list, d->arena, into);
    } else {
        struct json value = scalar(d, at);
        if (field_store(field, &value, d->arena, into))
            mismatch(d, field, at);
    }
    if (field->given)
        *((bool *)d->out + field->given - 1) = true;
}

void field_read_table(struct declaration *d, int at, const char *parent, const struct field_table *table,
                      size_t items, void *out)
{
    lua_State *L = d->L;
    const char *outer_parent = d->parent;
    void *outer_out = d->out;
    const struct field *field;
    d->parent = parent;
    d->out = out;
    for (lua_pushnil(L); lua_next(L, at); lua_pop(L, 1)) {
        struct str name = sandbox_string(L, -2), meant;
        if (lua_type(L, -2) == LUA_TNUMBER && lua_tonumber(L, -2) >= 1 &&
            lua_tonumber(L, -2) <= (double)items)
            continue;
        if (!name.at)
            field_error(d, parent ? parent : "",
                        "'%s': expected { name = value }, got a list item without a name",
                        parent ? parent : "tool");
        if (field_find(table, name, &meant))
            continue;
        const char *before = parent ? parent : "", *dot = parent ? "." : "";
        name = str_cut(name, 80);
        field_error(d, name.at, "unknown field '%s%s" STR_FMT "'%s", before, dot, STR_ARG(name),
                    meant.len ? field_hint(d->scratch, meant) : ": remove it");
    }
    for (size_t i = 0; (field = field_next(table, &i));) { /* in their order: some need what others read */
        table_push_field(L, at, field->name);
        if (!lua_isnil(L, -1))
            read_field(d, field, lua_gettop(L));
        lua_pop(L, 1);
    }
    d->parent = outer_parent;
    d->out = outer_out;
}

/* ---- annotations above `run`: found here, read by lua/policy/annotations.lua ---- */

/* Pushes the list of comments { line, text }; *from and *to: those right above the line; 0: none exist. */
static void push_comments(struct declaration *d, int above, int *from, int *to)
{
    struct comments comments = location_comments(d->scratch, d->source);
    int last = -1, begin = 0; /* the first remark begins, also on line 1 */
    *from = *to = 0;
    lua_newtable(d->L);
    for (int n = 1; n <= COMMENTS_MAX && (size_t)n <= comments.count; n++) {
        const struct token *comment = &comments.list[n - 1];
        lua_createtable(d->L, 0, 3);
        lua_pushinteger(d->L, comment->line);
        lua_setfield(d->L, -2, "line");
        lua_pushlstring(d->L, comment->text.at, comment->text.len);
        lua_setfield(d->L, -2, "text");
        lua_rawseti(d->L, -2, n);
        if (comment->line != last + 1)
            begin = n;
        if (comment->line + 1 == above) {
            *from = begin;
            *to = n;
        }
        last = comment->line;
    }
}

/* They come before all fields, as others need the schema; a field schema or description replaces theirs. */
static void read_annotations(struct declaration *d, int fields)
{
    lua_State *L = d->L;
    int top = lua_gettop(L), from = 0, to = 0;
    lua_Debug run;
    table_push_field(L, fields, "run");
    if (!memmem(d->source.at, d->source.len, "---@param", 9) || !lua_isfunction(L, -1) ||
        lua_iscfunction(L, -1))
        goto out;
    lua_pushvalue(L, -1);
    lua_getinfo(L, ">S", &run);
    push_comments(d, run.linedefined, &from, &to);
    if (!from)
        push_comments(d, location_of_field(d->tokens, NULL, STR_LIT("run")), &from, &to);
    if (!from)
        goto out;
    lua_pushvalue(L, top + 1);
    const char *own = lua_getlocal(L, NULL, 1), *call = lua_getlocal(L, NULL, 2); /* run's parameters */
    lua_pop(L, 1);
    vocabulary_push_annotations(L); /* it returns the schema, the description and lines by name */
    lua_pushstring(L, sandbox_chunk(d->file.at));
    lua_pushvalue(L, -3);
    lua_pushinteger(L, from);
    lua_pushinteger(L, to);
    lua_pushstring(L, own ? own : "");
    lua_pushstring(L, call ? call : "");
    lua_call(L, 6, 3);
    if (lua_isnil(L, -3))
        goto out;
    d->policy->schema = field_json(d, "annotations", lua_gettop(L) - 2, NULL);
    d->policy->description = field_string(d, lua_gettop(L) - 1);
    d->annotated = bridge_read(L, -1, "annotations", NULL, d->scratch);
out:
    lua_settop(L, top);
}

struct str declare_closest_property(const struct json *properties, struct str name)
{
    struct str names[NAMES_MAX];
    size_t count = 0;
    for (; count < properties->len && count < NAMES_MAX; count++)
        names[count] = properties->members[count].key;
    return suggest_closest(name, names, count);
}

/* An annotated argument that the policy's own schema lacks is an error. */
static void check_annotations(struct declaration *d)
{
    const struct json *properties = json_get_text(d->policy->schema, "properties");
    int64_t line = 0;
    for (uint32_t i = 0; d->annotated && json_is(properties, JSON_OBJECT) && i < d->annotated->len; i++) {
        const struct json_member *member = &d->annotated->members[i];
        if (json_get(properties, member->key) || !json_int(&member->value, &line))
            continue;
        luaL_error(d->L,
                   "%s:%d: annotations: '%s' is not in the schema%s, which decides: correct the annotation",
                   sandbox_chunk(d->file.at), (int)line, arena_dup(d->scratch, member->key).at,
                   field_hint(d->scratch, declare_closest_property(properties, member->key)));
    }
}

/* ---- checks across fields -------------------------------------------------- */

static void check_runner(struct declaration *d)
{
    const struct policy *p = d->policy;
    const char *runner = p->hooks[HOOK_RUN] ? "run" : p->exec ? "exec" : p->http ? "http" : NULL;
    if (p->hooks[HOOK_RUN] + (p->exec != NULL) + (p->http != NULL) > 1)
        field_error(d, runner, "'%s': expected one of run, exec and http: remove the others", runner);
    if (p->upstream.len && runner && !p->http)
        field_error(d, "upstream", "'upstream': expected one of upstream and %s: remove the other", runner);
    const char *slash = p->upstream.len ? memchr(p->upstream.at, '/', p->upstream.len) : NULL;
    if (slash && (slash == p->upstream.at || slash + 1 == p->upstream.at + p->upstream.len))
        field_error(d, "upstream",
                    "'upstream': expected a server's name, or \"server/tool\" for another name there, got "
                    "\"" STR_FMT "\"",
                    STR_ARG(p->upstream));
    if (slash && p->http)
        field_error(d, "upstream",
                    "'upstream': with http, expected only the name of the upstream, got \"" STR_FMT
                    "\": the url of http names what is requested",
                    STR_ARG(p->upstream));
}

const struct json *declare_properties(const struct json *schema)
{
    static const char *const others[] = {
        "$ref", "allOf", "anyOf", "oneOf", "$dynamicRef", "if", "patternProperties"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (json_get_text(schema, others[i]))
            return NULL;
    const struct json *properties = json_get_text(schema, "properties");
    return json_is(properties, JSON_OBJECT) ? properties : NULL;
}

void declare_unknown_argument(struct declaration *d, const char *field, const struct json *properties,
                              struct str name, const char *otherwise)
{
    struct str meant = declare_closest_property(properties, name);
    field_error(d, field, "'%s' takes the argument '" STR_FMT "', which the schema does not have%s", field,
                STR_ARG(name), meant.len ? field_hint(d->scratch, meant) : otherwise);
}

static void add_conflict(void *owner, bool certain, int line, struct str sentence)
{
    if (certain)
        diagnostics_add(owner, line, "rules: " STR_FMT, STR_ARG(sentence));
}

struct policy_wants declare_wants(const struct token *tokens)
{
    return (struct policy_wants){.history = location_has_access(tokens, "history"),
                                 .facts = location_has_access(tokens, "facts"),
                                 .progress = location_has_access(tokens, "turn") ||
                                             location_has_access(tokens, "step") ||
                                             location_has_access(tokens, "no_progress")};
}

static void read_fields(struct declaration *d, int fields, const struct field_table *table)
{
    field_read_table(d, fields, NULL, table, 0, d->policy);
    const struct policy *p = d->policy;
    if (p->shadow_until.len && (!p->mode_given || p->mode != POLICY_SHADOW))
        field_error(d, "shadow_until",
                    "'shadow_until' is the end of mode shadow: set mode = \"shadow\" here, or remove it");
    const struct policy_retry *again = &p->retry;
    if (p->retry_given && again->times && again->backoff_ms > again->within_ms)
        field_error(d, "retry", "'retry.again': " POLICY_RETRY_NEVER, (double)again->backoff_ms / 1000,
                    (double)again->within_ms / 1000);
}

static void finish_policy(struct declaration *d)
{
    d->policy->wants = declare_wants(d->tokens);
    struct diagnostics conflicts = {.arena = d->set->arena, .file = d->file.at};
    struct arena *scratch = arena_new(); /* the search raises no Lua error, so this is always freed */
    policy_rule_conflicts(d->policy, NULL, scratch, add_conflict, &conflicts);
    arena_free(scratch);
    sandbox_check_deadline(d->L);
    diagnostics_raise(d->L, &conflicts);
}

/* ---- the three declarations ------------------------------------------------ */

/* Its check and result lie over every tool, as a policy for several tools does; in shadow if nothing else is
 * said. */
static void declare_gateway(struct declaration *d, int fields)
{
    static const struct str every_tool[] = {STR("*")};
    struct policy *gateway = d->set->gateway;
    if (gateway->file.len)
        luaL_error(d->L, "%s: a second gateway { … }: the first is in %s", sandbox_chunk(d->file.at),
                   gateway->file.at);
    d->policy = declare_blank(d->set, STR_LIT("gateway"), d->file);
    d->policy->guards = every_tool;
    d->policy->guard_count = 1;
    d->policy->mode = POLICY_SHADOW;
    read_fields(d, fields, &declare_gateway_table);
    struct policy *p = d->policy;
    gateway->file = d->file;
    gateway->wants = declare_wants(d->tokens);
    gateway->instructions = p->instructions;
    const char *idle = p->mode_given      ? "mode"
                       : p->except_count  ? "except"
                       : p->example_count ? "examples"
                                          : NULL;
    bool guards = p->check_sets || p->result_sets || p->hooks[HOOK_CHECK] || p->hooks[HOOK_RESULT];
    if (!guards && idle)
        field_error(d, idle,
                    "'%s' has no effect without check or result: declare one, as in check = { \"secrets\" }",
                    idle);
    p->mode_given = true;
    if (guards)
        finish_policy(d);
    else
        d->policy = NULL; /* it guards nothing, so it is no policy */
}

/* policy { tools = { … }, … }: one file that lies over several tools, beside the policies of each. */
static void declare_several(struct declaration *d, int fields)
{
    const char *slash = memrchr(d->file.at, '/', d->file.len);
    struct str name = slash ? str_from(d->file, (size_t)(slash - d->file.at) + 1) : d->file, meant;
    bool lua = name.len > 4 && memcmp(name.at + name.len - 4, ".lua", 4) == 0;
    name.len -= lua ? 4 : 0; /* "policies/paths.lua" is listed as "paths" */
    struct policy *p = d->policy = declare_blank(d->set, name, d->file);
    struct field_table own = declare_tool_table; /* what describes or runs a tool cannot hold for several */
    own.also = NULL;
    for (lua_pushnil(d->L); lua_next(d->L, fields); lua_pop(d->L, 1)) {
        const char *field = lua_type(d->L, -2) == LUA_TSTRING ? lua_tostring(d->L, -2) : "";
        if (field_find(&own, str_of(field), &meant))
            field_error(d, field,
                        "'%s' is about one tool and has no effect in a policy for several: declare it in "
                        "the tool's own file, return tool \"NAME\" { %s = … }",
                        field, field);
    }
    table_push_field(d->L, fields, "tools");
    if (lua_isnil(d->L, -1))
        field_error(d, "tools",
                    "'policy': expected tools = { … }, the names or globs of the tools it lies over; for one "
                    "tool, return tool \"NAME\" { … }");
    lua_pop(d->L, 1);
    read_fields(d, fields, &declare_policy_table);
    if (!p->guard_count || p->guard_count > GUARDS_MAX)
        field_error(
            d, "tools",
            "'tools': expected 1 to %u names or globs of tools, as in { \"write_*\", \"edit_file\" }, "
            "got %zu",
            GUARDS_MAX, p->guard_count);
    for (size_t i = 0; i < p->guard_count; i++)
        if (!p->guards[i].len)
            field_error(d, "tools", "'tools': expected names or globs of tools, got an empty string");
    /* Parts of shared fields that are about one tool, or that would allow more than its own policy does. */
    if (p->volatile_result_count)
        field_error(
            d, "loop",
            "'loop.volatile_result' is about the results of one tool: declare it in the tool's own file");
    const char *more = p->retry_given                            ? "retry.again"
                       : p->polls || p->poll_max != POLICY_UNSET ? "loop.poll"
                       : p->effects == EFFECTS_TOGGLE            ? "effects = \"toggle\""
                                                                 : NULL;
    if (more)
        field_error(
            d,
            p->effects == EFFECTS_TOGGLE ? "effects"
            : p->retry_given             ? "retry"
                                         : "loop",
            "'%s' allows more, and a policy for several tools only restricts: declare it in the tool's "
            "own file",
            more);
}

void declare_read(struct declaration *d, int at)
{
    lua_State *L = d->L;
    bool is_declaration = sandbox_mark(L, at) == MARK_DECLARATION;
    proxy_unwrap(L, at);
    if (is_declaration)
        table_push_field(L, at, "fields"); /* which the file may have changed */
    int fields = lua_gettop(L);
    if (!is_declaration || !lua_istable(L, fields)) {
        diagnostics_push_value(L, at);
        luaL_error(
            L, "%s: expected the file to return tool \"name\" { … }, policy { … } or gateway { … }, got %s",
            sandbox_chunk(d->file.at), lua_tostring(L, -1));
    }
    lua_getfield(L, at, "what");
    if (lua_isstring(L, -1) && strcmp(lua_tostring(L, -1), "policy") == 0) {
        declare_several(d, fields);
        finish_policy(d);
        return;
    }
    lua_getfield(L, at, "name");
    if (lua_isnil(L, -1)) {
        declare_gateway(d, fields);
        return;
    }
    d->policy = declare_blank(d->set, field_string(d, -1), d->file);
    read_annotations(d, fields);
    read_fields(d, fields, &declare_tool_table);
    check_annotations(d);
    finish_policy(d);
    check_runner(d);
    if (d->policy->timezone && d->policy->formats == FORMATS_STRICT)
        field_error(
            d, "formats",
            "'formats': \"strict\" refuses the date-times that 'timezone' adds a zone to: remove one of the "
            "two");
    declare_check_http(d);
    declare_check_exec(d);
}
