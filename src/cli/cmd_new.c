/*
 * toolgate new: a first policy that loads and whose examples hold, for an
 * operator to complete. It never overwrites a file, and prints the next
 * commands to type.
 */
#include "cli/cmd_new.h"

#include "base/arena.h"
#include "cli/daemon_files.h"
#include "cli/term.h"
#include "config/config.h"
#include "gate/generation_load.h"
#include "io/file.h"
#include "json/write.h"
#include "policy/source_location.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_MAX_BYTES   200u
#define POLICY_MAX_BYTES 1048576u /* of a file that is searched for the tool */

struct new_run {
    const struct command *command;
    struct arena *arena;
    struct local_options local;
    struct new_source source;
    const char *folder;
    bool of_daemon; /* it is the daemon's own folder */
    bool print, force;
    struct new_tool tool;
    struct str path;
};

/* With --socket the policy belongs where the daemon loads it from. False after an error on stderr. */
static bool find_folder(struct new_run *run)
{
    struct daemon_files files;
    run->folder = run->local.policies ? run->local.policies : CONFIG_DEFAULT_FOLDER;
    if (!run->source.socket || run->local.policies || run->print)
        return true;
    if (!daemon_files_ask(run->command, run->source.socket, run->arena, &files))
        return false;
    if (!files.told) {
        term_error(run->command->name,
                   "the daemon at %s tells its folder of policies only to root and to the user that runs it: "
                   "write this one with --print for that user, or into another folder with --policies",
                   run->source.socket);
        return false;
    }
    if (!files.policies) {
        term_error(run->command->name,
                   "the daemon at %s has no folder of policies: name one in its configuration (policies = "
                   "\"…\"), or write this one elsewhere with --policies",
                   run->source.socket);
        return false;
    }
    if (access(files.policies, W_OK | X_OK) != 0) {
        term_error(
            run->command->name,
            "the daemon at %s loads its policies from %s, where you may not write (%s): write this one "
            "with --print and give it to a user who may, or into another folder with --policies",
            run->source.socket, files.policies, strerror(errno));
        return false;
    }
    run->folder = files.policies;
    run->of_daemon = true;
    return true;
}

/* A file name for any tool's name: "server/tool" is one file, too. */
static struct str file_name(struct arena *arena, struct str tool)
{
    struct str name = arena_dup(arena, tool);
    char *at = (char *)name.at;
    for (size_t i = 0; i < name.len; i++)
        if (!isalnum((unsigned char)at[i]) && !strchr("_-.", at[i]))
            at[i] = '_';
    if (name.len && at[0] == '.')
        at[0] = '_';
    return name;
}

/* A name that a definition has is the server's affair; a new one must be one that clients and providers take.
 */
static bool check_name(const struct new_run *run)
{
    struct str name = run->tool.name;
    bool fits = true;
    for (size_t i = 0; i < name.len; i++)
        fits &= isalnum((unsigned char)name.at[i]) || strchr("_-./", name.at[i]);
    if (fits || run->tool.defined)
        return true;
    term_error(run->command->name,
               "'" STR_FMT "': expected a tool's name of letters, digits, _, -, . and / (providers take only "
               "letters, digits, _ and -, at most 64 of them)",
               STR_ARG(name));
    return false;
}

/* A policy of another file for this tool: there can be only one. */
static bool has_other_policy(const struct new_run *run)
{
    DIR *folder = opendir(run->folder);
    bool found = false;
    for (struct dirent *entry; folder && !found && (entry = readdir(folder));) {
        struct str path = arena_printf(run->arena, "%s/%s", run->folder, entry->d_name), text;
        struct why why;
        size_t len = strlen(entry->d_name);
        if (len < 4 || strcmp(entry->d_name + len - 4, ".lua") != 0 || str_eq(path, run->path) ||
            file_read(run->arena, path.at, POLICY_MAX_BYTES, &text, &why) != OK)
            continue;
        found = str_eq(location_tool_name(text), run->tool.name);
        if (found)
            term_error(run->command->name, STR_FMT " is the policy of '" STR_FMT "' already: edit that file",
                       STR_ARG(path), STR_ARG(run->tool.name));
    }
    if (folder)
        closedir(folder);
    return found;
}

