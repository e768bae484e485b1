/* http = { "GET https://…/{id}", headers = { … } }: an HTTP endpoint as a tool (upstream/http/http_tool.h).
 */
#include "policy/declare/declare_internal.h"
#include "base/arena.h"
#include "upstream/http/http_tool.h"

#define HTTP_HEADERS_MAX   50u
#define HTTP_TIMEOUT_MAX_S 3600u

static struct http_spec *spec_of(struct declaration *d)
{
    return (struct http_spec *)d->policy->http; /* const once declare_http has made it */
}

static void read_headers(struct declaration *d, const struct field *field, int at)
{
    field_name_values(d, field, at, HTTP_HEADERS_MAX, &spec_of(d)->headers);
}

#define AT(member) .offset = offsetof(struct http_spec, member)

static const struct field http_fields[] = {
    {"headers", FIELD_CUSTOM, "{ Authorization = \"Bearer ${API_TOKEN}\" }", "table<string, string>",
     "Headers of each request; ${NAME} is from the environment, ${file:/path} from a file, {name} an "
     "argument.",
     READ(read_headers)},
    {"query", FIELD_STRINGS, "{ \"page\" }", NULL,
     "Arguments that go into the query. With GET, HEAD and DELETE all others do, too; with other methods the "
     "others are the JSON body.",
     AT(query)},
    {"timeout", FIELD_DURATION, "\"10s\"", "string|number",
     "How long a call may take. Default: the upstream's, or 30 s.", AT(timeout_ms),
     RANGE(0, HTTP_TIMEOUT_MAX_S, "\"10s\", \"PT10S\" or seconds, from a millisecond to an hour")},
    {"pick", FIELD_STRING, "\"data.items\"", NULL,
     "The part of the response that is the result. Default: the whole.", AT(pick)},
    {"ca_file", FIELD_STRING, "\"/etc/ssl/internal.pem\"", NULL,
     "Certificates that are trusted instead of the system's.", AT(ca_file)},
};

const struct field_table declare_http_table = FIELD_TABLE(
    "http", "toolgate.Http",
    "The HTTP endpoint that is the tool. First, without a name: method and address, \"GET https://…\", in "
    "which {name} is an argument; only a path, from \"/\" on, if the policy names an upstream.",
    http_fields, ITEMS("string"));

/* "GET https://api.example.com/v1/issues/{id}" */
static void read_line(struct declaration *d, int at)
{
    static const char expected[] = "\"METHOD address\", as \"GET https://api.example.com/v1/issues/{id}\"";
    if (lua_type(d->L, at) != LUA_TSTRING)
        field_mismatch(d, "http", at, expected);
    struct str line = str_trim(field_string(d, at));
    const char *space = memchr(line.at, ' ', line.len);
    if (!space)
        field_error(d, "http", "'http': expected %s, got \"" STR_FMT "\"", expected,
                    STR_ARG(str_cut(line, 80)));
    struct http_spec *spec = spec_of(d);
    spec->method = (struct str){line.at, (size_t)(space - line.at)};
    spec->url = str_trim(str_from(line, spec->method.len));
}

void declare_http(struct declaration *d, const struct field *field, int at)
{
    d->policy->http = ARENA_NEW(d->set->arena, struct http_spec);
    if (lua_type(d->L, at) == LUA_TSTRING) {
        read_line(d, at);
        return;
    }
    field_require_table(d, field->name, at, "{ \"GET https://…\", headers = { … } }");
    lua_rawgeti(d->L, at, 1);
    read_line(d, lua_gettop(d->L));
    field_read_named(d, at, "http", &declare_http_table, 1, spec_of(d));
    lua_settop(d->L, at);
}

static void check_needed(struct declaration *d, struct str name)
{
    const struct json *schema = d->policy->schema, *properties = declare_properties(schema);
    if (!schema)
        field_error(d, "http",
                    "'http' needs the argument '" STR_FMT
                    "' for its address, and the tool has no schema that requires it",
                    STR_ARG(name));
    if (properties && !json_get(properties, name))
        declare_unknown_argument(d, "http", properties, name, "");
    if (properties && !json_array_has(json_get_text(schema, "required"), name))
        field_error(d, "http",
                    "'http' needs the argument '" STR_FMT
                    "' for its request, and the schema does not require it",
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
        field_error(d, "http", "'http': %s", why.text);
    for (size_t i = 0; http_tool_argument(spec, i, &name); i++)
        check_needed(d, name);
    const struct json *properties = declare_properties(d->policy->schema);
    for (size_t i = 0; properties && i < spec->query_count; i++)
        if (!json_get(properties, spec->query[i]))
            declare_unknown_argument(d, "http", properties, spec->query[i], "");
}
