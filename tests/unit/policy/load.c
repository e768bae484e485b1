/* Loading policy files, and the errors in them. */
#include "folder.h"
#include "policy/policy_support.h"

#include "base/hash.h"
#include "golden.h"

#include <sys/stat.h>
#include <unistd.h>

static void faulty(const char *source)
{
    const char *fault = fault_of(source);
    if (!fault)
        fail_msg("it loads: %s", source);
    assert_has(fault, "p.lua:");
    golden_row(source, fault);
}

TEST(everything_declared_is_read)
{
    const struct policy *p = load(
        "return tool 'get_events' {\n"
        "  title = 'Events', description = 'd', use_when = 'u', avoid_when = 'a',\n"
        "  schema = json [[{\"type\":\"object\", \"properties\":{\"z\":{\"maximum\":1.10},\"a\":{}}}]],\n"
        "  annotations = { readOnlyHint = true },\n"
        "  effects = 'read', mode = 'shadow', unknown = 'drop', validate = false, final = true,\n"
        "  on_policy_error = 'open', coerce = { strings = false },\n"
        "  retry = { repair = 1, same_call = 2, transient = 4 },\n"
        "  loop = { repeats = 5, halt = 7, across_turns = 9, volatile = { 'request_id', 'ts' },\n"
        "  volatile_result = { 'elapsed_ms', 'meta.id' }, compare = 'arguments', same_failure = 12, "
        "poll = { max "
        "= 20, every = 'PT5S' } },\n"
        "  limits = { calls_per_turn = 10, calls_per_session = false, cost_per_session = 2.5 }, cost = "
        "0.02,\n"
        "  rate = { '10/minute', '1000000/day', by = 'user' },\n"
        "  compact = { max_tokens = 900, keep = { 'events[].id', 'title' }, drop = 'raw' },\n"
        "  ids = { ids = seen { look_up = 'search first' }, ['items[].id'] = shape 'uuid', e = shape { "
        "prefix = 'evt_' },\n"
        "          both = seen { shape = 'integer' } },\n"
        "  gives_ids = 'events[].id',\n"
        "  check = function(args, call) return call.history end,\n"
        "}");
    assert_true(str_is(p->name, "get_events") && str_is(p->file, "p.lua") && str_is(p->title, "Events"));
    assert_true(str_is(p->description, "d") && str_is(p->use_when, "u") && str_is(p->avoid_when, "a"));
    assert_string_equal(json_of(p->schema),
                        "{\"type\":\"object\", \"properties\":{\"z\":{\"maximum\":1.10},\"a\":{}}}");
    assert_string_equal(json_of(p->annotations), "{\"readOnlyHint\":true}");
    assert_int_equal(p->effects, EFFECTS_READ);
    assert_true(p->mode == POLICY_SHADOW && p->mode_given && p->unknown == UNKNOWN_DROP && p->unknown_given);
    assert_true(!p->validate && p->final && p->fails_open && p->coerce_given && !p->coerce.strings &&
                p->coerce.lists);
    assert_true(p->repair == 1 && p->same_call == 2 && p->transient == 4);
    assert_true(p->repeats == 5 && p->halt == 7 && p->across_turns == 9 && p->polls && p->poll_max == 20);
    assert_int_equal(p->poll_every_ms, 5000);
    assert_int_equal(p->limits.calls_per_turn, 10);
    assert_int_equal(p->limits.calls_per_session, 0);
    assert_int_equal(p->limits.seconds_per_turn, POLICY_UNSET);
    assert_int_equal(p->limits.cost_per_session, 2500000);
    assert_int_equal(p->cost, 20000);
    assert_true(p->compact_given && p->compact.on && p->compact.max_tokens == 900 && !p->compact.max_bytes);
    assert_true(p->compact.keep_count == 2 && p->compact.drop_count == 1 &&
                str_is(p->compact.drop[0], "raw"));
    assert_int_equal(p->volatile_count, 2);
    assert_true(str_is(p->volatiles[1], "ts"));
    assert_true(p->volatile_result_count == 2 && str_is(p->volatile_results[1], "meta.id"));
    assert_true(p->compare == COMPARE_ARGUMENTS && p->same_failure == 12);
    assert_true(p->rate_count == 2 && p->rate_by == RATE_BY_USER);
    assert_true(p->rates[0].count == 10 && p->rates[0].window_s == 60);
    assert_true(p->rates[1].count == 1000000 && p->rates[1].window_s == 86400);
    assert_int_equal(p->id_count, 4);
    assert_true(str_is(p->ids[0].path, "both") && p->ids[0].seen && str_is(p->ids[0].format, "integer"));
    assert_true(str_is(p->ids[1].path, "e") && !p->ids[1].seen && str_is(p->ids[1].format, "prefix:evt_"));
    assert_true(str_is(p->ids[2].look_up, "search first") && str_is(p->ids[3].path, "items[].id"));
    assert_true(p->gives_id_count == 1 && str_is(p->gives_ids[0], "events[].id"));
    assert_true(p->hooks[HOOK_CHECK] && !p->hooks[HOOK_RUN] && p->wants.history && !p->wants.facts);
}

