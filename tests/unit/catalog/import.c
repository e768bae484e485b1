/* Importing the tools of upstreams: names, collisions, policies, and what is left out. */
#include "catalog/generation_case.h"
#include "upstream/upstream.h"

#include <unistd.h>

#define UPSTREAMS_MAX 3

static struct {
    const char *name;
    struct tool_list *list;
} fakes[UPSTREAMS_MAX];

static void forget(void)
{
    end_generation();
    for (size_t i = 0; i < UPSTREAMS_MAX; i++)
        tool_list_unref(fakes[i].list);
    memset(fakes, 0, sizeof(fakes));
}

FIXTURE(begin_generation, forget)

/* ---- the tool lists of upstreams, and the operator's files ---- */

static void upstream_lists(const char *upstream, const char *tools)
{
    size_t i = 0;
    while (fakes[i].name && strcmp(fakes[i].name, upstream) != 0)
        i++;
    tool_list_unref(fakes[i].list);
    fakes[i].name = upstream;
    fakes[i].list = tool_list_new(value_of(tools));
}

static struct tool_list *get_list(void *owner, struct str name)
{
    (void)owner;
    for (size_t i = 0; i < UPSTREAMS_MAX; i++)
        if (fakes[i].name && str_is(name, fakes[i].name))
            return tool_list_ref(fakes[i].list);
    return NULL;
}

static enum err build(const char *upstreams, const char *policy)
{
    static const struct tool_list_source source = {.get = get_list};
    static const struct generation_build_options options = {.tool_lists = &source};
    char lua[1024];
    snprintf(lua, sizeof(lua), "return { upstreams = { %s } }", upstreams);
    unlink(in_folder("policies/p.lua"));
    if (policy)
        write_file("policies/p.lua", policy);
    return build_with((struct config_sources){.file = write_file("toolgate.lua", lua)}, &options);
}

static void loads(const char *upstreams, const char *policy)
{
    if (build(upstreams, policy) != OK)
        fail_msg(STR_FMT, STR_ARG(report.errors[0]));
}

#define A          "a = { command = 'a' },"
#define B          "b = { command = 'b' },"
#define PREFIXED   "a = { command = 'a', prefix = true },"
#define ONLY(list) "a = { command = 'a', tools = { " list " } },"
#define NOBODY     NULL
#define SCHEMA     "\"inputSchema\":{\"type\":\"object\"}"

/* ---- the imported tools ---- */

/* "find=a/search* read=a/read": sorted by name, each with its upstream's tool; * has a policy, ? no schema.
 */
static void has(const char *expected)
{
    struct buf text = buf_in(arena);
    for (size_t i = 0; i < generation->tool_count; i++) {
        const struct tool *tool = generation->tools[i];
        buf_printf(&text, "%s" STR_FMT, text.len ? " " : "", STR_ARG(tool->name));
        if (tool->runner == RUNNER_UPSTREAM)
            buf_printf(&text, "=" STR_FMT "/" STR_FMT, STR_ARG(tool->target.upstream),
                       STR_ARG(tool->target.tool));
        buf_text(&text, tool->policy ? "*" : "");
        buf_text(&text, tool->schema_pending ? "?" : "");
    }
    if (!str_is(buf_view(&text), expected))
        fail_msg("expected '%s', got '" STR_FMT "'", expected, STR_ARG(buf_view(&text)));
}

static void warns(const char *words)
{
    for (size_t i = 0; i < report.warning_count; i++)
        if (strstr(report.warnings[i].at, words))
            return;
    fail_msg("no warning says '%s'; the first of %zu: " STR_FMT, words, report.warning_count,
             STR_ARG(report.warning_count ? report.warnings[0] : STR_NONE));
}

static void fails(const char *upstreams, const char *policy, const char *words)
{
    assert_int_equal(build(upstreams, policy), ERR_CONFIG);
    for (size_t i = 0; i < report.error_count; i++)
        if (strstr(report.errors[i].at, words))
            return;
    fail_msg("no error says '%s': " STR_FMT, words, STR_ARG(report.errors[0]));
}

/* ---- names and policies ---------------------------------------------------------------- */

/* "read search": the definitions of tools with these names. */
static const char *tools_named(const char *names)
{
    struct buf list = buf_in(arena);
    for (struct str rest = str_of(names); rest.len;) {
        struct str name = str_split(&rest, ' ');
        buf_printf(&list, "%s{\"name\":\"" STR_FMT "\"," SCHEMA "}", list.len ? "," : "[", STR_ARG(name));
    }
    buf_text(&list, list.len ? "]" : "[]");
    return arena_dup(arena, buf_view(&list)).at;
}

