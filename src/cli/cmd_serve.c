/* toolgate serve: the daemon, or with --check everything but the daemon. */
#include "base/arena.h"
#include "cli/local_generation.h"
#include "cli/term.h"
#include "server/server.h"
#include "config/config_ledger.h"
#include "gate/generation_load.h"
#include "policy/policy_set.h"

#include <stdio.h>

static void print_summary(const struct generation *generation, const struct generation_report *report)
{
    struct str hash = generation_hash(generation);
    printf("tools: %zu, policies: %zu, examples passed: %zu, warnings: %zu, generation " STR_FMT "\n",
           generation_tool_count(generation), policy_set_count(generation_policies(generation)),
           report->example_count, report->warning_count, STR_ARG(hash));
}

/* Whether the ledger could be opened, not whether Redis is there: a daemon starts without it. */
static enum err check_ledger(const struct config *config, struct generation_report *report)
{
    struct why why;
    enum err err = config_ledger_validate(config, &why);
    if (err != OK)
        generation_report_error(report, "%s", why.text);
    return err;
}

static int check(const struct config_sources *sources)
{
    struct arena *arena = arena_new();
    struct generation_report report;
    struct generation *generation;
    generation_report_init(&report, arena);
    enum err err = generation_load(sources, 1, &generation, &report);
    if (err == OK)
        err = check_ledger(generation_config(generation), &report);
    local_print_report(&report);
    if (err == OK)
        print_summary(generation, &report);
    else
        printf("%zu errors, %zu warnings: this would not be served\n", report.error_count,
               report.warning_count);
    generation_unref(generation);
    arena_free(arena);
    return err == OK ? CLI_OK : CLI_NO;
}

static int serve(const struct config_sources *sources)
{
    struct why why;
    if (server_run(sources, &why) == OK)
        return CLI_OK;
    term_error("serve", "%s", why.text);
    return CLI_NO;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct local_options options = {0};
    const char *socket = NULL, *redis = NULL;
    bool only_check = false, no_watch = false;
    int status;
    const struct cli_option table[] = {
        {"socket", "PATH", "listen here (default $XDG_RUNTIME_DIR/toolgate.sock)", 's', OPTION_STRING,
         &socket},
        LOCAL_OPTIONS(&options),
        {"redis", "URL", "keep budgets and loops there: unix:/path, redis://host:port/db, sentinel://…", 0,
         OPTION_STRING, &redis},
        {"check", NULL, "load everything, run the examples, say what is wrong, exit", 0, OPTION_FLAG,
         &only_check},
        {"no-watch", NULL, "load changed files only when asked: SIGHUP, `toolgate reload`", 0, OPTION_FLAG,
         &no_watch},
        {0},
    };
    if (!options_read(command, table, &argc, &argv, &status))
        return status;
    struct config_sources sources = local_sources(&options, socket);
    sources.redis = redis;
    sources.no_watch = no_watch;
    sources.offline = false;
    return only_check ? check(&sources) : serve(&sources);
}

const struct command command_serve = {
    .name = "serve",
    .operands = "",
    .summary = "run the daemon",
    .about = "Serves MCP and toolgate's own methods on a Unix socket until SIGTERM, which lets calls in\n"
             "flight finish. Configuration, tools and policies are loaded anew when their files change, at\n"
             "SIGHUP, and when `toolgate reload` asks; if anything is wrong with them, what was served\n"
             "before stays. Without any file at all it serves ./policies.",
    .exits = "  0  stopped after a clean drain; --check: all is well\n"
             "  1  could not start; --check: something is wrong, each fault is on stderr\n"
             "  2  usage",
    .example = "  toolgate serve --socket /tmp/toolgate.sock --policies policies\n"
               "  toolgate serve -c /etc/toolgate/toolgate.lua --check",
    .run = run,
};