TEST(absent_fields_are_unset)
{
    const struct policy *p = load("return tool 't' {}");
    assert_true(p->validate && !p->final && !p->mode_given && !p->unknown_given && !p->coerce_given &&
                !p->polls);
    assert_true(p->repair == POLICY_UNSET && p->repeats == POLICY_UNSET && p->poll_max == POLICY_UNSET);
    assert_true(p->compare == COMPARE_UNSET && p->same_failure == SAME_FAILURE_UNSET && p->rate_count == 0);
    assert_true(p->effects == EFFECTS_UNDECLARED && !p->schema && p->example_count == 0 &&
                p->rule_count == 0);
    assert_int_equal(check(p, "{}"), OUTCOME_PASS);
    assert_int_equal(normalise(p, "{}"), OUTCOME_PASS);
    assert_string_equal(json_of(said.args), "{}");
}

TEST(errors_have_line_and_fix)
{
    faulty("return tool 't' {\n  title = 'x',\n  desciption = 'y',\n}");
    faulty("return tool 't' {\n  retry = {\n    repiar = 2 } }");
    faulty("return tool 't' {\n\n effects = 'wirte' }");
    faulty("return tool 't' { mode = 7 }");
    faulty("return tool 't' { title = 5 }");
    faulty("return tool 't' { final = 'yes' }");
    faulty("return tool 't' { retry = { repair = -1 } }");
    faulty("return tool 't' { loop = { repeats = 1 } }");
    faulty("return tool 't' { loop = { halt = 0 } }");
    faulty("return tool 't' {\n loop = {\n poll = { every = 1,\n max = 0 } } }");
    faulty("return tool 't' { loop = { compare = 'args' } }");
    faulty("return tool 't' { loop = { same_failure = true } }");
    faulty("return tool 't' { loop = { same_failure = 1 } }");
    faulty("return tool 't' { loop = { same_failure = 32 } }");
    faulty("return tool 't' { loop = { volatile_result = { 7 } } }");
    faulty("return tool 't' {\n rate = '10/week' }");
    faulty("return tool 't' { rate = '0/minute' }");
    faulty("return tool 't' { rate = '1000001/minute' }");
    faulty("return tool 't' { rate = '10 / minute' }");
    faulty("return tool 't' { rate = 10 }");
    faulty("return tool 't' { rate = {} }");
    faulty("return tool 't' { rate = { '1/second', '2/minute', '3/hour', '4/day', '5/day' } }");
    faulty("return tool 't' { rate = { '1/second', by = 'uid' } }");
    faulty("return tool 't' { rate = { '1/second', per = 'user' } }");
    faulty("return tool 't' { retry = { repair = 1e10 } }");
    faulty("return tool 't' { retry = 2 }");
    faulty("return tool 't' { gives_ids = { 1 } }");
    faulty("return tool 't' { check = 'no' }");
    faulty("return tool 't' { check = tostring }");
    faulty("return tool 't' { ids = { a = seen } }");
    faulty("return tool 't' { ids = { a = shape 'uid' } }");
    faulty("return tool 't' { schema = 'x.json' }");
    faulty("return tool 't' { on_policy_error = 'opne' }");
    faulty("return tool 't' { upstream = 'calendar', run = function() end }");
    faulty("return tool 't' { upstream = 'calendar/' }");
    faulty("return tool 't' { retry = { again = 3 } }");
    faulty("return tool 't' { retry = { again = { times = 6 } } }");
    faulty("return tool 't' { retry = { again = { backoff = '2 minutes' } } }");
    faulty("return tool 't' { retry = { again = { within = '0ms' } } }");
    faulty("return tool 't' { retry = { again = { whithin = '1s' } } }");
    faulty("return tool 't' { compact = 5 }");
    faulty("return tool 't' { compact = { max_byte = 5 } }");
    faulty("return tool 't' { compact = { max_tokens = 5 } }");
    faulty("return tool 't' { limits = { calls_per_turn = 0 } }");
    faulty("return tool 't' { limits = { cost_per_turn = -1 } }");
    faulty("return tool 't' { limits = 5 }");
    faulty("return tool 't' { cost = 'much' }");
    faulty("return tool 't' { 'a title' }");
    faulty("local x = 1\nreturn tol 't' {}");
    faulty("return tool 't'");
    faulty("local t = tool 't' {}");
    faulty("return { name = 't' }");
    faulty("return tool {}");
    faulty("return tool 't' {");
    faulty("return tool 't' { schema = json 'x.json' }");
    faulty("return tool 't' {\n schema = json [[{\n\"a\":\n}]] }");
    faulty("return tool 't' { loop = { poll = { every = '5 parsecs' } } }");
    faulty("return tool 't' { loop = { poll = { every = 0 } } }");
    faulty("return tool 't' { examples = { { args = {} } } }");
    faulty("return tool 't' {\n examples = {\n  { 'a', gives = 'pass' },\n  { 'b', arg = {} } } }");
    faulty("return tool 't' { examples = {\n { 'a', args = {} } } }");
    faulty("return tool 't' { examples = {\n{ 'a', arsg = {}, gives = 'pass' } } }");
    faulty("return tool 't' { examples = {\n{ 'a', turn = 'x', gives = 'pass' } } }");
    faulty("return tool 't' { examples = {\n{ 'a', seen = { id = 1 }, gives = 'pass' } } }");
    faulty("return tool 't' { examples = {\n{ 'a', history = { {}, { clas = 'ok' } }, gives = 'pass' } } }");
    faulty("return tool 't' { examples = {\n{ 'a', history = { 'x' }, gives = 'pass' } } }");
    faulty("return tool 't' { examples = {\n { 'a', gives = {} } } }");
    faulty("return tool 't' { examples = {\n { 'a', seen = 'e1', gives = 'pass' } } }");
    faulty("return tool 't' { examples = { one = { 'a', gives = 'pass' } } }");
    faulty("return tool 't' { examples = {\n { 'a', args = { f = function() end } } } }");
    faulty("tool = 1");
    faulty("return tool 't' { rules = when { a = 1 } : needs 'b' }");
    faulty("return tool 't' { rules = { { needs = 'b' } } }");
    faulty("return tool 't' { rules = { when { a = 1 } } }");
    faulty("return tool 't' { rules = { when { a = function() end } : needs 'b' } }");
    faulty("return tool 't' { rules = { when { a = 1 } : need 'b' } }");
    faulty("return gateway { instruction = 'x' }");
    golden_check_rows("load", "declarations: mistakes");
}

