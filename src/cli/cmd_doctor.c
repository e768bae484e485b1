/* toolgate doctor: gathers what src/doctor looks at, and prints what it finds. */
#include "base/arena.h"
#include "cli/daemon_client.h"
#include "cli/local_generation.h"
#include "cli/print.h"
#include "cli/term.h"
#include "doctor/doctor.h"
#include "gate/generation_load.h"
#include "json/write.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

/* The daemon's status; NULL: there is none, and `d->no_status` says why. */
static const struct json *ask_daemon(struct doctor *d)
{
    struct daemon_client *client;
    struct json *status = ARENA_NEW(d->arena, struct json);
    struct why why = {0};
    enum err err = daemon_client_connect(d->socket, &client, &why);
    if (!err)
        err = daemon_client_call(client, d->arena, "toolgate/status", STR_LIT("{}"), status, &why);
    daemon_client_close(client);
    d->no_status = arena_dup(d->arena, str_of(why.text));
    return err ? NULL : status;
}

/* Files that the daemon's command line names, or its configuration, which then has them already. */
static void take_files(const struct doctor *d, const struct json *paths, struct cli_list *list)
{
    for (uint32_t i = 0; json_is(paths, JSON_ARRAY) && i < paths->len && list->count < OPTIONS_LIST_MAX; i++)
        list->items[list->count++] = arena_dup(d->arena, json_str(&paths->items[i])).at;
}

/* The configuration of the command line, else the one that the daemon names. */
static void choose_config(const struct doctor *d, struct local_options *options)
{
    const struct json *paths = d->status ? json_get_text(d->status, "paths") : NULL;
    struct str serving = json_str(json_get_text(paths, "config"));
    struct str policies = json_str(json_get_text(paths, "policies"));
    bool alone =
        !options->config && !options->policies && !options->tools.count && !options->mcp_configs.count;
    if (options->config)
        return;
    if (alone) {
        take_files(d, json_get_text(paths, "mcp_configs"), &options->mcp_configs);
        take_files(d, json_get_text(paths, "tools"), &options->tools);
    }
    if (serving.len)
        options->config = arena_dup(d->arena, serving).at;
    if (policies.len && !options->policies)
        options->policies = arena_dup(d->arena, policies).at;
}

static void print_finding(const struct doctor_finding *f)
{
    static const enum term_colour colours[] = {
        [DOCTOR_OK] = TERM_GREEN, [DOCTOR_WARNING] = TERM_YELLOW, [DOCTOR_ERROR] = TERM_RED};
    printf("%s%-7s%s  %-9s  ", term_colour(colours[f->level]), doctor_level_name(f->level),
           term_colour(TERM_PLAIN), f->area);
    term_print_lines(stdout, f->what); /* it may quote a daemon, a server or the name of a file */
    putchar('\n');
    if (f->fix.len) {
        printf("         %-9s  %sdo: ", "", term_colour(TERM_BOLD));
        term_print_lines(stdout, f->fix);
        printf("%s\n", term_colour(TERM_PLAIN));
    }
}

static void print_json(const struct doctor *d, size_t errors, size_t warnings)
{
    struct buf text = {0};
    struct json_out out = json_out(&text);
    json_open(&out, '{');
    json_field_int(&out, "errors", (int64_t)errors);
    json_field_int(&out, "warnings", (int64_t)warnings);
    json_field_open(&out, "findings", '[');
    for (size_t i = 0; i < d->count; i++) {
        const struct doctor_finding *f = &d->findings[i];
        json_open(&out, '{');
        json_field_text(&out, "level", doctor_level_name(f->level));
        json_field_text(&out, "area", f->area);
        json_field_text(&out, "code", f->code);
        json_field_str(&out, "what", f->what);
        json_field_optional_str(&out, "do", f->fix);
        json_close(&out, '}');
    }
    json_close(&out, ']');
    if (d->left_out)
        json_field_int(&out, "left_out", (int64_t)d->left_out);
    json_close(&out, '}');
    print_json_text(buf_view(&text));
    putchar('\n');
    buf_clear(&text);
}

