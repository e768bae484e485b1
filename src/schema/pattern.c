/*
 * PCRE2 behind the syntax of ECMA-262, and a fast path for simple expressions.
 * Everything of an expression lives in its arena. No JIT: it gains little on
 * short strings, and a hardened service may not map executable memory.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "schema/pattern.h"

#include "base/arena.h"
#include "schema/regex.h"

#include <pcre2.h>

#define OPTIONS                                                                                              \
    (PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_ALLOW_EMPTY_CLASS | PCRE2_MATCH_UNSET_BACKREF |                \
     PCRE2_NEVER_BACKSLASH_C)
#define TOO_LARGE 120 /* what pcre2_compile reports of code that is */
#define UNCOUNTED_MATCH_LIMIT                                                                                \
    100u /* for each start offset, where the items of an expression are not counted */
#define UNCOUNTED_STEPS 500u
#define HEAP_MAX_KIB    1024u
#define NESTING_MAX     100u /* parentheses */
#define NO_FAULT        100  /* what pcre2_compile reports on success */

struct pattern {
    struct str text;
    const struct fast_regex *fast; /* NULL: use PCRE2 */
    pcre2_code *code;
    pcre2_match_context *context;
    pcre2_match_data *data; /* scratch; one thread matches at a time */
    bool counted;           /* each item that is tried is reported to count_item */
};

static void *allocate(size_t size, void *arena)
{
    return arena_alloc(arena, size);
}

static void release(void *memory, void *arena)
{
    (void)memory, (void)arena; /* freed with the arena */
}

/* With a callout before each item, unless the code is too large for them. */
static enum err compile_code(struct pattern *p, struct str expression, pcre2_general_context *memory,
                             struct why *why)
{
    int code = TOO_LARGE;
    PCRE2_SIZE at;
    PCRE2_SPTR text = (PCRE2_SPTR)(expression.len ? expression.at : "");
    char reason[160];
    pcre2_compile_context *context = pcre2_compile_context_create(memory);
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    pcre2_set_parens_nest_limit(context, NESTING_MAX);
    p->counted = true;
    p->code = pcre2_compile(text, expression.len, OPTIONS | PCRE2_AUTO_CALLOUT, &code, &at, context);
    if (!p->code && code == TOO_LARGE) {
        p->counted = false;
        p->code = pcre2_compile(text, expression.len, OPTIONS, &code, &at, context);
    }
    if (p->code)
        return OK;
    if (pcre2_get_error_message(code, (PCRE2_UCHAR *)reason, sizeof(reason)) < 0)
        strcpy(reason, "it is not understood");
    return err_set(why, ERR_SCHEMA, "expected a regular expression, found '" STR_FMT "': %s (near byte %zu)",
                   STR_ARG(str_cut(p->text, 200)), reason, at);
}

enum err pattern_compile(struct arena *arena, struct str expression, struct pattern **out, struct why *why)
{
    *out = NULL;
    if (expression.len > PATTERN_MAX_BYTES)
        return err_set(why, ERR_LIMIT, "expected a regular expression of at most %u bytes, found %zu",
                       PATTERN_MAX_BYTES, expression.len);
    struct buf translated = buf_in(arena);
    enum err err = regex_ecma_to_pcre(expression, &translated, why);
    if (err)
        return err;
    struct pattern *p = ARENA_NEW(arena, struct pattern);
    p->text = expression;
    pcre2_general_context *memory = pcre2_general_context_create(allocate, release, arena);
    err = compile_code(p, buf_view(&translated), memory, why);
    if (err)
        return err;
    p->context = pcre2_match_context_create(memory);
    pcre2_set_heap_limit(p->context, HEAP_MAX_KIB);
    if (!p->counted)
        pcre2_set_match_limit(p->context, UNCOUNTED_MATCH_LIMIT);
    p->data = pcre2_match_data_create(1, memory);
    p->fast = regex_fast_path_compile(arena, expression);
    *out = p;
    return OK;
}

bool pattern_is_regex(struct str expression)
{
    struct arena *scratch = arena_new();
    struct buf translated = buf_in(scratch);
    int code = 0;
    PCRE2_SIZE at;
    bool ok = expression.len <= PATTERN_MAX_BYTES && regex_ecma_to_pcre(expression, &translated, NULL) == OK;
    if (ok) {
        pcre2_compile_context *context =
            pcre2_compile_context_create(pcre2_general_context_create(allocate, release, scratch));
        pcre2_set_parens_nest_limit(context, NESTING_MAX);
        pcre2_compile((PCRE2_SPTR)(translated.len ? translated.at : ""), translated.len, OPTIONS, &code, &at,
                      context);
        ok = code == PCRE2_ERROR_LOOKBEHIND_NOT_FIXED_LENGTH || code == NO_FAULT;
    }
    arena_free(scratch);
    return ok;
}

struct count {
    uint32_t left; /* steps */
    PCRE2_SIZE last;
};

/* An item is a step, and so is what the item before it went through. */
static int count_item(pcre2_callout_block *block, void *data)
{
    struct count *count = data;
    PCRE2_SIZE here = block->current_position;
    PCRE2_SIZE moved = here > count->last ? here - count->last : count->last - here;
    uint32_t steps = 1 + (uint32_t)moved / 32;
    count->last = here;
    if (steps > count->left)
        return PCRE2_ERROR_CALLOUT;
    count->left -= steps;
    return 0;
}

/* Of what is not counted: a few tries at each place, each of which may go through all that follows. */
static bool spend_uncounted(struct count *count, size_t len)
{
    uint64_t steps = UNCOUNTED_STEPS + (uint64_t)len * len / 64;
    if (steps > count->left)
        return false;
    count->left -= (uint32_t)steps;
    return true;
}

enum pattern_result pattern_match(const struct pattern *pattern, struct str subject, uint32_t *steps)
{
    struct count count = {.left = *steps};
    if (!subject.len) /* may be NULL */
        subject.at = "";
    if (subject.len > PATTERN_SUBJECT_MAX_BYTES)
        return PATTERN_TOO_COMPLEX;
    if (pattern->fast)
        return regex_fast_path_matches(pattern->fast, subject) ? PATTERN_MATCH : PATTERN_NO_MATCH;
    if (pattern->counted)
        pcre2_set_callout(pattern->context, count_item, &count);
    else if (!spend_uncounted(&count, subject.len))
        return PATTERN_TOO_COMPLEX;
    int n = pcre2_match(pattern->code, (PCRE2_SPTR)subject.at, subject.len, 0, 0, pattern->data,
                        pattern->context);
    *steps = count.left;
    if (n >= 0)
        return PATTERN_MATCH;
    return n == PCRE2_ERROR_NOMATCH ? PATTERN_NO_MATCH : PATTERN_TOO_COMPLEX;
}

size_t pattern_code_bytes(const struct pattern *pattern)
{
    size_t bytes = 0;
    pcre2_pattern_info(pattern->code, PCRE2_INFO_SIZE, &bytes);
    return bytes;
}
