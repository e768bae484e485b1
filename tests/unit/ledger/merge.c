/* Merging two engines after an outage, part by part, and that each part is merged once. */
#include "base/arena.h"
#include "base/buf.h"
#include "json/parse.h"
#include "json/write.h"
#include "ledger/local.h"
#include "ledger/pack.h"
#include "ledger/view.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#define SESSION STR_LIT("uid:1000/chat-7")
#define NOW_MS  1700000000000

struct pair {
    struct local *here, *there; /* the local fallback, and a second engine in place of Redis */
    struct arena *arena;
    struct pack_options options;
    struct ledger_limits limits;
    uint64_t admissions;
    struct str account;
};

static int begin(void **state)
{
    struct pair *p = test_calloc(1, sizeof(*p));
    struct why why;
    assert_int_equal(local_new(1 << 20, &p->here, &why), OK);
    assert_int_equal(local_new(1 << 20, &p->there, &why), OK);
    p->arena = arena_new();
    p->options = (struct pack_options){.ttl_s = 3600, .history = 100};
    p->limits = ledger_default_limits;
    *state = p;
    return 0;
}

static int end(void **state)
{
    struct pair *p = *state;
    local_free(p->here);
    local_free(p->there);
    arena_free(p->arena);
    test_free(p);
    return 0;
}

static struct script_run *a_run(struct pair *p, enum script script)
{
    struct script_run *run = ARENA_NEW(p->arena, struct script_run);
    script_begin(run, script, SESSION, arena_alloc(p->arena, SCRIPT_KEYS * SCRIPT_KEY_BYTES));
    return run;
}

static struct str runs(struct pair *p, struct local *engine, const struct script_run *run)
{
    struct str reply;
    struct why why;
    if (local_run(engine, run, NOW_MS, p->arena, &reply, &why) != OK)
        fail_msg("%s", why.text);
    return reply;
}

static struct hash128 hash(const char *text)
{
    return hash_stable(str_of(text));
}

static struct ledger_place place(void)
{
    return (struct ledger_place){.session = SESSION, .turn = 1};
}

static struct ledger_admit admit_of(struct pair *p, const char *tool, const char *args)
{
    return (struct ledger_admit){.place = place(),
                                 .admission = ++p->admissions,
                                 .tool = str_of(tool),
                                 .arguments = hash(args),
                                 .limits = &p->limits};
}

/* Admits a call; returns the reply, whose bytes are the verdict and its code. */
static struct str asks_as(struct pair *p, struct local *engine, const struct ledger_admit *request)
{
    struct script_run *run = a_run(p, SCRIPT_ADMIT);
    pack_admit(run, request, &p->options, p->arena);
    return runs(p, engine, run);
}

static int says(struct pair *p, struct local *engine, const char *tool, const char *args)
{
    struct ledger_admit request = admit_of(p, tool, args);
    return asks_as(p, engine, &request).at[PACK_SAYS_AT];
}

static void settle(struct pair *p, struct local *engine, const char *tool, const char *args,
                   struct ledger_settle with)
{
    struct script_run *run = a_run(p, SCRIPT_SETTLE);
    with.place = place();
    with.admission = p->admissions;
    with.tool = str_of(tool);
    with.arguments = hash(args);
    with.label = STR_LIT("ok");
    with.limits = &p->limits;
    pack_settle(run, &with, &p->options, p->arena);
    runs(p, engine, run);
}

static void ends(struct pair *p, struct local *engine, const char *tool, const char *args, const char *result)
{
    assert_int_equal(says(p, engine, tool, args), LEDGER_RUN);
    settle(p, engine, tool, args, (struct ledger_settle){.result = hash(result)});
}

/* ---- merge ------------------------------------------------------------------ */

static bool hears(struct pair *p, uint64_t number)
{
    struct script_run *run = a_run(p, SCRIPT_MERGE);
    pack_merge(run, number, STR_NONE, p->account, &p->options, p->arena);
    return runs(p, p->there, run).at[0] == '1';
}

static void meet(struct pair *p)
{
    struct script_run *run = a_run(p, SCRIPT_LEAVE);
    pack_leave(run, &p->options, p->arena);
    p->account = runs(p, p->here, run);
    assert_true(hears(p, ++p->admissions));
}

static struct json view(struct pair *p)
{
    struct json session;
    struct why why;
    struct str text = runs(p, p->there, a_run(p, SCRIPT_VIEW));
    assert_int_equal(view_session(p->arena, SESSION, text, &session, &why), OK);
    return session;
}

static const char *text_of(struct pair *p, const struct json *value)
{
    struct buf buf = buf_in(p->arena);
    json_write(&buf, value);
    buf_byte(&buf, '\0');
    return buf.at;
}

static const char *budget(struct pair *p, const char *name)
{
    struct json session = view(p);
    return text_of(p, json_get_text(json_get_text(&session, "budgets"), name));
}

/* ---- cases -------------------------------------------------------------------- */

static void a_repeated_merge_counts_once(void **state)
{
    struct pair *p = *state;
    ends(p, p->here, "get", "{1}", "r");
    struct script_run *run = a_run(p, SCRIPT_LEAVE);
    pack_leave(run, &p->options, p->arena);
    p->account = runs(p, p->here, run);
    assert_true(hears(p, 77));
    assert_false(hears(p, 77)); /* the reply to the first merge was lost */
    assert_string_equal(budget(p, "calls"), "1");
    struct json session = view(p);
    assert_int_equal(json_get_text(&session, "history")->len, 1);
}

