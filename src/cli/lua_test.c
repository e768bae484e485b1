/* What `toolgate test` (lua/cli/test.lua) gets from C: the run of examples, its coverage, changes of files.
 */
#include "base/arena.h"
#include "cli/lua_cli.h"
#include "cli/term.h"
#include "gate/examples.h"
#include "io/file_watch.h"
#include "json/write.h"
#include "policy/coverage.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* The arguments of run(). */
enum { PLACE = 1, ONLY, SEEN };

/* Of the command, which has one run at a time. */
static struct {
    struct arena *arena;
    struct config_sources sources;
    struct coverage *coverage; /* NULL: not requested */
    struct file_watch *watch;
} test;

/* ---- the outcome of an example, for Lua ---- */

static void set_json(lua_State *L, const char *name, const struct json *value)
{
    struct buf text = {0};
    if (!value)
        return;
    json_write(&text, value);
    lua_cli_set_str(L, name, buf_view(&text));
    buf_clear(&text);
}

static void push_mismatch(lua_State *L, const struct example_mismatch *m)
{
    lua_newtable(L);
    lua_cli_set_str(L, "field", str_of(m->field));
    lua_cli_set_str(L, "expected", m->expected);
    lua_cli_set_str(L, "got", m->got);
    if (!m->changes)
        return;
    lua_newtable(L);
    for (size_t i = 0; i < m->changes->count; i++) {
        const struct json_diff_line *line = &m->changes->lines[i];
        lua_pushlstring(L, &line->sign, 1);
        lua_pushliteral(L, " ");
        lua_pushlstring(L, line->text.at, line->text.len);
        lua_concat(L, 3);
        lua_rawseti(L, -2, (int)i + 1);
    }
    lua_setfield(L, -2, "changes");
    lua_cli_set_number(L, "more", (double)m->changes->more);
}

static void seen(void *owner, const struct example_outcome *o)
{
    lua_State *L = owner;
    lua_pushvalue(L, SEEN);
    lua_newtable(L);
    lua_cli_set_str(L, "tool", o->policy->name);
    lua_cli_set_str(L, "file", o->policy->file);
    lua_cli_set_str(L, "example", o->example->name);
    lua_cli_set_number(L, "line", o->example->line);
    lua_cli_set_bool(L, "sample", o->sample);
    lua_cli_set_bool(L, "passed", o->passed);
    lua_cli_set_bool(L, "open", o->open);
    lua_cli_set_bool(L, "schema_unknown", o->schema_unknown);
    lua_cli_set_str(L, "gives", o->verdict);
    lua_cli_set_str(L, "fault", o->fault);
    lua_cli_set_str(L, "said", o->said);
    lua_cli_set_str(L, "status", o->status);
    set_json(L, "becomes", o->arguments);
    set_json(L, "shows", o->shown);
    lua_cli_set_number(L, "us", (double)o->us);
    lua_newtable(L);
    for (size_t i = 0; i < o->mismatch_count; i++) {
        push_mismatch(L, &o->mismatches[i]);
        lua_rawseti(L, -2, (int)i + 1);
    }
    lua_setfield(L, -2, "mismatches");
    lua_call(L, 1, 0);
}

/* ---- the run ---- */

/* Adds to the table on top. */
static void add(lua_State *L, const char *name, size_t count)
{
    lua_getfield(L, -1, name);
    size_t sum = (size_t)lua_tonumber(L, -1) + count;
    lua_pop(L, 1);
    lua_cli_set_number(L, name, (double)sum);
}

static void run_examples(lua_State *L, struct generation *generation, struct examples_options *run)
{
    struct examples_count count = examples_run(generation, NULL, run);
    add(L, "passed", count.passed);
    add(L, "failed", count.failed);
    add(L, "open", count.open);
    add(L, "samples", count.samples);
    add(L, "samples_failed", count.samples_failed);
    add(L, "unsampled", count.unsampled);
}

/* run(place, only, seen): a folder or a file; nil: what the configuration names. Calls seen(outcome), and
 * returns the counts. */
