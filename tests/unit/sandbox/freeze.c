/* No call leaves data for a later call of any session: writing to shared state is an error when the file
 * loads or when the hook runs. */
#include "policy/policy_hostile.h"

/* The file loads, and its check fails at the write. */
static void is_refused_at_the_write(const char *source, const char *why)
{
    const struct policy *p = load(source);
    for (int i = 0; i < 2; i++) {
        if (check(p, "{\"mine\":\"secret\"}") != OUTCOME_POLICY_ERROR)
            fail_msg("it keeps something: %s", source);
        if (!strstr(said.why.text, why) || strstr(said.why.text, "secret"))
            fail_msg("%s: expected “%s” in “%s”", source, why, said.why.text);
    }
}

TEST(variables_cannot_be_set)
{
    is_refused("local n = 0\nreturn tool 't' { check = function(args)\n  n = n + 1\n end }");
    is_refused("local last\nreturn tool 't' { check = function(args) last = args.x end }");
    is_refused("local a, b = 1, 2 return tool 't' { check = function() a, b = b, a end }");
    is_refused("local t return tool 't' { check = function() t = nil end }");
    is_refused("local t return tool 't' { check = function() t = true end }");
    is_refused("local t return tool 't' { check = function() t = 'text' end }");
    is_refused("local t return tool 't' { check = function() t = { 1 } end }");
    is_refused("local f return tool 't' { check = function() function f() end end }");
    is_refused("local t return tool 't' { check = function() for _ = 1, 2 do t = 1 end end }");
    is_refused("local t return tool 't' { check = function() return (function() t = 1 end)() end }");
    golden_check_rows("load", "state between calls: variables");
}

TEST(variables_cannot_be_set_by_helpers_either)
{
    is_refused("local n = 0\nlocal function count()\n n = n + 1 return n end\n"
               "return tool 't' { check = function() return refuse(count()) end }");
    is_refused("local function counter() local n = 0 return function() n = n + 1 return n end end\n"
               "local next_one = counter()\nreturn tool 't' { check = function() next_one() end }");
    is_refused(
        "local n = 0 function count() n = n + 1 end return tool 't' { check = function() count() end }");
    is_refused("local n = 0 local util = { deep = { count = function() n = n + 1 end } }\n"
               "return tool 't' { check = function() util.deep.count() end }");
    is_refused("local n = 0 local function count() n = n + 1 end local by = { [count] = true }\n"
               "return tool 't' { check = function() for f in pairs(by) do f() end end }");
    is_refused("local n = 0 local function a(f) return f and f() end local function b() n = 1 end\n"
               "local function c() return a(b) end return tool 't' { check = function() return c() end }");
    is_refused("local kept = ''\nreturn tool 't' { check = function(args)\n"
               " args.text:gsub('.+', function(all) kept = kept .. all end) end }");
    is_refused(
        "local n = 0 return tool 't' { check = function() table.sort({ 2, 1 }, function() n = 1 end) end }");
    is_refused("local n = 0 return gateway { prepare_tools = function(defs) n = n + 1 return defs end }");
    is_refused("local n = 0 return tool 't' { rules = {\n when { a = is('x', function() n = 1 end) } : needs "
               "'b' } }");
    golden_check_rows("load", "state between calls: variables, set by helpers");
}

/* A local variable of a hook may be assigned, and a variable of the file while the file loads. */
TEST(other_variables_can_be_set)
{
    static const char *const fine[] = {
        "return tool 't' { check = function(args) local n = 0 local function up() n = n + 1 end up() up() "
        "if n ~= 2 then error 'x' end end }",
        "local n = 5 return tool 't' { check = function(args) local n = n local function up() n = n + 1 end "
        "up() "
        "if n ~= 6 then error 'x' end end }",
        "local function counter() local n = 0 return function() n = n + 1 return n end end\n"
        "return tool 't' { check = function() local c = counter() c() if c() ~= 2 then error 'x' end end }",
        "local n = 0 local function up() n = n + 1 end up() up() "
        "return tool 't' { check = function() if n ~= 2 then error 'x' end end }",
        "local even local function odd(n) return n ~= 0 and even(n - 1) end even = function(n) return n == 0 "
        "or "
        "odd(n - 1) end return tool 't' { check = function() if not even(10) then error 'x' end end }",
        "local t = {} for i = 1, 3 do t[i] = i end table.insert(t, 4) t.n = #t "
        "return tool 't' { check = function() if t.n ~= 4 or #t ~= 4 then error 'x' end end }",
        "return tool 't' { check = function(args, call) args = { args } call = nil args.x = 1 end }",
        "return tool 't' { check = function(args, call) args.x = 1 call.facts.y = 1 call.mine = args end }",
    };
    for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++)
        for (int again = 0; again < 2; again++) {
            if (check(again ? policy_set_at(loaded, 0) : load(fine[i]), "{}") != OUTCOME_PASS)
                fail_msg("%s: %s", fine[i], said.why.text);
        }
}