/* Names that a list of strings would leave out: redact = { email = true } redacted nothing. */
TEST(lists_have_items_alone)
{
    static const char *const lists[] = {"{ email = true }", "set { 'email' }", "{ 'a', [4] = 'b' }"};
    for (size_t i = 0; i < 3; i++)
        assert_has(fault_of(arena_printf(arena, "return tool 't' { redact = %s }", lists[i]).at),
                   "'redact': expected a list of strings, got ");
    assert_null(fault_of("return tool 't' { redact = array {} }"));
    assert_has(fault_of("return tool 't' { rules = { a = when { x = 1 } : refuses 'no' } }"),
               "rules: expected a list of rules, got one with the key \"a\"");
    assert_has(fault_of("return tool 't' { rules = { when { x = { 'a', b = 'c' } } : needs 'y' } }"),
               "rules: when: 'x': expected a value or a list of values, got one with the key \"b\"");
    assert_has(fault_of("return gateway { check = { 'secrets', hidden = true } }"),
               "'check': expected a list of pattern sets");
}

/* It ended the process. */
TEST(a_changed_declaration_is_refused)
{
    assert_has(fault_of("local d = tool 't' {} d.fields = 5 return d"), "expected the file to return tool");
}

/* Not that of an assignment in a function before it. */
TEST(errors_have_the_line_of_the_field)
{
    assert_has(
        fault_of("return tool 't' {\n check = function(args)\n  local mode = 1\n end,\n mode = 'x',\n}"),
        "p.lua:5: ");
}

