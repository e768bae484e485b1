/*
 * Our pattern functions against LuaJIT's, on random patterns over small
 * alphabets, so that matches are frequent: the same results and messages.
 * TOOLGATE_PATTERN_PAIRS sets the number of pairs; each goes through every
 * driver of ../fuzz/pattern_pair.h.
 */
#include "policy/policy_support.h"
#include "random.h"

#include "../fuzz/pattern_pair.h"

#include "policy/policy_internal.h"

#define PAIRS_DEFAULT 50000
#define PAIRS_A_RUN   1000 /* in one sandbox_run, within its deadline */

static bool one_in(unsigned n)
{
    return below(n) == 0;
}

/* ---- random patterns -------------------------------------------------------- */

static const char letters[] = "aaabbbcdAB1 2-.\0\xff\xe9%()[]^$";

static void any_letter(struct buf *out)
{
    buf_byte(out, letters[below(sizeof(letters) - 1)]);
}

static void any_class(struct buf *out)
{
    static const char classes[] = "aadwwslupcgxzADWSLUPCGXZ%.()[]^$-+*?b0q";
    buf_byte(out, '%');
    buf_byte(out, classes[below(sizeof(classes) - 1)]);
}

static void set_member(struct buf *out)
{
    switch (below(6)) {
    case 0:
        any_class(out);
        break;
    case 1:
        buf_text(out, below(2) ? "a-c" : "1-9");
        break;
    case 2: /* any range, also one the wrong way round or into a class */
        any_letter(out);
        buf_byte(out, '-');
        any_letter(out);
        break;
    case 3:
        buf_text(out, below(2) ? "-" : "^");
        break;
    default:
        any_letter(out);
    }
}

static void any_set(struct buf *out)
{
    buf_byte(out, '[');
    buf_text(out, one_in(3) ? "^" : "");
    buf_text(out, one_in(8) ? "]" : "");
    for (unsigned n = 1 + below(3); n > 0; n--)
        set_member(out);
    buf_text(out, one_in(40) ? "" : "]");
}

static void one_character(struct buf *out)
{
    switch (below(7)) {
    case 0:
        any_class(out);
        break;
    case 1:
        any_set(out);
        break;
    case 2:
        buf_byte(out, '.');
        break;
    default:
        any_letter(out);
    }
}

static void any_items(struct buf *out, int depth);

static void any_capture(struct buf *out, int depth)
{
    buf_byte(out, '(');
    if (!one_in(4) && depth < 3)
        any_items(out, depth + 1);
    buf_text(out, one_in(30) ? "" : ")");
}

static void any_balance(struct buf *out)
{
    static const char *const pairs[] = {"%b()", "%bab", "%baa", "%b[]", "%b(", "%b", "%b%a"};
    buf_text(out, pairs[one_in(8) ? below(7) : below(4)]);
}

static void any_frontier(struct buf *out)
{
    buf_text(out, "%f");
    if (one_in(12))
        any_letter(out);
    else
        any_set(out);
}

static void any_item(struct buf *out, int depth)
{
    unsigned kind = below(16);
    if (kind < 2)
        any_capture(out, depth);
    else if (kind == 2)
        any_balance(out);
    else if (kind == 3)
        any_frontier(out);
    else if (kind == 4)
        buf_printf(out, "%%%u", one_in(6) ? below(10) : 1 + below(2));
    else if (kind == 5 && one_in(10))
        buf_text(out, below(2) ? ")" : "%");
    else
        one_character(out);
    if (kind > 5 && one_in(2))
        buf_byte(out, "*+-?"[below(4)]);
}

static void any_items(struct buf *out, int depth)
{
    for (unsigned n = 1 + below(4); n > 0; n--)
        any_item(out, depth);
}

/* Sometimes one item many times, for the bounds of depth and captures. */
static void many_items(struct buf *out)
{
    struct buf item = buf_in(arena);
    any_item(&item, 3);
    for (unsigned n = 20 + below(200); n > 0; n--)
        buf_str(out, buf_view(&item));
}

static struct str any_pattern(void)
{
    struct buf out = buf_in(arena);
    buf_text(&out, one_in(6) ? "^" : "");
    if (one_in(300))
        many_items(&out);
    else if (!one_in(100))
        any_items(&out, 0);
    buf_text(&out, one_in(6) ? "$" : "");
    return buf_view(&out);
}

static struct str any_subject(void)
{
    struct buf out = buf_in(arena);
    unsigned alphabet = one_in(2) ? 8 : sizeof(letters) - 1;
    for (unsigned n = one_in(50) ? 250 : below(16); n > 0; n--)
        buf_byte(&out, letters[below(alphabet)]);
    return buf_view(&out);
}

static struct str any_replacement(void)
{
    static const char *const pieces[] = {"x", "%0", "%1", "%1", "%2", "%%", "%a", "yy", "\xff"};
    struct buf out = buf_in(arena);
    for (unsigned n = below(4); n > 0; n--)
        buf_text(&out, pieces[below(sizeof(pieces) / sizeof(pieces[0]))]);
    buf_text(&out, one_in(40) ? "%" : "");
    buf_str(&out, (struct str){"\0", one_in(20)});
    return buf_view(&out);
}