/* The ways to write to a table T of the file. */
static const char *const writes[] = {
    "T[1] = args.mine",
    "T.x = args.mine",
    "T.a = args.mine",
    "T[#T] = args.mine",
    "T[#T + 1] = args.mine",
    "T[args.mine] = true",
    "T.a = nil",
    "T.deep.x = args.mine",
    "T.deep.list[1] = args.mine",
    "T.deep.list[#T.deep.list + 1] = args.mine",
    "table.insert(T, args.mine)",
    "table.insert(T, 1, args.mine)",
    "table.insert(T.deep.list, args.mine)",
    "table.remove(T)",
    "table.remove(T, 1)",
    "table.sort(T)",
    "table.sort(T, function(a, b) return a > b end)",
    "local alias = T alias.x = args.mine",
    "local function put(t, v) t.x = v end put(T, args.mine)",
    "for _, inner in pairs(T) do if type(inner) == 'table' then inner.x = args.mine end end",
    "for _, inner in ipairs { T } do inner.x = args.mine end",
    "local _, t = pairs(T) t.x = args.mine",
    "local _, t = ipairs(T) t.x = args.mine",
    "local step, t = pairs(T) local k, v = step(t) t[k] = args.mine",
    "local t = select(2, next({ T })) t.x = args.mine",
    "local t = unpack { T } t.x = args.mine",
    "local t = unpack { T.deep } t.x = args.mine",
    "local t = assert(T) t.x = args.mine",
    "local ok, t = pcall(function() return T end) t.x = args.mine",
    "local ok, t = pcall(error, T) t.x = args.mine",
    "('x'):gsub('x', function() T.x = args.mine end)",
    "('x'):gsub('x', T) T.x = args.mine",
    "array(T).deep.x = args.mine",
    "local r = repair { { message = 'x', suggest = T } } r.problems[1].suggest.x = args.mine",
    "local r = ok { facts = T } r.facts.x = args.mine",
    "set(T) T.x = args.mine",
    "T.add(args.mine)",
    "T:put(args.mine)",
    "KEYED[KEY].x = args.mine",
    "for key in pairs(KEYED) do key.x = args.mine end",
    "local key = next(KEYED) key.x = args.mine",
    "GLOBAL.x = args.mine",
    "GLOBAL.deep.x = args.mine",
    "COPY.x = args.mine",
    "JSON.list[1] = args.mine",
    "JSON.list[#JSON.list + 1] = args.mine",
    "JSON.list[1].a = args.mine",
    "SET[args.mine] = true",
    "RULE : needs(args.mine)",
    "RULE.required[1] = args.mine",
    "OUTCOME.detail = args.mine",
    "PAIR.x = args.mine",
    "STEP(LIST).x = args.mine",
    "FIELDS.description = args.mine",
    "args.t = T args.t.x = args.mine",
    "call.t = T call.t.x = args.mine",
};

TEST(tables_cannot_be_written_to)
{
    for (size_t i = 0; i < sizeof(writes) / sizeof(writes[0]); i++)
        is_refused_at_the_write(arena_printf(arena,
                                             "local T = { 'one', 'two', a = 1, deep = { list = { 1, 2 } } }\n"
                                             "T.deep.up = T\n"
                                             "T.add = function(v) T[1] = v end\n"
                                             "function T:put(v) self.x = v end\n"
                                             "GLOBAL = { deep = {} }\n"
                                             "local KEY = {} local KEYED = { [KEY] = KEY }\n"
                                             "local COPY = GLOBAL\n"
                                             "local JSON = json [[{\"list\": [{\"a\": 1}, 2]}]]\n"
                                             "local SET = set { 'a' }\n"
                                             "local RULE = when { a = 1 } : needs 'b'\n"
                                             "local OUTCOME = refuse('a', 'b')\n"
                                             "local _, PAIR = pairs(T)\n"
                                             "local STEP, LIST = function(t) return t end, {}\n"
                                             "local FIELDS = { description = 'x', rules = { RULE } }\n"
                                             "FIELDS.check = function(args, call)\n %s\nend\n"
                                             "return tool 't' (FIELDS)",
                                             writes[i])
                                    .at,
                                strstr(writes[i], "T.add")    ? "p.lua:3: " STATE "the table 'T'"
                                : strstr(writes[i], "T:put")  ? "p.lua:4: " STATE "the table 'T'"
                                : strstr(writes[i], "needs(") ? STATE "the table 'RULE'"
                                                              : "p.lua:16: " STATE "the table '");
}

