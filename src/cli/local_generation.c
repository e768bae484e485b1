/* Loads as the daemon does. */
#include "cli/local_generation.h"

#include "base/arena.h"
#include "base/clock.h"
#include "catalog/shadow.h"
#include "cli/term.h"
#include "gate/generation_load.h"

#include <stdio.h>
#include <unistd.h>

static void list_given(char *const *given, const char *name, struct cli_list *out)
{
    const char *value;
    for (out->count = 0; out->count < OPTIONS_LIST_MAX && (value = command_given(given, name, out->count));)
        out->items[out->count++] = value;
}

void local_options_given(char *const *given, struct local_options *out)
{
    out->config = command_given(given, "config", 0);
    out->policies = command_given(given, "policies", 0);
    list_given(given, "tools", &out->tools);
    list_given(given, "mcp-config", &out->mcp_configs);
}

struct config_sources local_sources(const struct local_options *options, const char *socket)
{
    return (struct config_sources){
        .file = options->config,
        .socket = socket,
        .policies = options->policies,
        .tools = options->tools.items,
        .tools_count = options->tools.count,
        .mcp_configs = options->mcp_configs.items,
        .mcp_config_count = options->mcp_configs.count,
        .offline = true,
    };
}

static void print_line(const char *level, struct str text)
{
    fprintf(stderr, "%s: ", level);
    term_print_lines(stderr, text);
    fputc('\n', stderr);
}

void local_print_report(const struct generation_report *report)
{
    for (size_t i = 0; i < report->error_count; i++)
        print_line("error", report->errors[i]);
    for (size_t i = 0; i < report->warning_count; i++)
        print_line("warning", report->warnings[i]);
}

bool local_report_expired(const struct generation *generation, struct generation_report *report)
{
    struct shadow_expiry *list;
    size_t count = shadow_expired(generation, clock_wall_ms(), report->arena, &list);
    for (size_t i = 0; i < count; i++)
        generation_report_error(report, STR_FMT ": " STR_FMT, STR_ARG(list[i].file),
                                STR_ARG(list[i].sentence));
    return count > 0;
}

struct generation *local_generation_load(const struct command *command, const struct local_options *options)
{
    struct arena *arena = arena_new();
    struct generation_report report;
    struct generation *generation;
    struct str nothing;
    struct config_sources sources = local_sources(options, NULL);
    log_open(LOG_WARN, LOG_FORMAT_TEXT, NULL, NULL); /* decisions go to stdout, not to the log */
    generation_report_init(&report, arena);
    if (generation_load(&sources, 1, &generation, &report) != OK) {
        local_print_report(&report);
        term_error(command->name, "nothing was loaded: fix the errors above");
    } else if ((nothing = generation_serves_nothing(generation, arena)).len) {
        fprintf(stderr, "warning: " STR_FMT "\n", STR_ARG(nothing));
    }
    arena_free(arena);
    return generation;
}

void local_peer(struct peer *peer)
{
    peer_init(peer, getuid(), getgid(), getpid());
}
