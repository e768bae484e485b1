/* http = { "GET https://…/{id}", headers = { … } }: an HTTP endpoint as a tool (upstream/http/http_tool.h).
 */
#include "policy/declare/declare_internal.h"
#include "base/arena.h"
#include "upstream/http/http_tool.h"

#define HTTP_HEADERS_MAX   50u
#define HTTP_TIMEOUT_MAX_S 3600u

/* ---- fields ----------------------------------------------------------------------- */

static struct http_spec *spec_of(struct declaration *d)
{
    return (struct http_spec *)d->policy->http; /* made by declare_http, const for everybody after */
}

static void read_headers(struct declaration *d, const struct field *field, int at)
{
    struct name_value *list = ARENA_ARRAY(d->arena, struct name_value, HTTP_HEADERS_MAX);
    struct name_values *headers = &spec_of(d)->headers;
    declare_must_be_table(d, "http", field->name, at, "{ Name = \"value\" }");
    headers->list = list;
    for (lua_pushnil(d->L); lua_next(d->L, at); lua_pop(d->L, 1)) {
        if (lua_type(d->L, -2) != LUA_TSTRING || lua_type(d->L, -1) != LUA_TSTRING)
            fields_wrong(d, "http", field->name, lua_gettop(d->L), "{ Name = \"value\" }, both texts");
        if (headers->count == HTTP_HEADERS_MAX)
            fields_complain(d, "http", field->name, "'http.headers': expected at most %u", HTTP_HEADERS_MAX);
        list[headers->count++] =
            (struct name_value){.name = fields_text(d, lua_gettop(d->L) - 1), .value = fields_text(d, -1)};
    }
}

static void read_timeout(struct declaration *d, const struct field *field, int at)
{
    spec_of(d)->timeout_ms = declare_ms(d, "http", field, at, HTTP_TIMEOUT_MAX_S,
                                        "\"10s\", \"PT10S\" or seconds, from a millisecond to an hour");
}

#define AT(member) .offset = offsetof(struct http_spec, member)

static const struct field http_fields[] = {
    {.name = "headers",
     .kind = FIELD_OWN,
     .read = read_headers,
     .form = "{ Authorization = \"Bearer ${API_TOKEN}\" }",
     .type = "table<string, string>",
     .sentence =
         "Sent with each request; ${NAME} is from the environment, ${file:/path} a file's text, {name} an "
         "argument."},
    {.name = "query",
     .kind = FIELD_TEXTS,
     AT(query),
     .form = "{ \"page\" }",
     .sentence =
         "Arguments that go into the query; with GET, HEAD and DELETE all do that the address does not name, "
         "with others those are the JSON body."},
    {.name = "timeout",
     .kind = FIELD_OWN,
     .read = read_timeout,
     .form = "\"10s\"",
     .type = "string|number",
     .sentence = "How long a call may take; 30 s where neither this nor the upstream says."},
    {.name = "pick",
     .kind = FIELD_TEXT,
     AT(pick),
     .form = "\"data.items\"",
     .sentence = "What of the answer is the result; all of it where this is left out."},
    {.name = "ca_file",
     .kind = FIELD_TEXT,
     AT(ca_file),
     .form = "\"/etc/ssl/internal.pem\"",
     .sentence = "Certificates that are trusted instead of the system's."},
};

const struct field_table declare_http_table = {
    .of = "http",
    .type = "toolgate.Http",
    .sentence = "The HTTP endpoint that is the tool. First, without a name: method and address, \"GET "
                "https://…\", in "
                "which {name} is an argument; from \"/\" on where the policy names an upstream.",
    .items = {"string"},
    FIELD_TABLE(http_fields)};

/* ---- the whole ----------------------------------------------------------------------- */

/* "GET https://api.example.com/v1/issues/{id}" */
static void read_line(struct declaration *d, int at)
{
    static const char expected[] = "\"METHOD address\", as \"GET https://api.example.com/v1/issues/{id}\"";
    if (lua_type(d->L, at) != LUA_TSTRING)
        fields_wrong(d, NULL, "http", at, expected);
    struct str line = str_trim(fields_text(d, at));
    const char *space = memchr(line.at, ' ', line.len);
    if (!space)
        fields_complain(d, NULL, "http", "'http': expected %s, got \"" STR_FMT "\"", expected,
                        STR_ARG(str_cut(line, 80)));
    struct http_spec *spec = spec_of(d);
    spec->method = (struct str){line.at, (size_t)(space - line.at)};
    spec->url = str_trim(str_from(line, spec->method.len));
}

/* The named fields alone, which is what fields_read reads. */
static void push_named(struct declaration *d, int at)
{
    lua_State *L = d->L;
    lua_newtable(L);
    int named = lua_gettop(L);
    for (lua_pushnil(L); lua_next(L, at); lua_pop(L, 1)) {
        if (lua_type(L, -2) == LUA_TNUMBER && lua_tonumber(L, -2) == 1)
            continue;
        lua_pushvalue(L, -2);
        lua_pushvalue(L, -2);
        lua_rawset(L, named);
    }
}

void declare_http(struct declaration *d, const struct field *field, int at)
{
    d->policy->http = ARENA_NEW(d->set->arena, struct http_spec);
    if (lua_type(d->L, at) == LUA_TSTRING) {
        read_line(d, at);
        return;
    }
    declare_must_be_table(d, NULL, field->name, at, "{ \"GET https://…\", headers = { … } }");
    lua_rawgeti(d->L, at, 1);
    read_line(d, lua_gettop(d->L));
    push_named(d, at);
    fields_read(d, lua_gettop(d->L), "http", http_fields, declare_http_table.count, spec_of(d));
    lua_settop(d->L, at);
}

/* ---- address and schema ---------------------------------------------------------------- */

static void check_needed(struct declaration *d, struct str name)
{
    const struct json *schema = d->policy->schema, *properties = declare_properties(schema);
    if (!schema)
        fields_complain(d, NULL, "http",
                        "'http' needs the argument '" STR_FMT
                        "' for its address, and the tool has no schema that requires it",
                        STR_ARG(name));
    if (properties && !json_get(properties, name))
        declare_complain_stranger(d, "http", properties, name, "");
    if (properties && !json_array_has(json_get_text(schema, "required"), name))
        fields_complain(d, NULL, "http",
                        "'http' can't make its request without the argument '" STR_FMT
                        "', and the schema doesn't require it",
                        STR_ARG(name));
}

void declare_check_http(struct declaration *d)
{
    const struct http_spec *spec = d->policy->http;
    struct why why = {0};
    struct str name;
    if (!spec)
        return;
    if (http_tool_check(spec, d->policy->upstream.len > 0, &why) != OK)
        fields_complain(d, NULL, "http", "'http': %s", why.text);
    for (size_t i = 0; http_tool_argument(spec, i, &name); i++)
        check_needed(d, name);
    const struct json *properties = declare_properties(d->policy->schema);
    for (size_t i = 0; properties && i < spec->query_count; i++)
        if (!json_get(properties, spec->query[i]))
            declare_complain_stranger(d, "http", properties, spec->query[i], "");
}