TEST(examples_have_their_line)
{
    const struct policy *p = load(
        "-- tool 'x' { examples = { in a comment\n"
        "local s = [[ examples = { ]]\n"
        "return tool 't' {\n"
        "  schema = params { a = object { examples = int } },\n"
        "  examples = { { 'one', args = { examples = {} }, gives = 'x' },\n"
        "    -- { 'not this one' },\n"
        "    { 'two; {,}',\n"
        "      args = { list = { { 1 }, { 2 } } }, seen = { 'e1' }, goal = 'g', gives = 'pass', says = 's',\n"
        "      becomes = { a = {} }, history = {}, facts = { n = 1 }, status = 'FAILED', result = { events = "
        "{} } "
        "},\n"
        "    { 'three', gives = 'x' } } }");
    assert_int_equal(p->example_count, 3);
    assert_int_equal(p->examples[0].line, 5);
    assert_int_equal(p->examples[1].line, 7);
    assert_int_equal(p->examples[2].line, 10);
    const struct policy_example *e = &p->examples[1];
    assert_true(str_is(e->name, "two; {,}") && str_is(e->goal, "g") && str_is(e->gives, "pass") &&
                str_is(e->says, "s"));
    assert_string_equal(json_of(e->args), "{\"list\":[[1],[2]]}");
    assert_string_equal(json_of(e->becomes), "{\"a\":{}}");
    assert_string_equal(json_of(e->result), "{\"events\":[]}");
    assert_string_equal(json_of(e->seen), "[\"e1\"]");
    assert_null(p->examples[2].args);
}