TEST(the_table_is_named)
{
    is_refused_at_the_write("local seen_ids = {}\nreturn tool 't' { check = function(args)\n"
                            " seen_ids[args.mine] = true end }",
                            "p.lua:3: " STATE "the table 'seen_ids'");
    golden_check("load", "state between calls: a table of the file", said.why.text);
    is_refused_at_the_write(
        "cache = { by = {} }\nreturn tool 't' { check = function(args) cache.by[1] = 1 end }",
        "p.lua:2: " STATE "the table 'cache'");
}

/* An iterator of gmatch has state. */
TEST(loops_that_were_begun_are_refused)
{
    is_refused("local more = ('a b c'):gmatch '%a'\nreturn tool 't' {\n check = function() return "
               "refuse(more()) end }");
    is_refused("local t = { ('a b c'):gmatch '%a' } return tool 't' { check = function() t[1]() end }");
    is_refused("more = ('a b c'):gmatch '%a' return tool 't' { check = function() more() end }");
    load("local gmatch = string.gmatch return tool 't' { check = function() for _ in gmatch('a', 'a') do end "
         "end }");
    assert_int_equal(check(policy_set_at(loaded, 0), "{}"), OUTCOME_PASS);
    golden_check_rows("load", "state between calls: loops begun before the call");
}

/* ---- reading read-only tables ------------------------------------------------------- */

static const char *const readings[][2] = {
    {"#LIST", "3"},
    {"LIST[1] .. LIST[3]", "\"ac\""},
    {"MAP.x.y.z", "\"deep\""},
    {"MAP['missing'] == nil", "true"},
    {"type(MAP) .. type(MAP.x) .. type(LIST) .. type(SET)", "\"tabletabletabletable\""},
    {"tostring(MAP)", "\"table\""},
    {"table.concat(LIST, ',')", "\"a,b,c\""},
    {"table.concat(LIST, ',', 2, 3)", "\"b,c\""},
    {"(unpack(LIST))", "\"a\""},
    {"select('#', unpack(LIST))", "3"},
    {"select('#', table.unpack(LIST, 2))", "2"},
    {"(next(EMPTY)) == nil", "true"},
    {"(next(MAP))", "\"x\""},
    {"select(2, next(LIST, 1))", "\"b\""},
    {"joined(ipairs, LIST)", "\"1a2b3c\""},
    {"joined(pairs, LIST)", "\"1a2b3c\""},
    {"joined(pairs, MAP.x)", "\"ydeep\""},
    {"joined(ipairs, EMPTY)", "\"\""},
    {"captured()", "\"1a2b3c1a2b3c3table\""},
    {"(('a-b'):gsub('%a', NAMES))", "\"eh-b\""},
    {"SET.a == true and SET.z == nil", "true"},
    {"MAP.x == SAME", "true"},
    {"MAP.x ~= MAP and MAP == MAP", "true"},
    {"KEYED[KEY]", "\"found\""},
    {"({ [MAP] = 1 })[MAP]", "1"},
    {"LOOP.me.me.me == LOOP", "true"},
    {"helper()", "\"global deep\""},
    {"LIST", "[\"a\",\"b\",\"c\"]"},
    {"MAP", "{\"x\":{\"y\":{\"z\":\"deep\"}}}"},
    {"{ LIST, { MAP.x } }", "[[\"a\",\"b\",\"c\"],[{\"y\":{\"z\":\"deep\"}}]]"},
    {"JSON", "{\"b\":[],\"c\":{},\"n\":[1,{\"d\":null}]}"},
    {"array(EMPTY)", "[]"},
    {"array(LIST)", "[\"a\",\"b\",\"c\"]"},
    {"set(LIST).b", "true"},
    {"(newest(DATED, 'at')).id", "2"},
    {"(newest(TITLED, 'at', 'the invoice')).id", "1"},
    {"host_in('a.example.com', HOSTS)", "true"},
    {"RECORD.name:upper() .. #RECORD.name", "\"ANN3\""},
    {"copy(LIST)", "[\"a\",\"b\",\"c\",\"d\"]"},
    {"sorted(DATED)", "\"21\""},
    {"select(2, pcall(function() return MAP + 1 end)):find 'attempt to' ~= nil", "true"},
    {"select('#', pcall(ipairs, nil))", "2"},
};

