/*
 * A policy as bytes: the first says whether the rest is its source, or the choices of a grammar that writes
 * Lua programs. What loads is run on arguments. Nothing may crash, outlive its deadline by far, or give a
 * value that breaks its own bounds.
 */
#include "base/arena.h"
#include "base/buf.h"
#include "json/build.h"
#include "json/parse.h"
#include "policy/policy_hooks.h"
#include "policy/policy_set.h"
#include "sandbox/bridge.h"
#include "require.h"

#define GRAMMAR_BIT       1u
#define DEADLINE_MS       5u
#define MEMORY_KB         4096u
#define DEPTH_MAX         6u
#define PROGRAM_MAX_BYTES 16384u

struct choices {
    const uint8_t *at;
    size_t left;
    struct buf out;
    unsigned depth;
};

static unsigned choose(struct choices *c, unsigned count)
{
    if (!c->left)
        return 0;
    c->left--;
    return *c->at++ % count;
}

static const char *const names[] = {"args",      "call",      "x",   "y",         "f",
                                    "args.list", "args.text", "x.y", "call.facts"};
static const char *const atoms[] = {
    "nil",   "true",          "0",        "1",       "-1",        "2^53",      "1e308",       "0/0", "''",
    "'abc'", "('x'):rep(99)", "{}",       "null",    "args",      "args.list", "args.object", "x",   "y",
    "f",     "'%d+'",         "'[%w_]*'", "'(()a)'", "args.text", "...",
};
static const char *const functions[] = {
    "pcall",
    "unpack",
    "select",
    "type",
    "tostring",
    "tonumber",
    "next",
    "pairs",
    "ipairs",
    "error",
    "assert",
    "string.rep",
    "string.find",
    "string.gsub",
    "string.match",
    "string.format",
    "string.byte",
    "string.char",
    "string.sub",
    "table.concat",
    "table.insert",
    "table.remove",
    "table.sort",
    "math.floor",
    "math.max",
    "bit.band",
    "bit.lshift",
    "set",
    "glob",
    "time",
    "date",
    "duration",
    "url",
    "newest",
    "repair",
    "refuse",
    "ask",
    "ok",
    "partial",
    "tool_return",
    "f",
    "string.gmatch",

    "wants_all",
    "host_in",
    "string.reverse",
    "garbage",
    "transient",
    "retry",
};
static const char *const operators[] = {"+", "-", "*", "/", "%", "^", "..", "==", "<", "and", "or", "~="};

static void put_expression(struct choices *c);

static void put_list(struct choices *c)
{
    for (unsigned i = 0, count = choose(c, 4); i < count; i++) {
        if (i)
            buf_text(&c->out, ", ");
        put_expression(c);
    }
}

static void put_name(struct choices *c)
{
    buf_text(&c->out, names[choose(c, sizeof(names) / sizeof(names[0]))]);
}

static void put_block(struct choices *c);

static void put_call(struct choices *c)
{
    buf_text(&c->out, functions[choose(c, sizeof(functions) / sizeof(functions[0]))]);
    buf_byte(&c->out, '(');
    put_list(c);
    buf_byte(&c->out, ')');
}

static void put_expression(struct choices *c)
{
    bool deep = ++c->depth > DEPTH_MAX || c->out.len > PROGRAM_MAX_BYTES;
    switch (deep ? 0 : choose(c, 8)) {
    case 1:
    case 2:
        put_call(c);
        break;
    case 3:
        buf_byte(&c->out, '(');
        put_expression(c);
        buf_printf(&c->out, " %s ", operators[choose(c, sizeof(operators) / sizeof(operators[0]))]);
        put_expression(c);
        buf_byte(&c->out, ')');
        break;
    case 4:
        buf_text(&c->out, "{ ");
        if (choose(c, 2)) {
            buf_text(&c->out, "a = ");
            put_expression(c);
            buf_text(&c->out, ", ");
        }
        put_list(c);
        buf_text(&c->out, " }");
        break;
    case 5:
        buf_text(&c->out, "function(x, ...) ");
        put_block(c);
        buf_text(&c->out, " end");
        break;
    case 6:
        put_name(c);
        buf_byte(&c->out, '[');
        put_expression(c);
        buf_byte(&c->out, ']');
        break;
    default:
        buf_text(&c->out, atoms[choose(c, sizeof(atoms) / sizeof(atoms[0]))]);
    }
    c->depth--;
}

