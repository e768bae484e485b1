/* One table: each word with its kind of outcome and the hooks that may return it. Strings are copied into the
 * arena of the call. */
#include "policy/policy_internal.h"
#include "base/arena.h"
#include "json/build.h"
#include "json/write.h"
#include "sandbox/bridge.h"
#include "sandbox/read_only_proxy.h"
#include "sandbox/sandbox.h"
#include "policy/policy_hooks.h"

#define IN(hook) (1u << (hook))

static const char *const hook_names[HOOK_COUNT] = {
    [HOOK_PREPARE] = "prepare", [HOOK_NORMALISE] = "normalise", [HOOK_CHECK] = "check",
    [HOOK_RUN] = "run",         [HOOK_RESULT] = "result",
};

static const struct {
    const char *word;
    enum policy_outcome_kind kind;
    unsigned hooks;
} outcomes[] = {
    {"repair", OUTCOME_REPAIR, IN(HOOK_NORMALISE) | IN(HOOK_CHECK) | IN(HOOK_RUN)},
    {"refuse", OUTCOME_REFUSE, IN(HOOK_CHECK) | IN(HOOK_RUN)},
    {"ask", OUTCOME_ASK, IN(HOOK_CHECK) | IN(HOOK_RUN) | IN(HOOK_RESULT)},
    {"retry", OUTCOME_RETRY, IN(HOOK_RUN) | IN(HOOK_RESULT)},
    {"value", OUTCOME_VALUE, IN(HOOK_RUN)},
    {"ok", OUTCOME_OK, IN(HOOK_RESULT)},
    {"partial", OUTCOME_PARTIAL, IN(HOOK_RESULT)},
    {"garbage", OUTCOME_GARBAGE, IN(HOOK_RESULT)},
    {"broken", OUTCOME_BROKEN, IN(HOOK_RESULT)},
    {"transient", OUTCOME_TRANSIENT, IN(HOOK_RUN) | IN(HOOK_RESULT)},
    {"failed", OUTCOME_FAILED, IN(HOOK_RUN) | IN(HOOK_RESULT)},
};

#define OUTCOME_COUNT (sizeof(outcomes) / sizeof(outcomes[0]))

const char *outcome_hook_name(enum policy_hook hook)
{
    return hook_names[hook];
}

void outcome_init(struct policy_outcome *outcome, struct arena *arena)
{
    char *why = outcome->why.text;
    memset(outcome, 0,
           offsetof(struct policy_outcome, why)); /* why.text is 2 KB: clearing its first byte is enough */
    why[0] = '\0';
    outcome->after_s = -1;
    outcome->cost = -1;
    problems_init(&outcome->problems, arena);
}

bool outcome_is(lua_State *L, int at)
{
    return sandbox_mark(L, at) == MARK_OUTCOME;
}

static struct str read_text(lua_State *L, int at, const char *name, struct arena *arena)
{
    struct str s = STR_NONE;
    lua_getfield(L, at, name);
    if (lua_isstring(L, -1)) {
        s.at = lua_tolstring(L, -1, &s.len);
        bridge_charge(L, name, s.len);
        s = arena_dup(arena, s);
    }
    lua_pop(L, 1);
    return s;
}

static const struct json *read_json(lua_State *L, int at, const char *name, struct arena *arena)
{
    const struct json *value = NULL;
    lua_getfield(L, at, name);
    if (!lua_isnil(L, -1))
        value = bridge_read(L, -1, name, NULL, arena);
    lua_pop(L, 1);
    return value;
}

static struct str json_text(const struct json *value, struct arena *arena)
{
    struct buf out = buf_in(arena);
    if (value)
        json_write(&out, value);
    return buf_view(&out);
}

