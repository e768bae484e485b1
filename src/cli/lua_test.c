/* What `toolgate test` (lua/cli/test.lua) gets from C: the run of examples, its coverage, changes of files.
 */
#include "base/arena.h"
#include "base/clock.h"
#include "cli/lua_cli.h"
#include "cli/term.h"
#include "gate/examples.h"
#include "io/file_watch.h"
#include "policy/coverage.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>

/* The arguments of run(). */
enum { OPTIONS = 1, PLACE, ONLY, SEEN };

/* Of the command, which has one run at a time. */
static struct {
    struct coverage *coverage; /* NULL: not requested */
    struct file_watch *watch;
} test;

/* ---- the outcome of an example, for Lua ---- */

static void push_mismatch(lua_State *L, const struct example_mismatch *m)
{
    lua_cli_push_table(L, FIELD_TEXT("field", m->field), FIELD_STR("expected", m->expected),
                       FIELD_STR("got", m->got));
    if (!m->changes)
        return;
    lua_newtable(L);
    for (size_t i = 0; i < m->changes->count; i++) {
        const struct json_diff_line *line = &m->changes->lines[i];
        lua_pushlstring(L, &line->sign, 1);
        lua_pushliteral(L, " ");
        lua_cli_push_str(L, line->text);
        lua_concat(L, 3);
        lua_cli_append(L);
    }
    lua_setfield(L, -2, "changes");
    lua_cli_set(L, FIELD_NUM("more", m->changes->more));
}

static void seen(void *owner, const struct example_outcome *o)
{
    lua_State *L = owner;
    struct arena *arena = arena_new();
    lua_pushvalue(L, SEEN);
    lua_cli_push_table(L, FIELD_STR("tool", o->policy->name), FIELD_STR("file", o->policy->file),
                       FIELD_STR("example", o->example->name), FIELD_NUM("line", o->example->line),
                       FIELD_BOOL("sample", o->sample), FIELD_BOOL("passed", o->passed),
                       FIELD_BOOL("open", o->open), FIELD_BOOL("schema_unknown", o->schema_unknown),
                       FIELD_STR("gives", o->verdict), FIELD_STR("fault", o->fault),
                       FIELD_STR("said", o->said), FIELD_STR("status", o->status),
                       FIELD_OPTIONAL("becomes", json_to_str(arena, o->arguments)),
                       FIELD_OPTIONAL("shows", json_to_str(arena, o->shown)), FIELD_NUM("us", o->us));
    arena_free(arena);
    lua_newtable(L);
    for (size_t i = 0; i < o->mismatch_count; i++) {
        push_mismatch(L, &o->mismatches[i]);
        lua_cli_append(L);
    }
    lua_setfield(L, -2, "mismatches");
    lua_call(L, 1, 0);
}

/* ---- the run ---- */

/* Adds an error for each mode "shadow" that is past its date; false: none exists. */
static bool report_expired(const struct generation *generation, struct generation_report *report)
{
    struct shadow_expiry *list;
    size_t count = shadow_expired(generation, clock_wall_ms(), report->arena, &list);
    for (size_t i = 0; i < count; i++)
        generation_report_error(report, STR_FMT ": " STR_FMT, STR_ARG(list[i].file),
                                STR_ARG(list[i].sentence));
    return count > 0;
}

/* run(options, place, only, seen): a folder or a file; nil: what the configuration names. Calls
 * seen(outcome), and returns the counts. */
