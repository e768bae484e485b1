/*
 * Our pattern functions on any bytes: within the step budget they return
 * LuaJIT's results, and beyond it they end. The first line of the input is the
 * pattern, the second the replacement, the rest the subject.
 */
#include "pattern_pair.h"

#include "policy/policy_internal.h"

#define LONGEST_MS 2000u /* for all drivers together: far more than their steps take */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static lua_State *stock;

static struct str take_line(struct str *rest)
{
    const char *end = memchr(rest->at, '\n', rest->len);
    struct str line = {rest->at, end ? (size_t)(end - rest->at) : rest->len};
    size_t gone = line.len + (end != NULL);
    *rest = (struct str){rest->at + gone, rest->len - gone};
    return line;
}

static void run(struct sandbox *sandbox, sandbox_step *step, void *context)
{
    struct sandbox_context now = {.file = "fuzz"};
    struct why why = {""};
    if (sandbox_run(sandbox, LONGEST_MS, &now, step, context, &why) == OK)
        return;
    fprintf(stderr, "fuzz_lua_pattern: %s\n", why.text);
    abort();
}

/* Both states are kept: creating one takes longer than most patterns. */
static struct sandbox *both_states(void)
{
    static struct sandbox *sandbox;
    if (sandbox)
        return sandbox;
    stock = luaL_newstate();
    luaL_openlibs(stock);
    load_pattern_drivers(stock);
    sandbox = sandbox_new(65536, vocabulary_open);
    run(sandbox, prepare_sandbox, NULL);
    return sandbox;
}

static void compare(lua_State *L, void *context)
{
    size_t over_budget = 0;
    if (!pattern_pair_agrees(stock, L, context, &over_budget))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pattern_pair pair;
    char *exact = malloc(size ? size : 1);
    memcpy(exact, data, size);
    struct str rest = {exact, size};
    pair.pattern = take_line(&rest);
    pair.replacement = take_line(&rest);
    pair.subject = rest;
    pair.init = pair.replacement.len ? (unsigned char)pair.replacement.at[0] % 9 - 3 : 1;
    pair.most = (int)(size % 5);
    run(both_states(), compare, &pair);
    free(exact);
    return 0;
}
