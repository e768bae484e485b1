/* toolgate serve (lua/cli/serve.lua): the daemon; with --check it only loads everything. */
#include "base/arena.h"
#include "cli/command.h"
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

int serve_start(char *const *given)
{
    struct local_options options;
    const char *socket = command_given(given, "socket", 0);
    local_options_given(given, &options);
    struct config_sources sources = local_sources(&options, socket);
    sources.redis = command_given(given, "redis", 0);
    sources.no_watch = command_given(given, "no-watch", 0) != NULL;
    sources.offline = false;
    return command_given(given, "check", 0) ? check(&sources) : serve(&sources);
}
