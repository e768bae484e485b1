/*
 * Properties of the bridge, on random values and on the recorded corpus if it is
 * beside the project: an unchanged value keeps its bytes, a change affects one
 * place, moved values keep their bytes, and anything that a hook returns is
 * either a value or an error. TOOLGATE_BRIDGE_ROUNDS sets the number of rounds.
 */
#include "policy/policy_support.h"
#include "random.h"

#include "json/diff.h"

#include <glob.h>

#define ROUNDS_DEFAULT 3000
#define CORPUS         "../shared/data/corpus/calls-*.ndjson"

static int rounds(void)
{
    const char *given = getenv("TOOLGATE_BRIDGE_ROUNDS");
    return given ? atoi(given) : ROUNDS_DEFAULT;
}

/* One arena per round, which also holds its error messages. */
static struct arena *outer;

static void begin_round(void)
{
    outer = arena;
    arena = arena_new();
}

static void end_round(void)
{
    arena_free(arena);
    arena = outer;
}

/* ---- random JSON ---------------------------------------------------------------------------- */

static void random_json(struct buf *out, int depth)
{
    static const char *const scalars[] = {"null",
                                          "true",
                                          "false",
                                          "0",
                                          "-1",
                                          "1.10",
                                          "1e3",
                                          "12345678901234567890",
                                          "0.1",
                                          "\"\"",
                                          "\"a b\"",
                                          "\"\\u00e9\\n\"",
                                          "1E400",
                                          "-0.0",
                                          "[ ]",
                                          "{ }",
                                          "9007199254740993",
                                          "\"\\ud83d\\ude00\"",
                                          "0.30000000000000004"};
    unsigned kind = depth > 4 ? 0 : below(4), count = below(5);
    if (kind < 2) {
        buf_text(out, scalars[below(sizeof(scalars) / sizeof(scalars[0]))]);
        return;
    }
    buf_byte(out, kind == 2 ? '[' : '{');
    for (unsigned i = 0; i < count; i++) {
        buf_text(out, i ? (below(2) ? "," : " , ") : "");
        if (kind == 3)
            buf_printf(out, "\"k%u\":%s", (i * 7 + 3) % 11, below(3) ? "" : " ");
        random_json(out, depth + 1);
    }
    buf_byte(out, kind == 2 ? ']' : '}');
}

static const char *random_text(void)
{
    struct buf text = buf_in(arena);
    random_json(&text, 0);
    return text_of(buf_view(&text));
}

static const char *wrapped(const char *format, const char *value)
{
    return arena_printf(arena, format, value).at;
}

static void must_pass(const struct policy *policy, const struct json *args)
{
    policy_normalise(policy, &a_call, args, arena, &said);
    if (said.kind != OUTCOME_PASS)
        fail_msg("%s: %s", json_of(args), said.why.text);
}

/* ---- identity, single changes, and paths ----------------------------------------------------------- */

static const char *const copying =
    "local function copy(v)\n  if type(v) ~= 'table' then return v end\n"
    "  local c = #v > 0 and array {} or {}\n  for k, x in pairs(v) do c[k] = copy(x) end return c\nend\n"
    "return tool 't' { normalise = function(args) if args.copy then return copy(args) end return args end }";

TEST(untouched_or_copied_it_is_the_same)
{
    const struct policy *same = load(copying);
    for (int i = rounds(); i > 0; i--) {
        begin_round();
        const struct json *args =
            value_of(wrapped(i % 2 ? "{\"copy\":true,\"v\":%s}" : "{\"v\":%s}", random_text()));
        must_pass(same, args);
        if (i % 2 ? !json_equal(said.args, args) : said.args != args)
            fail_msg("%s became %s", json_of(args), json_of(said.args));
        assert_string_equal(json_of(said.args), json_of(args));
        end_round();
    }
}

/* Walks down to any place in the value: its JSON Pointer, and for Lua a list of keys and positions. */
static void random_place(const struct json *v, struct buf *pointer, struct buf *keys)
{
    bool open = (v->type == JSON_ARRAY || v->type == JSON_OBJECT) && v->len && below(5);
    if (!open)
        return;
    uint32_t i = below(v->len);
    if (v->type == JSON_ARRAY) {
        buf_printf(pointer, "/%u", i);
        buf_printf(keys, ",%u", i + 1);
        random_place(&v->items[i], pointer, keys);
    } else {
        buf_printf(pointer, "/" STR_FMT, STR_ARG(v->members[i].key));
        buf_printf(keys, ",\"" STR_FMT "\"", STR_ARG(v->members[i].key));
        random_place(&v->members[i].value, pointer, keys);
    }
}