/* `suggest` is a value for this path, or an object of arguments to change. */
static void read_problem(lua_State *L, int at, struct arena *arena, struct policy_outcome *outcome)
{
    struct str code = read_text(L, at, "code", arena);
    const struct json *suggest = read_json(L, at, "suggest", arena);
    struct problem problem = {.path = read_text(L, at, "path", arena),
                              .code = code.len ? code.at : "invalid",
                              .message = read_text(L, at, "message", arena),
                              .expected = json_text(read_json(L, at, "expected", arena), arena),
                              .got = json_text(read_json(L, at, "got", arena), arena)};
    if (suggest && suggest->type != JSON_OBJECT)
        problem.suggestion = json_text(suggest, arena);
    else if (suggest && !outcome->suggest)
        outcome->suggest = suggest;
    problems_add(&outcome->problems, problem);
}

static void read_fields(lua_State *L, int at, struct arena *arena, struct policy_outcome *outcome)
{
    outcome->code = read_text(L, at, "code", arena);
    outcome->detail = read_text(L, at, "detail", arena);
    outcome->hint = read_text(L, at, "hint", arena);
    outcome->coverage = read_text(L, at, "coverage", arena);
    outcome->choices = read_json(L, at, "choices", arena);
    outcome->facts = read_json(L, at, "facts", arena);
    outcome->follow_up = read_json(L, at, "follow_up", arena);
    outcome->next_args = read_json(L, at, "next_args", arena);
    outcome->content = read_json(L, at, "content", arena);
    outcome->metadata = read_json(L, at, "metadata", arena);
    lua_getfield(L, at, "after_s");
    if (lua_isnumber(L, -1))
        outcome->after_s = (int64_t)(lua_tonumber(L, -1) + 0.999);
    lua_pop(L, 1);
    lua_getfield(L, at, "cost");
    if (lua_isnumber(L, -1))
        outcome->cost = lua_tonumber(L, -1);
    lua_pop(L, 1);
    if (outcome->kind == OUTCOME_VALUE) {
        struct json *null = ARENA_NEW(arena, struct json);
        *null = json_null();
        outcome->value = read_json(L, at, "value", arena);
        outcome->value = outcome->value || outcome->content ? outcome->value : null;
    }
}

/* Raises an error that lists what the hook may return. */
static void raise_not_allowed(lua_State *L, enum policy_hook hook, const char *word)
{
    struct buf allowed = {0};
    for (size_t i = 0; i < OUTCOME_COUNT; i++) {
        const char *name = outcomes[i].kind == OUTCOME_VALUE                        ? "tool_return"
                           : outcomes[i].kind == OUTCOME_ASK && hook == HOOK_RESULT ? "need_user"
                                                                                    : outcomes[i].word;
        if (outcomes[i].hooks & IN(hook))
            buf_printf(&allowed, ", %s", name);
    }
    lua_pushlstring(L, allowed.at ? allowed.at : "", allowed.len);
    buf_clear(&allowed);
    luaL_error(L, "%s returned %s: expected nothing%s", hook_names[hook], word ? word : "an unknown table",
               lua_tostring(L, -1));
}

void outcome_read(lua_State *L, int at, enum policy_hook hook, struct arena *arena,
                  struct policy_outcome *outcome)
{
    size_t i = 0;
    lua_getfield(L, at, "kind");
    const char *word = lua_tostring(L, -1);
    while (i < OUTCOME_COUNT && (!word || strcmp(outcomes[i].word, word) != 0))
        i++;
    if (i == OUTCOME_COUNT || !(outcomes[i].hooks & IN(hook)))
        raise_not_allowed(L, hook, word);
    lua_pop(L, 1);
    outcome->kind = outcomes[i].kind;
    read_fields(L, at, arena, outcome);
    if (outcome->kind != OUTCOME_REPAIR)
        return;
    lua_getfield(L, at, "problems");
    int list = lua_gettop(L);
    proxy_unwrap(L, list);
    size_t count = lua_objlen(L, list);
    for (size_t n = 1; n <= count; n++) {
        sandbox_check_deadline(L);
        lua_rawgeti(L, list, (int)n);
        read_problem(L, lua_gettop(L), arena, outcome);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}
