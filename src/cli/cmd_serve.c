/* toolgate serve: the daemon; with --check it only loads everything. */
#include "base/arena.h"
#include "cli/local_generation.h"
#include "cli/term.h"
#include "server/server.h"
#include "gate/generation_load.h"
#include "policy/policy_set.h"
#include "upstream/process.h"

#include <stdio.h>

/* A daemon starts without its upstreams and tries them again and again; here a command that cannot be started
 * is an error. */
static bool check_upstreams(const struct config *config, struct generation_report *report)
{
    bool good = true;
    for (size_t i = 0; i < config->upstream_count; i++) {
        const struct upstream_spec *spec = config->upstreams[i];
        struct why why;
        if (spec->kind != UPSTREAM_STDIO || environment_find_command(report->arena, spec, &why) == OK)
            continue;
        generation_report_error(report, STR_FMT ": upstream '" STR_FMT "': %s", STR_ARG(spec->from),
                                STR_ARG(spec->name), why.text);
        good = false;
    }
    return good;
}

static int check(const struct config_sources *sources)
{
    struct arena *arena = arena_new();
    struct generation_report report;
    struct generation *generation;
    struct why why;
    generation_report_init(&report, arena);
    enum err err = generation_load(sources, 1, &generation, &report);
    /* Checks the ledger's configuration, not whether Redis is up: a daemon starts without it. */
    if (err == OK && (err = config_ledger_validate(&generation->config, &why)) != OK)
        generation_report_error(&report, "%s", why.text);
    if (err == OK && !check_upstreams(&generation->config, &report))
        err = ERR_CONFIG;
    bool expired = err == OK && local_report_expired(generation, &report);
    struct str nothing = generation ? generation_serves_nothing(generation, arena) : STR_NONE;
    if (nothing.len) /* a daemon that serves nothing may be meant; a check of it is not */
        err = ERR_CONFIG;
    local_print_report(&report);
    if (expired && !nothing.len)
        printf("serve would start, and go on without enforcing these\n");
    else if (err == OK && generation)
        printf("tools: %zu, policies: %zu, examples passed: %zu, warnings: %zu, generation " STR_FMT "\n",
               generation->tool_count, policy_set_count(generation->policies), report.example_count,
               report.warning_count, STR_ARG(generation->hash));
    else if (nothing.len && !report.error_count)
        printf("serve would start, but has nothing to serve\n");
    else
        printf("%zu error%s, %zu warning%s: serve would not start\n", report.error_count,
               report.error_count == 1 ? "" : "s", report.warning_count,
               report.warning_count == 1 ? "" : "s");
    generation_unref(generation);
    arena_free(arena);
    return err == OK && !expired ? CLI_OK : CLI_NO;
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
        {"redis", "URL", "the ledger: unix:/path, redis://host:port/db, sentinel://…", 0, OPTION_STRING,
         &redis},
        {"check", NULL, "load everything, run the examples, print the errors, exit", 0, OPTION_FLAG,
         &only_check},
        {"no-watch", NULL, "load changed files only on SIGHUP and `toolgate reload`", 0, OPTION_FLAG,
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
    .about =
        "Serves MCP and toolgate's own methods on a Unix socket until SIGTERM, which lets calls in flight\n"
        "finish. Loads configuration, tools and policies again when their files change, on SIGHUP and on\n"
        "`toolgate reload`; if anything in them is wrong, the previous generation stays. Without any file\n"
        "it serves ./policies.",
    .exits = "  0  stopped after a drain; --check: everything is right\n"
             "  1  could not start; --check: each error is on stderr, or there is nothing to serve\n"
             "  2  usage",
    .example = "  toolgate serve --socket /tmp/toolgate.sock --policies policies\n"
               "  toolgate serve -c /etc/toolgate/toolgate.lua --check",
    .run = run,
};
