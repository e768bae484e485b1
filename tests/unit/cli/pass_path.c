/*
 * A call that passes does not call malloc: its memory is an arena kept from the
 * call before, and Lua has its own heap. The test counts malloc and its
 * relatives in the whole process.
 */

#include "unit.h"
#include "toolgate-bench/subjects.h"

#define WARM_UP 3000u /* Lua's heap has reached its size */
#define CALLS   3000u

#ifdef __SANITIZE_ADDRESS__

/* The sanitizer replaces the allocator. */
TEST(pass_without_malloc)
{
    skip();
}

#else

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);

static uint64_t asked;

void *malloc(size_t size)
{
    asked++;
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    asked++;
    return __libc_calloc(count, size);
}

void *realloc(void *block, size_t size)
{
    asked++;
    return __libc_realloc(block, size);
}

static uint64_t asked_by(struct subjects *subjects, enum subject_kind kind)
{
    struct why why = {""};
    if (subjects_do(subjects, kind, WARM_UP, &why) != OK)
        fail_msg("%s", why.text);
    uint64_t before = asked;
    assert_int_equal(subjects_do(subjects, kind, CALLS, &why), OK);
    return asked - before;
}

TEST(pass_without_malloc)
{
    struct subjects *subjects;
    struct subjects_load load;
    struct why why = {""};
    if (subjects_new(1, &subjects, &load, &why) != OK)
        fail_msg("%s", why.text);
    assert_true(asked > 0); /* the counter works */
    for (int kind = 0; kind < SUBJECT_COUNT; kind++) {
        uint64_t count = asked_by(subjects, (enum subject_kind)kind);
        if (count)
            fail_msg("%u calls of kind %d asked malloc %llu times", CALLS, kind, (unsigned long long)count);
    }
    subjects_free(subjects);
}

#endif
