/* Runs each function that reads a peer's text over texts that are hard for it, at two sizes. Alone it says
 * only that none crashes; under callgrind (tests/spec/bench/linear_spec.lua) each run is counted by itself,
 * in the order in which LINEAR=names prints them. */
#include "../../fuzz/linear.h"

#include <stdio.h>
#include <stdlib.h>

#define SIZE 4000u

static const char *const units[] = {
    "-",         "a",           "aA",           "0",      "12:3",    "a-",
    "{",         "[",           "\"",           "\\",     "a=",      "password",
    "password=", "sk-",         "ey.",          "AKIA",   "<",       "& ",
    "'",         ", ",          "//",           "/*",     "```",     "{\"a\":",
    "\\u0061",   "\\n ",        "\xe2\x80\x8b", "Error ", "a@b.",    "ignore all ",
    "<|im",      "-----BEGIN ", "\xff",         "[[1,",   "http://", "Bearer ",
};
#define UNITS (sizeof(units) / sizeof(units[0]))

void linear_measured(const struct linear_case *c, struct arena *arena, struct str text);
__attribute__((noinline)) void linear_measured(const struct linear_case *c, struct arena *arena,
                                               struct str text)
{
    c->read(arena, text);
}

static void run(const struct linear_case *c, const char *unit, bool names)
{
    for (unsigned times = 1; times <= 2; times++) {
        struct arena *arena = arena_new();
        struct str text = linear_text(arena, str_of(unit), (size_t)times * SIZE);
        linear_measured(c, arena, text);
        arena_free(arena);
    }
    if (names)
        printf("%s of '%s'\n", c->name, unit);
}

int main(void)
{
    bool names = getenv("LINEAR") != NULL;
    for (size_t i = 0; i < LINEAR_CASES; i++)
        for (size_t k = 0; k < UNITS; k++)
            run(&linear_cases[i], units[k], names);
    if (!names)
        printf("[  PASSED  ] %zu test(s).\n", LINEAR_CASES);
    return 0;
}
