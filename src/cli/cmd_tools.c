/* toolgate tools: lists the tools as a model sees them, from files or from the running daemon. */
#include "base/arena.h"
#include "cli/rpc_call.h"
#include "cli/local_generation.h"
#include "cli/term.h"
#include "cli/print.h"
#include "catalog/catalog.h"
#include "json/parse.h"
#include "json/write.h"

#include <stdio.h>

#define TOOLS_DESCRIPTION_MAX_BYTES 100u /* in the list for people */
#define TOOLS_NAME_COLUMNS          128u /* a longer name is cut */
#define TOOLS_COLUMN                24u  /* where descriptions begin */
#define TOOLS_MAX_NODES             50000000u

/* One tool a line, and the whole is one JSON array. */
static void print_array(const struct json *tools)
{
    printf("[\n");
    for (size_t i = 0; i < tools->len; i++) {
        struct buf line = {0};
        json_write(&line, &tools->items[i]);
        print_json_text(buf_view(&line));
        printf("%s\n", i + 1 < tools->len ? "," : "");
        buf_clear(&line);
    }
    printf("]\n");
}

/* A name, or a sentence, of a server: on one line, without what would command the terminal. Returns its
 * columns. */
static unsigned print_foreign(struct str text, unsigned columns)
{
    struct buf line = {0};
    unsigned used = term_clip(&line, text, columns);
    printf(STR_FMT, STR_ARG(buf_view(&line)));
    buf_clear(&line);
    return used;
}

/* "  [upstream docs, there find]". */
static void print_place(struct str name, const struct json *place)
{
    struct str kind = json_str(json_get_text(place, "kind")),
               upstream = json_str(json_get_text(place, "upstream")),
               there = json_str(json_get_text(place, "tool"));
    const char *who = upstream.len ? "upstream " : str_is(kind, "exec") ? "a command" : "an HTTP endpoint";
    if (!kind.len)
        return;
    printf("%s  [%s" STR_FMT, term_colour(TERM_DIM), who, STR_ARG(upstream));
    if (there.len && !str_eq(there, name)) {
        printf(", there ");
        print_foreign(there, TOOLS_NAME_COLUMNS);
    }
    printf("]%s", term_colour(TERM_PLAIN));
}

/* "  [guarded by policies/paths.lua]": files of several tools; its own is named after it. */
static void print_guards(const struct json *files)
{
    if (!json_is(files, JSON_ARRAY))
        return;
    printf("%s  [guarded by ", term_colour(TERM_DIM));
    for (size_t i = 0; i < files->len; i++)
        printf("%s" STR_FMT, i ? ", " : "", STR_ARG(json_str(&files->items[i])));
    printf("]%s", term_colour(TERM_PLAIN));
}

/* What the list says beside the definitions: by tool. */
struct tool_notes {
    const struct json *places, *guessed, *guards;
};

/* Returns how many effects are guessed. */
static size_t print_names(const struct json *tools, const struct tool_notes *notes)
{
    size_t guesses = 0;
    for (size_t i = 0; i < tools->len; i++) {
        struct str name = json_str(json_get_text(&tools->items[i], "name"));
        struct str description = json_str(json_get_text(&tools->items[i], "description"));
        const char *end = description.len ? memchr(description.at, '\n', description.len) : NULL;
        if (end)
            description.len = (size_t)(end - description.at);
        printf("%s", term_colour(TERM_BOLD));
        unsigned used = print_foreign(name, TOOLS_NAME_COLUMNS);
        printf("%s%*s ", term_colour(TERM_PLAIN), used < TOOLS_COLUMN ? (int)(TOOLS_COLUMN - used) : 0, "");
        print_foreign(str_cut(description, TOOLS_DESCRIPTION_MAX_BYTES), TOOLS_DESCRIPTION_MAX_BYTES);
        print_place(name, json_get(notes->places, name));
        print_guards(json_get(notes->guards, name));
        struct str effects = json_str(json_get(notes->guessed, name));
        if (effects.len) {
            printf("%s  [" STR_FMT "?]%s", term_colour(TERM_DIM), STR_ARG(effects), term_colour(TERM_PLAIN));
            guesses++;
        }
        putchar('\n');
    }
    return guesses;
}