static int run(lua_State *L)
{
    /* A file that does not load is an error and leaves the others to be tested. */
    static const struct generation_build_options options = {.skip_broken = true};
    struct arena *arena = arena_new();
    struct generation_report report;
    struct config_sources sources = lua_cli_sources(L, arena);
    lua_settop(L, SEEN);
    struct examples_options run = {.only = lua_tostring(L, ONLY), .seen = seen, .owner = L};
    if (lua_isstring(L, PLACE))
        sources.policies = lua_tostring(L, PLACE);
    generation_report_init(&report, arena);
    struct generation *generation = lua_cli_build(&sources, &options, &report, NULL);
    const struct policy_set *policies = generation ? generation->policies : NULL;
    /* An empty folder is a mistyped one more often than not: it must not look like success. */
    if (generation && !report.error_count && !policy_set_count(policies) &&
        !policy_set_gateway(policies)->hooks[HOOK_PREPARE]) {
        const char *folder = generation->config.policies;
        report.warning_count = 0; /* they say the same of serve */
        generation_report_error(
            &report, "there is no policy to test in %s%s: name a folder or a file with policies",
            folder ? folder : CONFIG_DEFAULT_FOLDER, folder ? "" : ", which does not exist");
    }
    lua_cli_push_table(L, FIELD_NUM("broken", report.error_count),
                       FIELD_BOOL("expired", generation && report_expired(generation, &report)));
    fflush(stdout); /* so that errors on stderr stay in order */
    lua_cli_print_report(&report);
    if (generation) {
        if (test.coverage)
            coverage_begin(test.coverage, generation->policies);
        struct examples_count count = examples_run(generation, NULL, &run);
        if (test.coverage)
            coverage_end(test.coverage, generation->policies);
        run.samples = true; /* without coverage: they show that nothing breaks, not that it is right */
        struct examples_count samples = examples_run(generation, NULL, &run);
        lua_cli_set(L, FIELD_NUM("passed", count.passed), FIELD_NUM("failed", count.failed),
                    FIELD_NUM("open", count.open), FIELD_NUM("samples", samples.samples),
                    FIELD_NUM("samples_failed", samples.samples_failed),
                    FIELD_NUM("unsampled", samples.unsampled));
    }
    generation_unref(generation);
    arena_free(arena);
    return 1;
}

/* cover(): what runs from now on is counted. */
static int cover(lua_State *L)
{
    (void)L;
    coverage_free(test.coverage);
    test.coverage = coverage_new();
    return 0;
}

/* coverage(): a row for each file. */
static int coverage(lua_State *L)
{
    size_t count;
    const struct coverage_file *files = coverage_files(test.coverage, &count);
    lua_newtable(L);
    for (size_t i = 0; i < count; i++) {
        const struct coverage_file *f = &files[i];
        lua_cli_push_table(L, FIELD_STR("tool", f->tool), FIELD_STR("file", f->file),
                           FIELD_NUM("examples", f->examples));
        lua_newtable(L);
        for (size_t k = 0; k < f->rule_count; k++)
            lua_cli_append_table(L, FIELD_STR("what", f->rules[k].words), FIELD_BOOL("hit", f->rules[k].ran));
        lua_setfield(L, -2, "rules");
        lua_newtable(L);
        for (size_t k = 0; k < f->line_count; k++)
            if (f->lines[k] & LINE_IN_FUNCTION)
                lua_cli_append_table(L, FIELD_NUM("what", k), FIELD_BOOL("hit", f->lines[k] & LINE_RAN));
        lua_setfield(L, -2, "lines");
        lua_cli_append(L);
    }
    return 1;
}

/* ---- changes of files ---- */

/* wait(): returns after a change that no further change follows. False: nothing can be watched. */
static int wait_for_change(lua_State *L)
{
    struct pollfd ready = {.fd = file_watch_fd(test.watch), .events = POLLIN};
    bool changed = false;
    for (;;) {
        int n = poll(&ready, 1, changed ? (int)FILE_WATCH_QUIET_MS : -1);
        if ((n == 0 && changed) || (n < 0 && errno != EINTR)) {
            lua_pushboolean(L, n == 0);
            return 1;
        }
        if (n > 0)
            changed |= file_watch_drain(test.watch);
    }
}

/* watch(paths): begins it. False, after an error on stderr: one of them cannot be watched. */
static int watch(lua_State *L)
{
    struct arena *arena = arena_new();
    struct why why;
    size_t count;
    const char **paths = lua_cli_list(L, NULL, arena, &count);
    bool good = file_watch_new(&test.watch, &why) == OK;
    for (size_t i = 0; good && i < count; i++)
        good = file_watch_add(test.watch, paths[i], &why) == OK;
    if (!good)
        term_error("%s", why.text);
    arena_free(arena);
    lua_pushboolean(L, good);
    return 1;
}

int lua_test(lua_State *L)
{
    static const luaL_Reg functions[] = {{"run", run},     {"cover", cover},          {"coverage", coverage},
                                         {"watch", watch}, {"wait", wait_for_change}, {0}};
    return lua_cli_push_functions(L, functions);
}