static const char *const constants =
    "local LIST, EMPTY = { 'a', 'b', 'c' }, {}\n"
    "local SAME = { y = { z = 'deep' } }\n"
    "local MAP, NAMES = { x = SAME }, { a = 'eh' }\n"
    "local SET = set { 'a', 'b' }\n"
    "local KEY = {} local KEYED = { [KEY] = 'found' }\n"
    "local LOOP = {} LOOP.me = LOOP\n"
    "local HOSTS = { '*.example.com' }\n"
    "local DATED = { { id = 1, at = '2026-01-01' }, { id = 2, at = '2026-02-01' } }\n"
    "local TITLED = { { id = 1, at = 1, is = { 'Invoice' } }, { id = 2, at = 2, is = { 'Party' } } }\n"
    "local RECORD = { name = 'ann' }\n"
    "local JSON = json [[{\"b\":[],\"c\":{},\"n\":[1,{\"d\":null}]}]]\n"
    "GLOBALS = { deep = { 'global deep' } }\n"
    "function helper() return GLOBALS.deep[1] end\n"
    "local pairs_of, each, kind, size = pairs, ipairs, type, unpack\n"
    "local kept = { kind = type }\n"
    "local function joined(each, t) local s = '' for k, v in each(t) do s = s .. k .. (kind(v) == 'table' "
    "and v.z or v) "
    "end return s end\n"
    "local function captured() return joined(pairs_of, LIST) .. joined(each, LIST) .. select('#', "
    "size(LIST)) .. "
    "kept.kind(MAP) end\n"
    "local function copy(t) local c = { unpack(t) } c[#c + 1] = 'd' return c end\n"
    "local function sorted(t) local c = { unpack(t) } table.sort(c, function(a, b) return a.at > b.at end) "
    "return c[1].id .. c[2].id end\n";

TEST(constants_read_as_tables)
{
    for (size_t i = 0; i < sizeof(readings) / sizeof(readings[0]); i++) {
        const struct policy *p =
            load(arena_printf(arena, "%sreturn tool 't' { run = function() return { v = %s } end }",
                              constants, readings[i][0])
                     .at);
        for (int again = 0; again < 2; again++) {
            policy_run(p, &a_call, value_of("{}"), arena, &said);
            const char *got =
                said.kind == OUTCOME_POLICY_ERROR ? said.why.text : json_of(json_get_text(said.value, "v"));
            if (strcmp(got, readings[i][1]) != 0)
                fail_msg("%s: expected %s, got %s", readings[i][0], readings[i][1], got);
        }
    }
}

/* Outcomes, arguments and complete results may be created once when the file loads. */
TEST(constants_are_answers)
{
    assert_int_equal(check(load("local NO = refuse('never', 'not today', 'ask again') "
                                "return tool 't' { check = function() return NO end }"),
                           "{}"),
                     OUTCOME_REFUSE);
    assert_true(str_is(said.code, "never") && str_is(said.detail, "not today") &&
                str_is(said.hint, "ask again"));
    assert_int_equal(
        check(load("local TWO = repair { { path = 'a', message = 'x', suggest = { a = { 1 } } }, "
                   "{ path = 'b', message = 'y' } } return tool 't' { check = function() return TWO end }"),
              "{}"),
        OUTCOME_REPAIR);
    assert_int_equal(said.problems.count, 2);
    assert_string_equal(json_of(said.suggest), "{\"a\":[1]}");
    assert_int_equal(check(load("local ONE = { path = 'a', message = 'x' } "
                                "return tool 't' { check = function() return repair { ONE, ONE } end }"),
                           "{}"),
                     OUTCOME_REPAIR);
    assert_int_equal(check(load("local WHICH = { 'a', 'b' } "
                                "return tool 't' { check = function() return ask('which?', WHICH) end }"),
                           "{}"),
                     OUTCOME_ASK);
    assert_string_equal(json_of(said.choices), "[\"a\",\"b\"]");
    assert_int_equal(
        normalise(
            load("local ARGS = { a = { 1 } } return tool 't' { normalise = function() return ARGS end }"),
            "{\"a\":[1],\"b\":2}"),
        OUTCOME_PASS);
    assert_string_equal(json_of(said.args), "{\"a\":[1]}");
    policy_run(load("local ROWS = array {} return tool 't' { run = function() return ROWS end }"), &a_call,
               value_of("{}"), arena, &said);
    assert_string_equal(json_of(said.value), "[]");
}

/* ---- sessions --------------------------------------------------------------------------------- */