static int print_findings(const struct doctor *d, bool json)
{
    size_t counts[DOCTOR_ERROR + 1] = {0};
    for (size_t i = 0; i < d->count; i++)
        counts[d->findings[i].level]++;
    if (json) {
        print_json(d, counts[DOCTOR_ERROR], counts[DOCTOR_WARNING]);
        return counts[DOCTOR_ERROR] ? CLI_NO : CLI_OK;
    }
    for (size_t i = 0; i < d->count; i++)
        print_finding(&d->findings[i]);
    printf("%zu error%s, %zu warning%s\n", counts[DOCTOR_ERROR], counts[DOCTOR_ERROR] == 1 ? "" : "s",
           counts[DOCTOR_WARNING], counts[DOCTOR_WARNING] == 1 ? "" : "s");
    if (d->left_out)
        printf("%zu further findings are left out\n", d->left_out);
    return counts[DOCTOR_ERROR] ? CLI_NO : CLI_OK;
}

/* Loads the files as `serve --check` does; what does not load stays NULL. */
static void load_files(struct doctor *d, const struct local_options *options, const char *socket,
                       struct generation_report *report, struct config *alone, struct generation **generation)
{
    struct config_sources sources = local_sources(options, socket);
    struct why why;
    sources.offline = false;
    log_open(LOG_OFF, LOG_FORMAT_TEXT, NULL, NULL);
    generation_report_init(report, d->arena);
    bool stalls = d->status && json_get_text(d->status, "quarantined"); /* it would stall this process, too */
    if (!stalls && generation_load(&sources, 1, generation, report) == OK)
        d->config = &(*generation)->config;
    else if (config_load(&sources, alone, &why) == OK)
        d->config = alone;
    d->generation = *generation;
    d->report = report;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct local_options options = {0};
    struct doctor d = {.arena = arena_new()};
    struct generation *generation = NULL;
    struct generation_report report;
    struct config alone = {0};
    const char *socket = NULL;
    char program[PATH_MAX] = "";
    bool json = false;
    int status;
    const struct cli_option table[] = {SOCKET_OPTION(&socket),
                                       LOCAL_OPTIONS(&options),
                                       {"json", NULL, "print the findings as JSON", 0, OPTION_FLAG, &json},
                                       {0}};
    if (!options_read(command, table, &argc, &argv, &status)) {
        arena_free(d.arena);
        return status;
    }
    d.program = readlink("/proc/self/exe", program, sizeof(program) - 1) > 0 ? program : NULL;
    d.socket = socket ? socket : daemon_client_default_socket(d.arena);
    if (!socket && options.config) /* its socket */
        d.socket = NULL;
    if (d.socket)
        d.status = ask_daemon(&d);
    choose_config(&d, &options);
    load_files(&d, &options, socket, &report, &alone, &generation);
    if (!d.socket) {
        d.socket = d.config ? d.config->socket : daemon_client_default_socket(d.arena);
        d.status = ask_daemon(&d);
    }
    doctor_run(&d);
    status = print_findings(&d, json);
    generation_unref(generation);
    config_free(&alone);
    arena_free(d.arena);
    return status;
}

const struct command command_doctor = {
    .name = "doctor",
    .operands = "",
    .summary = "check the installation, and say what to do",
    .about = "Checks the socket, the daemon behind it, its state folder, decision log, Redis, upstreams, "
             "policies,\n"
             "traces and limits, the clock, and the systemd unit. Each line says what is right or wrong, and "
             "what\n"
             "to do. Works with and without a running daemon, and changes nothing. Without --config it "
             "checks the\n"
             "configuration that the daemon serves.",
    .exits = "  0  no error; there may be warnings\n"
             "  1  errors\n"
             "  2  usage",
    .example = "  toolgate doctor\n"
               "  toolgate doctor --config /etc/toolgate/toolgate.lua --json",
    .run = run,
};