static int print(bool names, const struct json *tools, const struct tool_notes *notes)
{
    if (!names)
        print_array(tools);
    else if (print_names(tools, notes))
        fprintf(stderr, "[read?], [write?] and [destructive?] are guessed from the tool's name; "
                        "declare effects = \"…\" in its policy.\n");
    return CLI_OK;
}

static int print_answer(void *owner, const struct json *answer)
{
    const struct json *tools = json_get_text(answer, "tools");
    if (!json_is(tools, JSON_ARRAY)) {
        term_error(
            "tools",
            "expected a list of tools from the daemon: does it have the same version as this program?");
        return CLI_ERROR;
    }
    const struct tool_notes notes = {json_get_text(answer, "runs_at"),
                                     json_get_text(answer, "guessed_effects"),
                                     json_get_text(answer, "guarded_by")};
    return print(*(const bool *)owner, tools, &notes);
}

static int ask(const struct command *command, const char *socket, const char *format, bool strict, bool names)
{
    struct buf params = {0};
    struct json_out out = json_out(&params);
    json_open(&out, '{');
    json_field_text(&out, "format", format);
    json_field_bool(&out, "strict", strict);
    json_close(&out, '}');
    int status = (names ? rpc_call_text : rpc_call)(command, socket, "toolgate/tools", buf_view(&params),
                                                    print_answer, &names);
    buf_clear(&params);
    return status;
}

static int load(const struct command *command, const struct local_options *options,
                enum provider_format format, bool strict, bool names)
{
    static const struct json_limits limits = {.nodes = TOOLS_MAX_NODES};
    struct generation *generation = local_generation_load(command, options);
    if (!generation)
        return CLI_ERROR;
    struct arena *arena = arena_new();
    struct peer peer;
    local_peer(&peer);
    struct buf text = buf_in(arena), where = buf_in(arena), guesses = buf_in(arena), files = buf_in(arena);
    struct catalog_request request = {.provider = {.format = format, .strict = strict},
                                      .all = true,
                                      .peer = &peer,
                                      .places = &where,
                                      .guessed = &guesses,
                                      .guards = &files};
    struct json tools, places, guessed, guards;
    struct json_error fault;
    int status = CLI_ERROR;
    catalog_write(arena, generation, &request, &text);
    if (json_parse(arena, buf_view(&text), &limits, &tools, &fault) == OK &&
        json_parse(arena, buf_view(&where), &limits, &places, &fault) == OK &&
        json_parse(arena, buf_view(&guesses), &limits, &guessed, &fault) == OK &&
        json_parse(arena, buf_view(&files), &limits, &guards, &fault) == OK)
        status = print(names, &tools, &(struct tool_notes){&places, &guessed, &guards});
    else
        term_error(command->name, "the list is too large to print: %s", fault.text);
    arena_free(arena);
    generation_unref(generation);
    return status;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct local_options options = {0};
    const char *socket = NULL, *name = NULL;
    enum provider_format format = PROVIDER_FORMAT_MCP;
    bool strict = false, json = false;
    int status;
    const struct cli_option table[] = {
        {"format", "mcp|openai|anthropic|gemini", "print the definitions as JSON", 'f', OPTION_STRING, &name},
        {"strict", NULL, "openai: strict mode", 0, OPTION_FLAG, &strict},
        {"json", NULL, "the same as --format mcp", 'j', OPTION_FLAG, &json},
        {"socket", "PATH", "ask the daemon there instead of loading files", 's', OPTION_STRING, &socket},
        LOCAL_OPTIONS(&options),
        {0},
    };
    if (!options_read(command, table, &argc, &argv, &status))
        return status;
    if (name && provider_format_named(str_of(name), &format) != OK) {
        term_error(command->name, "--format: expected mcp, openai, anthropic or gemini, got '%s'", name);
        return CLI_ERROR;
    }
    if (socket)
        return ask(command, socket, name ? name : "mcp", strict, !name && !json);
    return load(command, &options, format, strict, !name && !json);
}

const struct command command_tools = {
    .name = "tools",
    .operands = "",
    .summary = "list the tools as a model sees them",
    .about =
        "Prints names and descriptions; with --format the definitions, in the form that a provider's API\n"
        "takes. Loads the files that serve would load, or asks a daemon with --socket.",
    .exits = "  0  the list is on stdout\n"
             "  2  usage, files that do not load, no daemon",
    .example = "  toolgate tools --policies policies\n"
               "  toolgate tools --format openai --strict --socket /tmp/toolgate.sock",
    .run = run,
};