TEST(params_are_a_closed_schema)
{
    const struct policy *p =
        load("return tool 't' { schema = params {\n"
             "  title = str { min = 1, max = 9, pattern = '^a', 'Task title' },\n"
             "  count = optional(int { min = 0, 'How many' }, 5), rate = num { over = 0 }, on = bool,\n"
             "  tags = list(str, 'Tags'), ids = list { uuid, 'Ids', min = 1, unique = true },\n"
             "  state = enum({ 'open', 'done' }, 'State'), level = enum { 1, 2 },\n"
             "  where = object({ street = str }, 'Where'), due = optional(datetime), day = date 'The day',\n"
             "  to = email 'Whom', link = uri } }");
    const struct json *props = json_get_text(p->schema, "properties");
    static const char *const wanted[][2] = {
        {"title", "{\"type\":\"string\",\"description\":\"Task "
                  "title\",\"maxLength\":9,\"minLength\":1,\"pattern\":\"^a\"}"},
        {"count", "{\"type\":\"integer\",\"description\":\"How many\",\"default\":5,\"minimum\":0}"},
        {"rate", "{\"type\":\"number\",\"exclusiveMinimum\":0}"},
        {"on", "{\"type\":\"boolean\"}"},
        {"tags", "{\"type\":\"array\",\"description\":\"Tags\",\"items\":{\"type\":\"string\"}}"},
        {"ids", "{\"type\":\"array\",\"description\":\"Ids\",\"items\":{\"type\":\"string\",\"format\":"
                "\"uuid\"},\"minItems\":1,\"uniqueItems\":true}"},
        {"state", "{\"type\":\"string\",\"description\":\"State\",\"enum\":[\"open\",\"done\"]}"},
        {"level", "{\"enum\":[1,2]}"},
        {"where", "{\"type\":\"object\",\"description\":\"Where\",\"properties\":{\"street\":{\"type\":"
                  "\"string\"}},\"required\":[\"street\"],\"additionalProperties\":false}"},
        {"due", "{\"type\":\"string\",\"format\":\"date-time\"}"},
        {"day", "{\"type\":\"string\",\"format\":\"date\",\"description\":\"The day\"}"},
        {"to", "{\"type\":\"string\",\"format\":\"email\",\"description\":\"Whom\"}"},
        {"link", "{\"type\":\"string\",\"format\":\"uri\"}"},
    };
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
        assert_string_equal(json_of(json_get_text(props, wanted[i][0])), wanted[i][1]);
    assert_string_equal(
        json_of(json_get_text(p->schema, "required")),
        "[\"title\",\"rate\",\"on\",\"tags\",\"ids\",\"state\",\"level\",\"where\",\"day\",\"to\",\"link\"]");
    assert_string_equal(json_of(json_get_text(p->schema, "additionalProperties")), "false");
    assert_string_equal(json_of(load("return tool 't' { schema = params {} }")->schema),
                        "{\"type\":\"object\",\"properties\":{},\"additionalProperties\":false}");
    assert_string_equal(
        json_of(load("return tool 't' { schema = params({ a = optional(str) }, { open = true }) }")->schema),
        "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"}}}");
    faulty("return tool 't' { schema = params { a = 'str' } }");
    faulty("return tool 't' { schema = params { a = str { mn = 1 } } }");
    faulty("return tool 't' { schema = params { a = sting } }");
    golden_check_rows("load", "declarations: params");
}

TEST(the_gateway_is_a_file_of_its_own)
{
    assert_null(
        load("return gateway { instructions = 'Be kind.', prepare_tools = function(defs) return defs end }"));
    assert_true(policy_set_gateway(loaded)->hooks[HOOK_PREPARE] &&
                str_is(policy_set_gateway(loaded)->file, "p.lua"));
    assert_true(str_is(policy_set_gateway(loaded)->instructions, "Be kind."));
    load("return tool 't' {}");
    assert_true(!policy_set_gateway(loaded)->hooks[HOOK_PREPARE] &&
                policy_set_gateway(loaded)->instructions.len == 0);
}

/* ---- folders -------------------------------------------------------------------------- */

static void begin(void)
{
    make_folder();
    set_up();
}

static void end(void)
{
    remove_folder();
    tear_down();
}

FIXTURE(begin, end)

static struct policy_load_errors load_folder(const struct policy_set_options *with, enum err wanted)
{
    struct policy_load_errors faults = {.arena = arena};
    policy_set_free(loaded);
    assert_int_equal(policy_set_load(folder, with, &loaded, &faults), wanted);
    return faults;
}