TEST(one_change_changes_one_place)
{
    const struct policy *setting =
        with_hook("normalise", "args",
                  "local at, last = args, #args.path\n"
                  "for i = 1, last - 1 do at = at[args.path[i]] end\n at[args.path[last]] = 'changed'");
    for (int i = rounds(); i > 0; i--) {
        begin_round();
        struct buf pointer = buf_in(arena), keys = buf_in(arena);
        const char *text = random_text();
        random_place(value_of(text), &pointer, &keys);
        const struct json *args = value_of(
            arena_printf(arena, "{\"path\":[\"v\"" STR_FMT "],\"v\":%s}", STR_ARG(buf_view(&keys)), text).at);
        must_pass(setting, args);
        struct json patch = json_patch(arena, args, said.args);
        assert_string_equal(json_of(&patch), arena_printf(arena,
                                                          "[{\"op\":\"replace\",\"path\":\"/v" STR_FMT
                                                          "\",\"value\":\"changed\"}]",
                                                          STR_ARG(buf_view(&pointer)))
                                                 .at);
        end_round();
    }
}

static void assert_raw(const struct json *now, const struct json *before)
{
    bool table = before->type == JSON_ARRAY || before->type == JSON_OBJECT;
    assert_true(json_equal(now, before));
    if (table)
        assert_string_equal(json_of(now), json_of(before));
}

TEST(moved_values_keep_their_bytes)
{
    const struct policy *turning =
        with_hook("normalise", "args",
                  "local turned = array {}\n for i = #args.l, 1, -1 do turned[#turned + 1] = args.l[i] end\n"
                  "args.l = { turned, { moved = args.v } } args.v = nil");
    for (int i = rounds(); i > 0; i--) {
        begin_round();
        struct buf list = buf_in(arena);
        for (unsigned n = below(4); n > 0; n--) {
            random_json(&list, 2);
            buf_text(&list, n > 1 ? "," : "");
        }
        const struct json *args = value_of(
            arena_printf(arena, "{\"l\":[" STR_FMT "],\"v\":%s}", STR_ARG(buf_view(&list)), random_text())
                .at);
        const struct json *before = json_get_text(args, "l");
        must_pass(turning, args);
        const struct json *after = &json_get_text(said.args, "l")->items[0];
        assert_int_equal(after->len, before->len);
        for (uint32_t k = 0; k < before->len; k++)
            assert_raw(&after->items[k], &before->items[before->len - 1 - k]);
        assert_raw(json_get_text(&json_get_text(said.args, "l")->items[1], "moved"),
                   json_get_text(args, "v"));
        end_round();
    }
}

/* ---- arbitrary return values
 * ----------------------------------------------------------------------------------- */

/* Values of all kinds, many without a JSON equivalent, some cyclic. */
static const char *const nonsense =
    "local function make(n, made)\n"
    "  local state = n\n"
    "  local function below(m) state = (state * 1103515245 + 12345) % 2147483648 return "
    "math.floor(state / 65536) % m end\n"
    "  local function scalar()\n"
    "    local all = { 1, -1.5, 'text', true, false, null, 1 / 0, 0 / 0, 2 ^ 53 + 10, 2 ^ 53, '\\255\\254' "
    "}\n"
    "    return all[below(11) + 1]\n"
    "  end\n"
    "  local function any(depth)\n"
    "    local kind = below(14)\n"
    "    if depth > 5 or kind < 4 then return scalar() end\n"
    "    if kind == 4 and #made > 0 then return made[below(#made) + 1] end\n"
    "    if kind == 5 and below(6) == 0 then return function() end end\n"
    "    if kind == 6 and below(6) == 0 then return refuse('a', 'b') end\n"
    "    if kind == 7 and below(6) == 0 then local t = {} for i = 1, below(300) do t = { t } end return t "
    "end\n"
    "    local t = below(4) == 0 and array {} or {}\n"
    "    made[#made + 1] = t\n"
    "    for i = 1, below(4) do\n"
    "      local key = below(8)\n"
    "      if key == 0 then t[below(6)] = any(depth + 1)\n"
    "      elseif key == 1 then t[below(3) / 2] = any(depth + 1)\n"
    "      elseif key == 2 then t[true] = any(depth + 1)\n"
    "      elseif key < 5 then t['k' .. below(5)] = any(depth + 1)\n"
    "      else t[#t + 1] = any(depth + 1) end\n"
    "    end\n"
    "    return t\n"
    "  end\n"
    "  return any(0)\n"
    "end\n"
    "return tool 't' {\n"
    "  run = function(args) return { v = make(args.n, { args.a, args.a.l }) } end,\n"
    "  normalise = function(args) args.v = make(args.n, { args.a, args.a.l }) end,\n"
    "  result = function(result) return ok { facts = { v = make(result.n, { result.a, result.a.l }) } } "
    "end,\n"
    "}";

