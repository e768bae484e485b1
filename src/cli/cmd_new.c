/*
 * toolgate new: a first policy that loads and whose examples hold, for an
 * operator to go on from. It never overwrites, and says what to type next.
 */
#include "cli/cmd_new.h"

#include "base/arena.h"
#include "cli/cmd_new_sample.h"
#include "cli/term.h"
#include "config/config.h"
#include "gate/generation_load.h"
#include "json/build.h"
#include "json/write.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct making {
    const struct command *command;
    struct arena *arena;
    struct local_options loaded;
    const char *schema_file, *folder;
    const char *socket;
    bool print, force;
    struct new_tool tool;
    struct str path, schema_path; /* schema_path: empty where no file is written beside */
};

/* ---- what is written where ---- */

/* A file's name for any tool's name: "server/tool" is one file, too. */
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

static bool same_folder(const char *file, const char *folder)
{
    char copy[4096];
    struct stat a, b;
    snprintf(copy, sizeof(copy), "%s", file);
    return stat(dirname(copy), &a) == 0 && stat(folder, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

/* params{…} where it says all of the schema; else a file beside the policy, the given one where it lies
 * there. */
static void place_schema(struct making *m, struct str name)
{
    struct buf scratch = buf_in(m->arena);
    struct new_tool *tool = &m->tool;
    bool told = tool->upstream.len && !tool->with_schema;
    if (told || tool->tools_file || new_params_write(&scratch, m->arena, tool->schema, 2))
        return;
    if (m->schema_file && same_folder(m->schema_file, m->folder)) {
        const char *slash = strrchr(m->schema_file, '/');
        tool->schema_beside = str_of(slash ? slash + 1 : m->schema_file);
        return;
    }
    tool->schema_beside = arena_printf(m->arena, STR_FMT ".schema.json", STR_ARG(name));
    m->schema_path = arena_printf(m->arena, "%s/" STR_FMT, m->folder, STR_ARG(tool->schema_beside));
}

static bool write_file(const struct making *m, struct str path, struct str text)
{
    int fd = open(path.at, O_WRONLY | O_CREAT | O_CLOEXEC | (m->force ? O_TRUNC : O_EXCL), 0644);
    if (fd < 0 && errno == EEXIST) {
        term_error(m->command->name, "%s is there already; --force writes it anew, --print only shows it",
                   path.at);
        return false;
    }
    bool written = fd >= 0 && write(fd, text.at, text.len) == (ssize_t)text.len;
    if (fd >= 0 && close(fd) != 0)
        written = false;
    if (!written)
        term_error(m->command->name, "%s: %s", path.at, strerror(errno));
    return written;
}

static bool make_folder(const struct making *m)
{
    if (mkdir(m->folder, 0755) == 0 || errno == EEXIST)
        return true;
    term_error(m->command->name, "%s: expected a folder for policies: %s", m->folder, strerror(errno));
    return false;
}

/* The schema's file first: a policy without it would not load. */
static bool write_all(struct making *m, struct str text)
{
    struct buf schema = buf_in(m->arena);
    bool there = access(m->path.at, F_OK) == 0 && !m->force;
    if (!make_folder(m))
        return false;
    if (m->schema_path.len && !there) {
        json_write_pretty(&schema, m->tool.schema, 0);
        buf_byte(&schema, '\n');
        if (!write_file(m, m->schema_path, buf_view(&schema)))
            return false;
    }
    return write_file(m, m->path, text);
}

/* ---- what comes next ---- */

/* What the daemon told, as a file of tools, which is gone with this process. */
static const char *definition_file(const struct making *m)
{
    struct buf text = buf_in(m->arena);
    int fd = memfd_create("definition", MFD_CLOEXEC);
    buf_byte(&text, '[');
    json_write(&text, m->tool.definition);
    buf_byte(&text, ']');
    bool written = fd >= 0 && write(fd, text.at, text.len) == (ssize_t)text.len;
    return written ? arena_printf(m->arena, "/proc/self/fd/%d", fd).at : NULL;
}

/* Loads the file as the daemon would and plays its examples; false, with complaints, where it does not hold.
 */
static bool try_out(const struct making *m, size_t *examples)
{
    struct generation_report report;
    struct generation *generation;
    struct config_sources sources = local_sources(&m->loaded, NULL);
    const char *definition = m->tool.definition ? definition_file(m) : NULL;
    sources.policies = m->path.at;
    if (definition) {
        sources.tools = &definition;
        sources.tools_count = 1;
    }
    log_open(LOG_ERROR, LOG_FORMAT_TEXT, NULL, NULL);
    generation_report_init(&report, m->arena);
    enum err err = generation_load(&sources, 1, &generation, &report);
    *examples = report.example_count;
    if (err != OK) {
        report.warning_count = 0;
        local_print_report(&report);
    }
    generation_unref(generation);
    return err == OK;
}

static struct str sample_call(struct arena *arena, const struct new_tool *tool)
{
    struct buf text = buf_in(arena);
    struct schema *schema;
    const struct json *sample = NULL;
    if (tool->schema && schema_compile(arena, tool->schema, NULL, &schema, NULL, NULL) == OK)
        sample = new_sample(arena, schema);
    if (sample)
        json_write(&text, sample);
    return sample && !memchr(text.at, '\'', text.len) ? buf_view(&text) : STR_LIT("{…}");
}

/* As a shell takes it for one word. */
static struct str word(struct arena *arena, struct str name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!isalnum((unsigned char)name.at[i]) && !strchr("_-./:@", name.at[i]))
            return arena_printf(arena, "'" STR_FMT "'", STR_ARG(name));
    return name;
}

static void say_next(const struct making *m, size_t examples)
{
    struct str call = sample_call(m->arena, &m->tool);
    struct buf with = buf_in(m->arena);
    if (m->loaded.config)
        buf_printf(&with, " -c %s", m->loaded.config);
    if (strcmp(m->folder, CONFIG_DEFAULT_FOLDER) != 0)
        buf_printf(&with, " --policies %s", m->folder);
    for (size_t i = 0; i < m->loaded.tools.count; i++)
        buf_printf(&with, " --tools %s", m->loaded.tools.items[i]);
    if (m->tool.upstream.len)
        buf_text(&with, " --tools tools.json");
    struct str options = buf_view(&with);
    printf(STR_FMT " is written", STR_ARG(m->path));
    if (m->schema_path.len)
        printf(", with " STR_FMT, STR_ARG(m->schema_path));
    printf(examples == 1 ? "; its example holds.\n" : "; its %zu examples hold.\n", examples);
    printf("Next: say in its first lines who may do what, then\n");
    if (m->tool.upstream.len)
        printf("  toolgate tools --format mcp --socket %s > tools.json\n", m->socket);
    printf("  toolgate test" STR_FMT "\n", STR_ARG(options));
    printf("  toolgate lint" STR_FMT "\n", STR_ARG(options));
    printf("  toolgate check " STR_FMT " '" STR_FMT "'" STR_FMT " --trace\n",
           STR_ARG(word(m->arena, m->tool.name)), STR_ARG(call), STR_ARG(options));
    if (m->tool.upstream.len)
        printf("  toolgate reload --socket %s\n", m->socket);
    else
        printf("  toolgate serve" STR_FMT "\n", STR_ARG(options));
}

/* ---- the command ---- */

static int make(struct making *m)
{
    struct new_source source = {.schema = m->schema_file, .socket = m->socket, .loaded = &m->loaded};
    struct buf text = buf_in(m->arena);
    size_t examples = 0;
    if (!new_tool_find(m->command, &source, m->arena, &m->tool))
        return CLI_ERROR;
    if (m->tool.with_schema)
        m->tool.tools_file = NULL;
    struct str name = file_name(m->arena, m->tool.name);
    m->path = arena_printf(m->arena, "%s/" STR_FMT ".lua", m->folder, STR_ARG(name));
    place_schema(m, name);
    new_policy_write(&text, m->arena, &m->tool);
    if (m->print) {
        printf(STR_FMT, STR_ARG(buf_view(&text)));
        return CLI_OK;
    }
    if (!write_all(m, buf_view(&text)))
        return CLI_ERROR;
    if (!try_out(m, &examples)) {
        term_error(m->command->name, "%s is written, but does not hold yet: mend what stands above",
                   m->path.at);
        return CLI_NO;
    }
    say_next(m, examples);
    return CLI_OK;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct making m = {.command = command};
    int status;
    const struct cli_option table[] = {
        {"schema", "FILE", "the tool's JSON Schema", 0, OPTION_STRING, &m.schema_file},
        {"socket", "PATH", "as the daemon there has it, of an upstream for one", 's', OPTION_STRING,
         &m.socket},
        {"with-schema", NULL, "write a definition's schema into the policy, so that it needs no --tools", 0,
         OPTION_FLAG, &m.tool.with_schema},
        {"print", NULL, "to stdout, and no file", 0, OPTION_FLAG, &m.print},
        {"force", NULL, "write over a file that is there", 0, OPTION_FLAG, &m.force},
        LOCAL_OPTIONS(&m.loaded),
        {0},
    };
    if (!options_read(command, table, &argc, &argv, &status))
        return status;
    if (!*argv[0] || strlen(argv[0]) > 200) {
        term_error(command->name, "expected a tool's name, at most 200 bytes");
        return CLI_ERROR;
    }
    m.arena = arena_new();
    m.tool.name = str_of(argv[0]);
    m.folder = m.loaded.policies ? m.loaded.policies : CONFIG_DEFAULT_FOLDER;
    status = make(&m);
    arena_free(m.arena);
    return status;
}

const struct command command_new = {
    .name = "new",
    .operands = "TOOL",
    .summary = "write a first policy for a tool",
    .about =
        "Writes TOOL.lua into the folder of policies: what the tool's definition or schema tells, what\n"
        "can be guessed (told as a guess), and examples that hold as they stand. With --socket the tool is\n"
        "one of a running daemon, its upstream named in the policy. Without --schema, --tools and\n"
        "--socket it is a policy to fill in. Nothing is written over.",
    .exits = "  0  written, and its examples hold\n"
             "  1  written, and something of it does not hold\n"
             "  2  usage, a tool or file that is not there, a file that is there already",
    .example = "  toolgate new get_weather --tools tools.json\n"
               "  toolgate new read_file --socket /tmp/toolgate.sock\n"
               "  toolgate new create_invoice --schema invoice.schema.json --print",
    .least = 1,
    .most = 1,
    .run = run,
};