TEST(a_folder_is_read_in_order)
{
    write_file("b.lua", "return tool 'first' {}");
    write_file("a.lua", "return tool 'second' { schema = json 's.json' }");
    write_file("s.json", "{\"type\": \"object\"}");
    write_file(".hidden.lua", "nonsense");
    write_file("note.txt", "nonsense");
    load_folder(NULL, OK);
    assert_int_equal(policy_set_count(loaded), 2);
    assert_true(str_is(policy_set_at(loaded, 0)->name, "second"));
    assert_string_equal(json_of(policy_set_at(loaded, 0)->schema), "{\"type\": \"object\"}");
    uint64_t hash = policy_set_hash(loaded);
    load_folder(NULL, OK);
    assert_true(policy_set_hash(loaded) == hash);
    write_file("s.json", "{\"type\": \"object\", \"a\": 1}");
    load_folder(NULL, OK);
    assert_true(policy_set_hash(loaded) != hash);
}

TEST(every_invalid_file_is_reported)
{
    write_file("a.lua", "return tool 't' { titel = 1 }");
    write_file("b.lua", "return tool 't' {}");
    write_file("c.lua", "return tool 't' {}");
    struct policy_load_errors faults = load_folder(NULL, ERR_POLICY);
    assert_int_equal(faults.count, 2);
    golden_check("load", "policies: an unknown field in one file of a folder", text_of(faults.list[0]));
    assert_has(text_of(faults.list[1]), "c.lua: tool \"t\" is declared in ");
    write_file("a.lua", "return tool 'u' { schema = json '../x.json' }");
    unlink(in_folder("c.lua"));
    faults = load_folder(NULL, ERR_POLICY);
    golden_check("load", "policies: a schema file elsewhere", text_of(faults.list[0]));
    write_file("a.lua", "return tool 'u' { schema = json 'x.json' }");
    assert_has(text_of(load_folder(NULL, ERR_POLICY).list[0]), "/x.json");
}

TEST(a_missing_folder_is_an_error)
{
    struct policy_load_errors faults = {.arena = arena};
    assert_int_equal(policy_set_load("/nonexistent/policies", NULL, &loaded, &faults), ERR_IO);
    golden_check("load", "policies: no folder", text_of(faults.list[0]));
    assert_int_equal(policy_set_load(NULL, NULL, &loaded, &faults), OK);
    assert_int_equal(policy_set_count(loaded), 0);
}

TEST(a_quarantined_file_does_not_run)
{
    struct str text = STR_LIT("while true do end\nreturn tool \"stuck\" { run = function() end }");
    struct policy_stall stall = {str_of(in_folder("a.lua")), hash_stable(text).low};
    options = (struct policy_set_options){.stalls = &stall, .stall_count = 1};
    size_t count;
    write_file("a.lua", text.at);
    write_file("b.lua", "return tool 'fine' {}");
    load_folder(&options, OK);
    assert_int_equal(policy_set_count(loaded), 2);
    assert_true(str_is(policy_set_at(loaded, 0)->name, "stuck") && policy_set_at(loaded, 0)->hooks[HOOK_RUN]);
    assert_int_equal(check(policy_set_at(loaded, 0), "{}"), OUTCOME_POLICY_ERROR);
    assert_has(said.why.text, "a.lua: is quarantined");
    assert_int_equal(check(policy_set_at(loaded, 1), "{}"), OUTCOME_PASS);
    assert_true(str_eq(policy_set_stalls(loaded, &count)[0].file, stall.file) && count == 1);
}

TEST(a_quarantine_ends_when_the_file_changes)
{
    struct policy_stall stall = {str_of(in_folder("a.lua")), hash_stable(STR_LIT("what it was")).low};
    options = (struct policy_set_options){.stalls = &stall, .stall_count = 1};
    size_t count;
    write_file("a.lua", "return tool 'fixed' {}");
    load_folder(&options, OK);
    assert_int_equal(check(policy_set_at(loaded, 0), "{}"), OUTCOME_PASS);
    policy_set_stalls(loaded, &count);
    assert_int_equal(count, 0);
}