static int run(lua_State *L)
{
    /* A file that does not load is an error and leaves the others to be tested. */
    static const struct generation_build_options options = {.skip_broken = true};
    struct arena *arena = arena_new();
    struct generation_report report;
    struct config_sources sources = test.sources;
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
    lua_newtable(L);
    add(L, "broken", report.error_count);
    lua_cli_set_bool(L, "expired", generation && lua_cli_report_expired(generation, &report));
    fflush(stdout); /* so that errors on stderr stay in order */
    lua_cli_print_report(&report);
    if (generation) {
        if (test.coverage)
            coverage_begin(test.coverage, generation->policies);
        run_examples(L, generation, &run);
        if (test.coverage)
            coverage_end(test.coverage, generation->policies);
        run.samples = true; /* without coverage: they show that nothing breaks, not that it is right */
        run_examples(L, generation, &run);
    }
    generation_unref(generation);
    arena_free(arena);
    return 1;
}

/* begin(options): what is loaded from now on. The table owns the texts until the command ends. */
static int begin(lua_State *L)
{
    arena_free(test.arena);
    test.arena = arena_new();
    test.sources = lua_cli_sources(L, test.arena);
    return 0;
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
    lua_createtable(L, (int)count, 0);
    for (size_t i = 0; i < count; i++) {
        lua_newtable(L);
        lua_cli_set_str(L, "tool", files[i].tool);
        lua_cli_set_str(L, "file", files[i].file);
        lua_cli_set_number(L, "examples", (double)files[i].examples);
        lua_createtable(L, (int)files[i].rule_count, 0);
        for (size_t k = 0; k < files[i].rule_count; k++) {
            lua_newtable(L);
            lua_cli_set_str(L, "what", files[i].rules[k].words);
            lua_cli_set_bool(L, "hit", files[i].rules[k].ran);
            lua_rawseti(L, -2, (int)k + 1);
        }
        lua_setfield(L, -2, "rules");
        lua_newtable(L);
        for (size_t k = 0, n = 0; k < files[i].line_count; k++) {
            if (!(files[i].lines[k] & LINE_IN_FUNCTION))
                continue;
            lua_newtable(L);
            lua_cli_set_number(L, "what", (double)k);
            lua_cli_set_bool(L, "hit", files[i].lines[k] & LINE_RAN);
            lua_rawseti(L, -2, (int)++n);
        }
        lua_setfield(L, -2, "lines");
        lua_rawseti(L, -2, (int)i + 1);
    }
    return 1;
}

/* ---- changes of files ---- */

/* False: it cannot be watched. */
static bool watch_path(const char *path, struct why *why)
{
    return !path || file_watch_add(test.watch, path, why) == OK;
}

/* Of a file the whole folder: it may read a schema from there with json "…". */
static bool watch_place(const char *place, struct why *why)
{
    const char *slash = strrchr(place, '/');
    struct stat st;
    if (stat(place, &st) != 0 || S_ISDIR(st.st_mode))
        return watch_path(place, why);
    char *folder = slash ? strndup(place, (size_t)(slash - place) + 1) : NULL;
    bool watched = watch_path(folder ? folder : ".", why);
    free(folder);
    return watched;
}

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

/* watch(options): begins it; nil after an error. Else whether stdout is a terminal. */
static int watch(lua_State *L)
{
    struct arena *arena = arena_new();
    struct config config = {0};
    struct why why;
    size_t count;
    const char **places = lua_cli_list(L, NULL, arena, &count);
    bool good = file_watch_new(&test.watch, &why) == OK;
    for (size_t i = 0; good && i < count; i++)
        good = watch_place(places[i], &why);
    /* The configuration and the files that it names, if it can be read. */
    if (good && (!count || test.sources.file || test.sources.tools_count)) {
        good = watch_path(test.sources.file, &why);
        bool read = good && config_load(&test.sources, &config, NULL) == OK;
        if (read)
            good = watch_place(config.policies ? config.policies : "policies", &why);
        for (size_t i = 0; read && good && i < config.tools.count; i++)
            good = watch_path(config.tools.list[i], &why);
        for (size_t i = 0; read && good && i < config.mcp_configs.count; i++)
            good = watch_path(config.mcp_configs.list[i], &why);
    }
    config_free(&config);
    if (good)
        lua_pushboolean(L, isatty(STDOUT_FILENO));
    else
        term_error("test", "%s", why.text);
    arena_free(arena);
    return good ? 1 : 0;
}

int lua_test(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"begin", begin},          {"run", run}, {"cover", cover}, {"coverage", coverage}, {"watch", watch},
        {"wait", wait_for_change}, {0}};
    return lua_cli_push_functions(L, functions);
}