/* ---- both sides ------------------------------------------------------------------------------ */

struct contest {
    lua_State *stock;
    int pairs, differing;
    size_t over_budget;
};

/* Inside a sandbox: the plain state's functions are called beside ours. */
static void compare(lua_State *L, void *context)
{
    struct contest *contest = context;
    for (int i = 0; i < contest->pairs && contest->differing < 10; i++) {
        struct arena *outer = arena;
        arena = arena_new();
        struct pattern_pair pair = {any_subject(), any_pattern(), any_replacement(), (int)below(24) - 8,
                                    (int)below(6) - 1};
        contest->differing += !pattern_pair_agrees(contest->stock, L, &pair, &contest->over_budget);
        arena_free(arena);
        arena = outer;
    }
}

static int pairs_wanted(void)
{
    const char *given = getenv("TOOLGATE_PATTERN_PAIRS");
    return given ? atoi(given) : PAIRS_DEFAULT;
}

TEST(agrees_with_the_stock_functions)
{
    struct contest contest = {.stock = luaL_newstate()};
    struct sandbox *sandbox = sandbox_new(65536, vocabulary_open);
    struct sandbox_context now = {.file = "test"};
    struct why why = {""};
    int wanted = pairs_wanted();
    luaL_openlibs(contest.stock);
    load_pattern_drivers(contest.stock);
    if (sandbox_run(sandbox, 60000, &now, prepare_sandbox, NULL, &why) != OK)
        fail_msg("%s", why.text);
    for (int done = 0; done < wanted; done += contest.pairs) {
        contest.pairs = wanted - done < PAIRS_A_RUN ? wanted - done : PAIRS_A_RUN;
        if (sandbox_run(sandbox, 60000, &now, compare, &contest, &why) != OK)
            fail_msg("%s", why.text);
        assert_int_equal(contest.differing, 0);
    }
    print_message("%d pairs, %zu ended by the step budget\n", wanted, contest.over_budget);
    assert_true(contest.over_budget < (size_t)wanted / 100 + 8);
    sandbox_free(sandbox);
    lua_close(contest.stock);
}

TEST(known_answers)
{
    assert_string_equal(eval("('hello world'):find('o w')"), "{\"v\":5}");
    assert_string_equal(eval("('key = value'):match('^(%w+)%s*=%s*(%w+)$')"), "{\"v\":\"key\"}");
    assert_string_equal(eval("(('a,b,,c'):gsub(',', ';'))"), "{\"v\":\"a;b;;c\"}");
    assert_string_equal(eval("(('abc'):gsub('', '-'))"), "{\"v\":\"-a-b-c-\"}");
    assert_string_equal(eval("(('THE (quick) fox'):find('%((%a+)%)'))"), "{\"v\":5}");
    assert_string_equal(eval("('a.b'):find('.', 1, true)"), "{\"v\":2}");
}

TEST(positions_beyond_an_int_are_no_other_positions)
{
    /* the stock functions truncate them to 32 bits, and begin at 1 */
    assert_string_equal(eval("('aaa'):find('a', 2^31) or 'none'"), "{\"v\":\"none\"}");
    assert_string_equal(eval("('aaa'):find('a', -2^40)"), "{\"v\":1}");
    assert_string_equal(eval("(('aaa'):gsub('a', 'x', 2^32 + 1))"), "{\"v\":\"xxx\"}");
    assert_string_equal(eval("('aaa'):find('', 99)"), "{\"v\":4}");
}

TEST(endless_matches_are_refused)
{
    assert_has(eval("(('a'):rep(4000)):find(('.-'):rep(4) .. 'b')"), "too many steps");
    assert_has(eval("(('a'):rep(4000)):gsub(('.-'):rep(4) .. 'b', '')"), "too many steps");
    assert_has(eval("(('a'):rep(4000)):match('^' .. ('a*'):rep(10) .. 'b')"), "too many steps");
    assert_has(eval("(('a'):rep(300)):find(('a?'):rep(300))"), "pattern too complex");
    assert_has(eval("('a'):find(('()'):rep(33))"), "too many captures");
    /* a back reference costs what it compares, so the deadline is seen within one long match */
    assert_has(eval("(('a'):rep(60000)):find('^(a*)' .. ('.-%1'):rep(3) .. 'b')"), "too many steps");
    /* The members of a set count. */
    assert_has(eval("(('a'):rep(4000)):find('[' .. ('b'):rep(100000) .. ']')"), "too many steps");
    assert_has(eval("(('a'):rep(4000)):find('%f[' .. ('b'):rep(100000) .. ']')"), "too many steps");
    assert_has(eval("(('a'):rep(4000)):gsub('[' .. ('b'):rep(100000) .. ']?', '')"), "too many steps");
    assert_has(eval("(('a'):rep(4000)):find('[a' .. ('b'):rep(100000) .. ']*c')"), "too many steps");
}