static bool is_in_folder(const char *file, const char *folder)
{
    char copy[4096];
    struct stat a, b;
    snprintf(copy, sizeof(copy), "%s", file);
    return stat(dirname(copy), &a) == 0 && stat(folder, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

static bool write_file(const struct new_run *run, struct str text)
{
    if (mkdir(run->folder, 0755) != 0 && errno != EEXIST) {
        term_error(run->command->name, "%s: expected a folder for policies: %s", run->folder,
                   strerror(errno));
        return false;
    }
    int fd = open(run->path.at, O_WRONLY | O_CREAT | O_CLOEXEC | (run->force ? O_TRUNC : O_EXCL), 0644);
    if (fd < 0 && errno == EEXIST) {
        term_error(run->command->name,
                   "%s exists already, the policy of '" STR_FMT
                   "': --force overwrites it, --print writes to stdout instead",
                   run->path.at, STR_ARG(run->tool.name));
        return false;
    }
    bool written = fd >= 0 && write(fd, text.at, text.len) == (ssize_t)text.len;
    if (fd >= 0 && close(fd) != 0)
        written = false;
    if (!written)
        term_error(run->command->name, "%s: %s", run->path.at, strerror(errno));
    return written;
}

/* The daemon's definition as a file of tools, which ends with this process. */
static const char *definition_file(const struct new_run *run)
{
    struct buf text = buf_in(run->arena);
    int fd = memfd_create("definition", MFD_CLOEXEC);
    buf_byte(&text, '[');
    json_write(&text, run->tool.definition);
    buf_byte(&text, ']');
    bool written = fd >= 0 && write(fd, text.at, text.len) == (ssize_t)text.len;
    return written ? arena_printf(run->arena, "/proc/self/fd/%d", fd).at : NULL;
}

/* Loads the file as the daemon would and runs its examples. False, after errors on stderr, if it does not
 * hold. */
static bool try_policy(const struct new_run *run, size_t *examples)
{
    struct generation_report report;
    struct generation *generation;
    struct config_sources sources = local_sources(&run->local, NULL);
    const char *definition = run->tool.definition ? definition_file(run) : NULL;
    sources.policies = run->path.at;
    if (definition) {
        sources.tools = &definition;
        sources.tools_count = 1;
    }
    log_open(LOG_ERROR, LOG_FORMAT_TEXT, NULL, NULL);
    generation_report_init(&report, run->arena);
    enum err err = generation_load(&sources, 1, &generation, &report);
    *examples = report.example_count;
    if (err != OK) {
        report.warning_count = 0;
        local_print_report(&report);
    }
    generation_unref(generation);
    return err == OK;
}

/* One word for a shell. */
static struct str shell_word(struct arena *arena, struct str name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!isalnum((unsigned char)name.at[i]) && !strchr("_-./:@", name.at[i]))
            return arena_printf(arena, "'" STR_FMT "'", STR_ARG(name));
    return name;
}

/* The daemon has its files and its servers' schemas, and notices a file that changes. */
static void print_next_at_daemon(const struct new_run *run, struct str call)
{
    const char *socket = run->source.socket;
    printf("The daemon loads it by itself, and loads it anew when it changes. Next: write in its first line "
           "what it is for and who may call it, then\n"
           "  toolgate test --socket %s\n"
           "  toolgate check " STR_FMT " '" STR_FMT "' --socket %s --trace\n"
           "  toolgate reload --socket %s\n",
           socket, STR_ARG(shell_word(run->arena, run->tool.name)), STR_ARG(call), socket, socket);
}

static void print_next(const struct new_run *run, size_t examples)
{
    bool upstream = run->tool.upstream.len > 0;
    const struct json *sample = new_template_sample(run->arena, &run->tool);
    struct buf with = buf_in(run->arena), call = buf_in(run->arena);
    if (run->local.config)
        buf_printf(&with, " -c %s", run->local.config);
    if (strcmp(run->folder, CONFIG_DEFAULT_FOLDER) != 0)
        buf_printf(&with, " --policies %s", run->folder);
    for (size_t i = 0; i < run->local.tools.count; i++)
        buf_printf(&with, " --tools %s", run->local.tools.items[i]);
    if (upstream)
        buf_text(&with, " --tools tools.json");
    struct str options = buf_view(&with);
    if (sample)
        json_write(&call, sample);
    if (!sample || memchr(call.at, '\'', call.len))
        buf_text(&call, "{}");
    printf(STR_FMT " is written; ", STR_ARG(run->path));
    printf(examples == 1 ? "its example holds.\n" : "its %zu examples hold.\n", examples);
    if (run->of_daemon) {
        print_next_at_daemon(run, buf_view(&call));
        return;
    }
    printf("Next: write in its first line what it is for and who may call it, then\n");
    if (upstream)
        printf("  toolgate tools --format mcp --socket %s > tools.json\n", run->source.socket);
    printf("  toolgate test" STR_FMT "\n", STR_ARG(options));
    printf("  toolgate lint" STR_FMT "\n", STR_ARG(options));
    printf("  toolgate check " STR_FMT " '" STR_FMT "'" STR_FMT " --trace\n",
           STR_ARG(shell_word(run->arena, run->tool.name)), STR_ARG(buf_view(&call)), STR_ARG(options));
    if (upstream)
        printf("  toolgate reload --socket %s\n", run->source.socket);
    else
        printf("  toolgate serve" STR_FMT "\n", STR_ARG(options));
}

static int write_policy(struct new_run *run)
{
    struct buf text = buf_in(run->arena);
    const char *schema = run->source.schema;
    size_t examples = 0;
    if (!new_tool_find(run->command, &run->source, run->arena, &run->tool) || !check_name(run))
        return CLI_ERROR;
    if (run->tool.with_schema)
        run->tool.tools_file = NULL;
    if (schema && is_in_folder(schema, run->folder))
        run->tool.schema_file = str_of(strrchr(schema, '/') ? strrchr(schema, '/') + 1 : schema);
    struct str name = file_name(run->arena, run->tool.name);
    run->path = arena_printf(run->arena, "%s/" STR_FMT ".lua", run->folder, STR_ARG(name));
    new_template_write(&text, run->arena, &run->tool);
    if (run->print) {
        printf(STR_FMT, STR_ARG(buf_view(&text)));
        return CLI_OK;
    }
    if (has_other_policy(run) || !write_file(run, buf_view(&text)))
        return CLI_ERROR;
    if (!try_policy(run, &examples)) {
        term_error(run->command->name, "%s is written, but does not hold yet: fix the errors above",
                   run->path.at);
        return CLI_NO;
    }
    print_next(run, examples);
    return CLI_OK;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct new_run run = {.command = command};
    int status;
    const struct cli_option table[] = {
        {"template", "blank|read|write|search|http", "what to start from (default blank)", 0, OPTION_STRING,
         &run.source.template},
        {"schema", "FILE", "start from the tool's JSON Schema", 0, OPTION_STRING, &run.source.schema},
        {"socket", "PATH", "start from the tool that this daemon lists, and write into its folder", 's',
         OPTION_STRING, &run.source.socket},
        {"with-schema", NULL, "write a definition's schema into the policy, so that it needs no --tools", 0,
         OPTION_FLAG, &run.tool.with_schema},
        {"print", NULL, "print the policy instead of writing a file", 0, OPTION_FLAG, &run.print},
        {"force", NULL, "overwrite an existing file", 0, OPTION_FLAG, &run.force},
        LOCAL_OPTIONS(&run.local),
        {0},
    };
    if (!options_read(command, table, &argc, &argv, &status))
        return status;
    if (!*argv[0] || strlen(argv[0]) > NAME_MAX_BYTES) {
        term_error(command->name, "expected a tool's name of 1 to %u bytes", NAME_MAX_BYTES);
        return CLI_ERROR;
    }
    run.arena = arena_new();
    run.source.local = &run.local;
    run.tool.name = str_of(argv[0]);
    status = find_folder(&run) ? write_policy(&run) : CLI_ERROR;
    arena_free(run.arena);
    return status;
}

const struct command command_new = {
    .name = "new",
    .operands = "TOOL",
    .summary = "write a first policy for a tool",
    .about =
        "Writes TOOL.lua into the folder of policies, with examples that hold as they stand. The policy\n"
        "starts from a tool's definition (--tools or --socket), a JSON Schema (--schema) or a template\n"
        "(--template); by default it is a blank one. What toolgate does not know is marked TODO.\n"
        "With --socket it goes into the folder that the daemon there loads, if you may write it.\n"
        "Existing files are not overwritten.",
    .exits = "  0  written, and its examples hold\n"
             "  1  written, but something in it does not hold\n"
             "  2  usage, a tool or file that does not exist, a file that exists already",
    .example = "  toolgate new close_ticket\n"
               "  toolgate new get_order --template read\n"
               "  toolgate new get_weather --tools tools.json\n"
               "  toolgate new read_file --socket /tmp/toolgate.sock\n"
               "  toolgate new create_invoice --schema invoice.schema.json --print",
    .least = 1,
    .most = 1,
    .run = run,
};