static void merged_calls_are_not_merged_again(void **state)
{
    struct pair *p = *state;
    ends(p, p->here, "get", "{1}", "r");
    meet(p);
    ends(p, p->here, "get", "{2}", "r");
    meet(p);
    meet(p);
    assert_string_equal(budget(p, "calls"), "2");
    assert_string_equal(budget(p, "calls_in_turn"), "2");
    struct json session = view(p);
    assert_int_equal(json_get_text(&session, "history")->len, 2);
}

static void merged_calls_are_not_merged_again_after_they_left_the_window(void **state)
{
    struct pair *p = *state;
    char args[16];
    p->limits.effects = LEDGER_EFFECTS_READ; /* a read re-arms nothing */
    p->limits.same_call = 1;
    ends(p, p->here, "get", "{1}", "r");
    meet(p);
    assert_int_equal(says(p, p->there, "get", "{1}"), LEDGER_REFUSE);
    for (int i = 0; i < 40; i++) {
        snprintf(args, sizeof(args), "{%d}", i);
        ends(p, p->there, "list", args, args);
    }
    meet(p);
    assert_int_equal(says(p, p->there, "get", "{1}"), LEDGER_RUN);
}

static void a_call_that_both_engines_know_counts_once(void **state)
{
    struct pair *p = *state;
    p->limits.same_call = 2;
    assert_int_equal(says(p, p->there, "get", "{1}"), LEDGER_RUN);
    p->admissions--; /* its reply was lost, so it is admitted here again */
    ends(p, p->here, "get", "{1}", "r");
    meet(p);
    assert_string_equal(budget(p, "waiting"), "0");
    assert_int_equal(says(p, p->there, "get", "{1}"), LEDGER_RUN); /* the second */
}

static void tool_names_are_merged(void **state)
{
    struct pair *p = *state;
    ends(p, p->here, "get", "{1}", "r");
    meet(p);
    struct json session = view(p);
    const struct json *history = json_get_text(&session, "history");
    assert_true(str_is(json_str(json_get_text(&history->items[0], "tool")), "get"));
}

static void ids_are_merged(void **state)
{
    struct pair *p = *state;
    struct hash128 ids[] = {hash("o1"), hash("o2")};
    assert_int_equal(says(p, p->here, "list", "{}"), LEDGER_RUN);
    settle(p, p->here, "list", "{}", (struct ledger_settle){.gives_ids = ids, .gives_id_count = 1});
    meet(p);
    struct ledger_admit request = admit_of(p, "read", "{1}");
    request.ids = ids;
    request.id_count = 2;
    struct reply reply = reply_of(asks_as(p, p->there, &request));
    reply_take(&reply, PACK_UNSEEN_AT);
    assert_int_equal(reply_u8(&reply), 2);
}

static void limits_of_tools_are_merged(void **state)
{
    struct pair *p = *state;
    p->limits.tool.calls_per_session = 2;
    ends(p, p->there, "get", "{1}", "r");
    ends(p, p->here, "get", "{2}", "r");
    meet(p);
    meet(p);
    assert_int_equal(says(p, p->there, "get", "{3}"), LEDGER_REFUSE);
    assert_string_equal(budget(p, "calls"), "2");
}

static void cost_is_merged(void **state)
{
    struct pair *p = *state;
    p->limits.session.cost_per_session = LEDGER_COST_UNIT;
    p->limits.costs = true;
    p->limits.cost = LEDGER_COST_UNIT / 2;
    ends(p, p->there, "get", "{1}", "r");
    ends(p, p->here, "get", "{2}", "r");
    meet(p);
    meet(p);
    assert_string_equal(budget(p, "cost"), "1");
    assert_string_equal(budget(p, "cost_in_turn"), "1");
    assert_int_equal(says(p, p->there, "get", "{3}"), LEDGER_REFUSE);
}

static void polling_intervals_are_merged(void **state)
{
    struct pair *p = *state;
    p->limits.polls = true;
    p->limits.poll_every_ms = 5000;
    ends(p, p->here, "job", "{1}", "r");
    meet(p);
    assert_int_equal(says(p, p->there, "job", "{1}"), LEDGER_REFUSE);
    assert_int_equal(says(p, p->there, "job", "{2}"), LEDGER_RUN);
}

static void no_progress_is_merged(void **state)
{
    struct pair *p = *state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(says(p, p->here, "get", i ? i > 1 ? "{3}" : "{2}" : "{1}"), LEDGER_RUN);
        settle(p, p->here, "get", "{}", (struct ledger_settle){.class = LEDGER_CLASS_TOOL_ERROR});
    }
    meet(p);
    assert_string_equal(budget(p, "no_progress"), "3");
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(a_repeated_merge_counts_once),
        STORY(merged_calls_are_not_merged_again),
        STORY(merged_calls_are_not_merged_again_after_they_left_the_window),
        STORY(a_call_that_both_engines_know_counts_once),
        STORY(tool_names_are_merged),
        STORY(ids_are_merged),
        STORY(limits_of_tools_are_merged),
        STORY(cost_is_merged),
        STORY(polling_intervals_are_merged),
        STORY(no_progress_is_merged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