#define OURS                                                                                                 \
    "return tool 'search' { description = 'Ours.', schema = params {}, aliases = { 'find' },\n"              \
    "  run = function() return 'ours' end }"
#define NO_GLOB_FITS "upstreams.a.tools: none of the 2 tools that it offers has such a name"
#define GLOBS_ARE_EMPTY                                                                                      \
    "none of the 2 tools that it offers is served, because the list is empty: leave it out to serve all"
#define LEFT_OUT          "upstream b: tool 'search' is left out: several upstreams offer it, and "
#define IT_IS_FOR         "p.lua does not say which of them it is for (upstream = \"b\"); it would be 'b__search'"
#define APPLIES_TO_NONE   "p.lua: it applies to no tool: 'search' is offered by several upstreams"
#define FOR(name, fields) "return tool '" name "' { " fields " }"

TEST(tools_get_names_and_policies)
{
    static const struct {
        const char *of_a, *of_b; /* the names in the lists of the upstreams a and b */
        const char *upstreams, *policy, *tools;
        const char *warnings[2];
    } rows[] = {
        /* Tools keep their names, or are both prefixed; one that is always prefixed does not collide. */
        {"search read", "", A B, NOBODY, "read=a/read search=a/search", {0}},
        {"search read", "search", A B, NOBODY, "a__search=a/search b__search=b/search read=a/read", {0}},
        {"search", "search", PREFIXED B, NOBODY, "a__search=a/search search=b/search", {0}},
        /* The operator's names stay. */
        {"search find", "", A, OURS, "a__find=a/find a__search=a/search search*", {0}},
        /* Globs select tools. */
        {"read_f write_f", "", ONLY("'read_*'"), NOBODY, "read_f=a/read_f", {0}},
        {"read_f write_f", "", ONLY("'raed_*'"), NOBODY, "", {NO_GLOB_FITS}},
        {"read_f write_f", "", ONLY(""), NOBODY, "", {GLOBS_ARE_EMPTY}},
        /* A policy of the prefixed name forces the prefix. Of two tools that it may be for, none is served:
         * under another name the tool would run without its policy. */
        {"search", "", A, FOR("a__search", ""), "a__search=a/search*", {0}},
        {"search read", "search", A B, FOR("search", ""), "read=a/read search*", {LEFT_OUT, IT_IS_FOR}},
        {"search", "search", A B, FOR("search", ""), "search*", {APPLIES_TO_NONE}},
        /* One that names its upstream leaves the other's tool prefixed. */
        {"search",
         "search",
         A B,
         FOR("search", "upstream = 'b'"),
         "a__search=a/search search=b/search*",
         {0}},
        {"search",
         "search",
         A B,
         FOR("search", "upstream = 'a'"),
         "b__search=b/search search=a/search*",
         {0}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        upstream_lists("a", tools_named(rows[i].of_a));
        upstream_lists("b", tools_named(rows[i].of_b));
        loads(rows[i].upstreams, rows[i].policy);
        has(rows[i].tools);
        for (size_t k = 0; k < 2 && rows[i].warnings[k]; k++)
            warns(rows[i].warnings[k]);
    }
}

TEST(names_are_made_valid)
{
    char tools[512], expected[512];
    snprintf(tools, sizeof(tools),
             "[{\"name\":\"docs.read/all\"," SCHEMA "},{\"name\":\"%0150d\"," SCHEMA "}]", 1);
    upstream_lists("a", tools);
    loads(A, NOBODY);
    struct str cut = generation->tools[0]->name;
    assert_int_equal(cut.len, TOOL_NAME_MAX_BYTES);
    snprintf(expected, sizeof(expected), STR_FMT "=a/%0150d docs.read_all_9de56f=a/docs.read/all",
             STR_ARG(cut), 1);
    has(expected);
}

TEST(two_names_that_become_equal_are_distinguished)
{
    upstream_lists("a", "[{\"name\":\"x/y\"," SCHEMA "},{\"name\":\"x_y\"," SCHEMA "}]");
    loads(A, NOBODY);
    has("x_y=a/x_y x_y_73aa1f=a/x/y");
    upstream_lists("a", "[{\"name\":\"x/y\"," SCHEMA "},{\"name\":\"x_y\"," SCHEMA
                        "},{\"name\":\"x y\"," SCHEMA "}]");
    loads(A, NOBODY);
    assert_int_equal(generation->tool_count, 3);
}

TEST(a_policy_applies_to_the_tool_of_its_name)
{
    upstream_lists("a",
                   "[{\"name\":\"search\",\"description\":\"Theirs.\",\"inputSchema\":{\"type\":\"object\","
                   "\"properties\":{\"q\":{\"type\":\"string\"}}}}]");
    loads(A, "return tool 'search' { effects = 'write', description = 'Ours.' }");
    has("search=a/search*");
    const struct tool *tool = generation_find(generation, STR_LIT("search"));
    assert_int_equal(tool->effects, EFFECTS_WRITE);
    assert_true(str_is(tool->description, "Ours."));
    assert_true(str_is(tool->parameters->members[0].key, "q"));
}

TEST(a_policy_claims_a_tool_for_its_own_name)
{
    upstream_lists("a",
                   "[{\"name\":\"search\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"q\":{}}}},"
                   "{\"name\":\"read\"," SCHEMA "}]");
    upstream_lists("b", "[{\"name\":\"search\"," SCHEMA "}]");
    loads(ONLY("'read'") B, "return tool 'find' { upstream = 'a/search' }");
    has("find=a/search* read=a/read search=b/search");
    assert_true(str_is(generation_find(generation, STR_LIT("find"))->parameters->members[0].key, "q"));
}

TEST(a_policy_waits_for_its_upstream)
{
    loads(A, "return tool 'search' { upstream = 'a' }");
    has("search=a/search*?");
    assert_false(tool_is_listed(generation->tools[0]));
    loads(A, "return tool 'search' { upstream = 'a', description = 'S.', schema = params { q = str 'Q' } }");
    has("search=a/search*");
    assert_true(tool_is_listed(generation->tools[0]));
}

TEST(a_policy_must_name_a_configured_upstream)
{
    upstream_lists("a", "[{\"name\":\"search\"," SCHEMA "}]");
    fails("calendar = { command = 'c' }", "return tool 'x' { upstream = 'calender' }",
          "upstream: no upstream 'calender' is configured (did you mean 'calendar'?)");
    fails(A B, "return tool 'x' { upstream = 'mail' }", "is configured, only a, b: name it in");
    fails("", "return tool 'x' { upstream = 'mail' }", "is configured, only none at all: name it");
    fails("r = { rest = 'https://r' }", "return tool 'x' { upstream = 'r' }", "'r' is an address (rest)");
    fails(A, "return tool 'x' { upstream = 'a', schema = params {}, description = 'X', http = { 'GET /x' } }",
          "'a' is an MCP server");
    fails(A, "return tool 'serch' { upstream = 'a' }",
          "upstream 'a' offers no tool 'serch' (did you mean 'search'?)");
    loads(A, "return tool 'find' { upstream = 'a' }");
    warns("upstream 'a' offers no tool 'find': its calls will fail");
    assert_int_equal(generation->unmatched_count, 1);
}

/* ---- definitions ------------------------------------------------------------------------------ */

TEST(a_definition_is_unchanged)
{
    upstream_lists(
        "a", "[{\"name\":\"x\",\"title\":\"T\",\"description\":\"D\",\"inputSchema\":{\"type\":\"object\","
             "\"properties\":{\"n\":{\"const\":12345678901234567890}}},\"outputSchema\":{\"type\":"
             "\"object\"},\"annotations\":{\"readOnlyHint\":true},\"execution\":{\"taskSupport\":"
             "\"optional\"},\"_meta\":{\"k\":1},\"icons\":[{\"src\":\"i\"}]}]");
    loads(A, NOBODY);
    const struct tool *tool = generation_find(generation, STR_LIT("x"));
    assert_true(str_is(tool->title, "T") && str_is(tool->origin, "upstream a"));
    assert_non_null(tool->output_schema);
    assert_int_equal(tool->effects, EFFECTS_READ);
    struct buf text = buf_in(arena);
    json_write(&text, tool->input);
    assert_true(str_is(buf_view(&text),
                       "{\"type\":\"object\",\"properties\":{\"n\":{\"const\":12345678901234567890}}}"));
}

TEST(effects_are_the_stricter_of_annotations_and_name)
{
    static const struct {
        const char *name, *annotations;
        enum policy_effects effects;
        enum effects_source from;
        uint32_t same_call;
        bool idempotent;
    } rows[] = {
        {"create_a", "{\"readOnlyHint\":true}", EFFECTS_WRITE, EFFECTS_FROM_NAME, 2, false},
        {"get_b", "{\"destructiveHint\":true}", EFFECTS_DESTRUCTIVE, EFFECTS_FROM_ANNOTATIONS, 2, false},
        {"get_c", "{}", EFFECTS_READ, EFFECTS_FROM_NAME, 5, false}, /* a guess repeats no call */
        {"get_d", "{\"readOnlyHint\":true}", EFFECTS_READ, EFFECTS_FROM_ANNOTATIONS, 5, true},
        {"set_e", "{\"idempotentHint\":true}", EFFECTS_WRITE, EFFECTS_FROM_NAME, 2, true},
        {"f", "{\"destructiveHint\":false}", EFFECTS_UNDECLARED, EFFECTS_FROM_NOTHING, 3, false},
        {"g", "{\"readOnlyHint\":false}", EFFECTS_WRITE, EFFECTS_FROM_ANNOTATIONS, 2, false},
        {"delete_h", "{\"readOnlyHint\":false}", EFFECTS_DESTRUCTIVE, EFFECTS_FROM_NAME, 1, false},
        {"i", "{\"readOnlyHint\":true,\"destructiveHint\":true}", EFFECTS_READ, EFFECTS_FROM_ANNOTATIONS, 5,
         true}, /* MCP: destructiveHint has a meaning only for tools that write */
    };
    struct buf list = buf_in(arena);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        buf_printf(&list, "%s{\"name\":\"%s\"," SCHEMA ",\"annotations\":%s}", i ? "," : "[", rows[i].name,
                   rows[i].annotations);
    buf_byte(&list, ']');
    upstream_lists("a", arena_dup(arena, buf_view(&list)).at);
    loads(A, NOBODY);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct tool *tool = generation_find(generation, str_of(rows[i].name));
        if (tool->effects != rows[i].effects || tool->effects_from != rows[i].from ||
            tool->limits->same_call != rows[i].same_call || tool->idempotent != rows[i].idempotent)
            fail_msg("%s: effects %d from %d, same_call %u, idempotent %d", rows[i].name, tool->effects,
                     tool->effects_from, tool->limits->same_call, tool->idempotent);
    }
}

