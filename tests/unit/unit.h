/*
 * The frame of a unit program: TEST(name) { … } is a test, and main, which stands here, runs all tests in the
 * order of the file. FIXTURE names what runs before and after each test, GROUP what runs before and after
 * all. TEST_OF(name, struct story *t) is a test that is given what the fixture made.
 */
#ifndef TOOLGATE_UNIT_UNIT_H
#define TOOLGATE_UNIT_UNIT_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define UNIT_TESTS_MAX 128

static struct unit_program {
    CMFixtureFunction begin, end, begin_all, end_all;
    struct {
        int line;
        struct CMUnitTest test;
    } tests[UNIT_TESTS_MAX];
    size_t count;
} unit_program;

static void unit_add(const char *name, CMUnitTestFunction function, int line)
{
    if (unit_program.count == UNIT_TESTS_MAX)
        abort();
    unit_program.tests[unit_program.count].line = line;
    unit_program.tests[unit_program.count++].test = (struct CMUnitTest){.name = name, .test_func = function};
}

#define UNIT_ADD(name)                                                                                       \
    static void name(void **state);                                                                          \
    __attribute__((constructor)) static void add_##name(void)                                                \
    {                                                                                                        \
        unit_add(#name, name, __LINE__);                                                                     \
    }

#define TEST(name) UNIT_ADD(name) static void name(void **state __attribute__((unused)))

#define TEST_OF(name, made)                                                                                  \
    UNIT_ADD(name)                                                                                           \
    static void name##_of(made);                                                                             \
    static void name(void **state)                                                                           \
    {                                                                                                        \
        name##_of(*state);                                                                                   \
    }                                                                                                        \
    static void name##_of(made)

__attribute__((unused)) static void do_nothing(void)
{
}

/* A pair of functions as cmocka calls them; the first of them fails its test if something in it does. */
#define UNIT_PAIR(pair, before, after)                                                                       \
    static int begin_##pair(void **state)                                                                    \
    {                                                                                                        \
        (void)state;                                                                                         \
        before();                                                                                            \
        return 0;                                                                                            \
    }                                                                                                        \
    static int end_##pair(void **state)                                                                      \
    {                                                                                                        \
        (void)state;                                                                                         \
        after();                                                                                             \
        return 0;                                                                                            \
    }

#define UNIT_SET(pair, priority, member, before, after)                                                      \
    __attribute__((constructor(priority))) static void set_##pair(void)                                      \
    {                                                                                                        \
        unit_program.begin##member = before;                                                                 \
        unit_program.end##member = after;                                                                    \
    }

#define FIXTURE_OF(before, after) UNIT_SET(fixture, 1001, , before, after)

#define FIXTURE(before, after)                                                                               \
    UNIT_PAIR(fixture, before, after)                                                                        \
    UNIT_SET(fixture, 1001, , begin_fixture, end_fixture)

/* Of a header that several programs include: a program may have its own instead. */
#define USUAL_FIXTURE(before, after)                                                                         \
    UNIT_PAIR(usual, before, after)                                                                          \
    UNIT_SET(usual, 1000, , begin_usual, end_usual)

#define GROUP(before, after)                                                                                 \
    UNIT_PAIR(group, before, after)                                                                          \
    UNIT_SET(group, 1000, _all, begin_group, end_group)

/* The compiler may order the functions of a file as it likes. */
static int unit_by_line(const void *a, const void *b)
{
    const int *left = a, *right = b; /* the first member */
    return (*left > *right) - (*left < *right);
}

int main(void)
{
    struct CMUnitTest tests[UNIT_TESTS_MAX];
    qsort(unit_program.tests, unit_program.count, sizeof(unit_program.tests[0]), unit_by_line);
    for (size_t i = 0; i < unit_program.count; i++) {
        tests[i] = unit_program.tests[i].test;
        tests[i].setup_func = unit_program.begin;
        tests[i].teardown_func = unit_program.end;
    }
    return _cmocka_run_group_tests(program_invocation_short_name, tests, unit_program.count,
                                   unit_program.begin_all, unit_program.end_all);
}

#endif