/* Tries every way to pass data on: one session writes, another session looks for it. */
TEST(sessions_do_not_see_each_other)
{
    const struct policy *p = load(
        "local T, SET, JSON = { n = 0, list = {} }, set { 'a' }, json [[{\"a\": []}]]\n"
        "GLOBAL = {}\n"
        "local RULE, NO = when { a = 1 } : needs 'b', refuse('x', 'y')\n"
        "local function try(f, ...) pcall(f, ...) end\n"
        "return tool 't' { rules = { RULE }, run = function(args, call)\n"
        "  local was = {}\n"
        "  for _, t in ipairs { T, T.list, SET, JSON, JSON.a, GLOBAL, RULE, NO, string, math, table, call, "
        "args } do\n"
        "    if type(t) == 'table' and t ~= call then for k, v in pairs(t) do was[#was + 1] = tostring(k) .. "
        "tostring(v) end end\n"
        "    local key = args.secret or 'leak'\n"
        "    try(function() t[key] = key end)\n"
        "    try(function() t[1] = key end)\n"
        "    try(function() t[#t + 1] = key end)\n"
        "    try(table.insert, t, key)\n"
        "    try(table.sort, t, function() t[key] = key return true end)\n"
        "    try(array, t)\n"
        "    try(function() for k in pairs(t) do t[k] = key end end)\n"
        "    try(function() ('x'):gsub('x', function() t.x = key end) end)\n"
        "    try(function() t:needs(key) end)\n"
        "  end\n"
        "  try(function() call.facts.secret = args.secret call.facts = args end)\n"
        "  try(error, args)\n"
        "  table.sort(was)\n"
        "  return { was = table.concat(was, ' ') }\n"
        "end }");
    struct policy_call one = a_call, two = a_call;
    two.session = STR_LIT("s2");
    policy_run(p, &two, value_of("{}"), arena, &said);
    assert_int_equal(said.kind, OUTCOME_VALUE);
    const char *before = json_of(said.value);
    for (int i = 0; i < 3; i++) {
        policy_run(p, &one, value_of("{\"secret\":\"hunter2\"}"), arena, &said);
        assert_int_equal(said.kind, OUTCOME_VALUE);
    }
    policy_run(p, &two, value_of("{}"), arena, &said);
    assert_string_equal(json_of(said.value), before);
}

/* Arguments and `call` are copies: only the hook sees what it writes into them. */
TEST(hooks_get_copies)
{
    const struct policy *p = load("return tool 't' { check = function(args, call)\n"
                                  "  if args.seen or call.facts.seen then return refuse('leak') end\n"
                                  "  args.seen = true call.facts.seen = true call.goal = nil\n end }");
    const struct json *args = value_of("{\"a\":1}");
    struct policy_call call = a_call;
    call.facts = value_of("{\"n\":1}");
    for (int i = 0; i < 3; i++) {
        policy_check(p, &call, args, arena, &said);
        assert_int_equal(said.kind, OUTCOME_PASS);
    }
    assert_string_equal(json_of(args), "{\"a\":1}");
    assert_string_equal(json_of(call.facts), "{\"n\":1}");
}

/* Without state, memory that ran out is free again for the next call. */
TEST(no_call_can_keep_data)
{
    options.memory_kb = 4096;
    const struct policy *p =
        load("local kept, data = {}, json [[{\"n\":1}]]\n"
             "return tool 't' { rules = { when { x = 1 } : refuses 'no' }, check = function(args)\n"
             "  local mine = {}\n"
             "  if args.hoard then for i = 1, 1e9 do pcall(table.insert, kept, i) mine[i] = ('x'):rep(100) "
             ".. i end end\n"
             "  return refuse(#kept .. ' kept, n is ' .. data.n)\nend }");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(check(p, "{\"hoard\":true}"), OUTCOME_POLICY_ERROR);
        assert_has(said.why.text, MEMORY);
        assert_int_equal(check(p, "{}"), OUTCOME_REFUSE);
        assert_true(str_is(said.detail, "0 kept, n is 1"));
    }
}

/* Freezing handles values that are deeper than the C stack or very wide. */
TEST(large_constants_are_settled)
{
    const struct policy *p = load("local T = { n = 0 } for i = 1, 20000 do T = { T, n = i } end\n"
                                  "return tool 't' { check = function()\n"
                                  "  local t, n = T, 0 while t[1] do t, n = t[1], n + 1 end\n"
                                  "  if n ~= 20000 or t.n ~= 0 then error 'x' end t.n = 1 end }");
    assert_int_equal(check(p, "{}"), OUTCOME_POLICY_ERROR);
    assert_has(said.why.text, "p.lua:4: " STATE "the table 'T'");
    assert_has(fault_of("local T = {} for i = 1, 300000 do T[i] = {} end "
                        "return tool 't' { check = function() return T end }"),
               "p.lua");
}