/* The result is JSON that parses to itself, or an error that names the place. */
static bool is_value_or_sentence(const struct json *value, const char *what)
{
    if (said.kind == OUTCOME_POLICY_ERROR) {
        assert_has(said.why.text, what);
        assert_has(said.why.text, "p.lua:");
        return false;
    }
    const char *text = json_of(value);
    assert_true(json_equal(value_of(text), value));
    return true;
}

TEST(invalid_results_are_refused_with_a_message)
{
    const struct policy *policy = load(nonsense);
    int fine = 0, all = rounds();
    for (int i = 0; i < all; i++) {
        begin_round();
        const struct json *args = value_of(
            arena_printf(arena, "{\"n\":%d,\"a\":{\"l\":[1.0,{ \"x\":1E1}],\"id\":9007199254740993}}", i).at);
        policy_run(policy, &a_call, args, arena, &said);
        fine += is_value_or_sentence(said.value, "result.v");
        policy_normalise(policy, &a_call, args, arena, &said);
        fine += is_value_or_sentence(said.args, "arguments.v");
        policy_judge(policy, &a_call, args, args, arena, &said);
        fine += is_value_or_sentence(said.facts, "facts.v");
        end_round();
    }
    print_message("%d of %d were values\n", fine, 3 * all);
    assert_true(fine > all / 2 && fine < 3 * all - all / 2);
}

/* ---- the corpus ------------------------------------------------------------------------------------ */

static const struct policy *shuffling(void)
{
    return with_hook("normalise", "args",
                     "if not args.move then return args end\n"
                     "local moved = { arguments = args.arguments } args.arguments = nil args.moved = moved");
}

static void try_call(const struct policy *policy, struct str line)
{
    begin_round();
    struct json *sent = ARENA_NEW(arena, struct json), args = {0};
    struct json_error fault;
    const struct json *given = NULL;
    if (json_parse(arena, line, NULL, sent, &fault) == OK)
        given = json_get_text(sent, "arguments");
    if (json_is(given, JSON_OBJECT)) {
        const char *text = json_of(given);
        args = *value_of(wrapped("{\"arguments\":%s}", text));
        must_pass(policy, &args);
        assert_ptr_equal(said.args, &args);
        args = *value_of(wrapped("{\"move\":1,\"arguments\":%s}", text));
        must_pass(policy, &args);
        assert_string_equal(json_of(said.args), wrapped("{\"move\":1,\"moved\":{\"arguments\":%s}}", text));
    }
    end_round();
}

TEST(recorded_calls_survive_a_round_trip)
{
    glob_t found;
    size_t room = 0, calls = 0;
    char *line = NULL;
    if (glob(CORPUS, 0, NULL, &found) != 0) {
        print_message("%s is not here: skipped\n", CORPUS);
        skip();
    }
    const struct policy *policy = shuffling();
    for (size_t i = 0; i < found.gl_pathc; i++) {
        FILE *file = fopen(found.gl_pathv[i], "r");
        assert_non_null(file);
        for (ssize_t len; (len = getline(&line, &room, file)) > 0; calls++)
            try_call(policy, (struct str){line, (size_t)len});
        fclose(file);
    }
    print_message("%zu recorded calls\n", calls);
    assert_true(calls > 1000);
    free(line);
    globfree(&found);
}