TEST(one_invalid_tool_does_not_affect_the_others)
{
    upstream_lists("a", "[{\"name\":\"bad\",\"inputSchema\":{\"type\":\"string\"}},{\"inputSchema\":{}},7,"
                        "{\"name\":\"good\"," SCHEMA "},{\"name\":\"good\"," SCHEMA "},"
                        "{\"name\":\"task\"," SCHEMA ",\"execution\":{\"taskSupport\":\"required\"}}]");
    loads(A, NOBODY);
    has("bad=a/bad good=a/good"); /* without its schema */
    warns("tool 'task' is left out: it only runs as a task");
    warns("upstream a: tool 'bad': input schema #/type");
    warns("is left out: it has no name");
    warns("tool 'good' is left out: it is offered more than once");
}

/* All definitions must fit into one tools/list reply. */
TEST(long_definitions_leave_room_for_others)
{
    struct buf list = buf_in(arena);
    char *words = arena_alloc(arena, 700001);
    memset(words, 'x', 700000);
    words[700000] = '\0';
    for (int i = 0; i < 3; i++)
        buf_printf(&list, "%s{\"name\":\"long_%d\",\"description\":\"%s\"," SCHEMA "}", i ? "," : "[", i,
                   words);
    buf_text(&list, ",{\"name\":\"short\"," SCHEMA "}]");
    buf_byte(&list, '\0');
    upstream_lists("a", list.at);
    upstream_lists("b", "[{\"name\":\"other\"," SCHEMA "}]");
    loads(A B, NOBODY);
    has("long_0=a/long_0 long_1=a/long_1 other=b/other short=a/short");
    warns("tool 'long_2' is left out: its definition has 700066 bytes, and those of one upstream may have "
          "2097152");
}

TEST(a_generation_keeps_its_tool_lists)
{
    upstream_lists("a", "[{\"name\":\"x\"," SCHEMA "}]");
    loads(A B, NOBODY);
    assert_ptr_equal(generation_tool_list(generation, STR_LIT("a")), fakes[0].list);
    assert_null(generation_tool_list(generation, STR_LIT("b")));
    tool_list_unref(fakes[0].list);
    fakes[0].list = NULL;
    fakes[0].name = NULL;
    assert_true(str_is(generation_find(generation, STR_LIT("x"))->target.tool, "x"));
}