static void put_statement(struct choices *c)
{
    switch (choose(c, 8)) {
    case 0:
        buf_text(&c->out, "local x, y = ");
        break;
    case 1:
        put_name(c);
        buf_text(&c->out, " = ");
        break;
    case 2:
        buf_text(&c->out, "for i = 1, 20 do ");
        put_block(c);
        buf_text(&c->out, " end ");
        return;
    case 3:
        buf_text(&c->out, "for x, y in pairs(");
        put_expression(c);
        buf_text(&c->out, ") do ");
        put_block(c);
        buf_text(&c->out, " end ");
        return;
    case 4:
        buf_text(&c->out, "if ");
        put_expression(c);
        buf_text(&c->out, " then ");
        put_block(c);
        buf_text(&c->out, " end ");
        return;
    case 5:
        buf_text(&c->out, "do return ");
        put_list(c);
        buf_text(&c->out, " end ");
        return;
    case 6:
        buf_text(&c->out, "local function f(x, ...) ");
        put_block(c);
        buf_text(&c->out, " end ");
        return;
    default:
        put_call(c);
        buf_text(&c->out, "; ");
        return;
    }
    put_expression(c);
    buf_text(&c->out, "; ");
}

static void put_block(struct choices *c)
{
    if (++c->depth <= DEPTH_MAX)
        for (unsigned i = 0, count = choose(c, 5); i < count && c->out.len < PROGRAM_MAX_BYTES; i++)
            put_statement(c);
    c->depth--;
}

/* A policy whose hooks are one program each. */
static void put_program(struct choices *c)
{
    static const char *const hooks[] = {"normalise", "check", "run", "result", "prepare"};
    buf_text(&c->out, "local x, y, f\nreturn tool 't' { schema = json '{\"type\":\"object\"}',\n");
    for (size_t i = 0; i < sizeof(hooks) / sizeof(hooks[0]); i++) {
        buf_printf(&c->out, "%s = function(args, call, ...) local x, y, f ", hooks[i]);
        put_block(c);
        buf_text(&c->out, "return ");
        put_expression(c);
        buf_text(&c->out, " end,\n");
    }
    buf_text(&c->out, "}\n");
}

/* What comes out can be written, and is within the bridge's bounds. */
static void check_value(const struct json *value, const struct json *given)
{
    if (value)
        REQUIRE(bridge_size(value) <= BRIDGE_MAX_BYTES + bridge_size(given));
}

static void run_hooks(const struct policy *policy, struct arena *arena)
{
    static const char text[] = "{\"list\":[1,\"a\",[],{}],\"text\":\"some text "
                               "12\",\"object\":{\"n\":12345678901234567890,\"x\":null}}";
    struct json args;
    struct json_error fault;
    struct policy_call call = {.tool = STR("t"), .session = STR("s"), .goal = STR("all orders")};
    struct policy_outcome outcome;
    REQUIRE(json_parse(arena, STR_LIT(text), NULL, &args, &fault) == OK);
    policy_normalise(policy, &call, &args, arena, &outcome);
    if (outcome.kind == OUTCOME_PASS)
        check_value(outcome.args, &args);
    policy_check(policy, &call, &args, arena, &outcome);
    check_value(outcome.suggest, &args);
    policy_run(policy, &call, &args, arena, &outcome);
    check_value(outcome.value, &args);
    policy_judge(policy, &call, &args, &args, arena, &outcome);
    check_value(outcome.facts, &args);
    policy_prepare(policy, &call, &args, arena, &outcome);
    check_value(outcome.value, &args);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_new();
    struct policy_load_errors errors = {.arena = arena};
    struct policy_set_options options = {.deadline_ms = DEADLINE_MS, .memory_kb = MEMORY_KB};
    struct policy_set *set = NULL;
    struct choices c = {.at = data + 1, .left = size ? size - 1 : 0};
    struct str source = {(const char *)data + 1, size ? size - 1 : 0};
    if (size && data[0] & GRAMMAR_BIT) {
        put_program(&c);
        source = buf_view(&c.out);
    }
    enum err err = policy_set_load_string(STR_LIT("p.lua"), source, &options, &set, &errors);
    REQUIRE((err == OK) == (set != NULL));
    REQUIRE(err == OK || errors.count > 0);
    for (size_t i = 0; set && i < policy_set_count(set); i++)
        run_hooks(policy_set_at(set, i), arena);
    policy_set_free(set);
    buf_clear(&c.out);
    arena_free(arena);
    return 0;
}
