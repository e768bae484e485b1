/* toolgate/status has the files, toolgate/tools what upstreams have listed. */
#include "cli/daemon_files.h"

#include "base/arena.h"
#include "base/buf.h"
#include "cli/rpc_call.h"
#include "cli/term.h"
#include "config/config.h"
#include "json/write.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct daemon_files {
    const char *config, *policies; /* absolute; NULL: it has none */
    struct cli_list tools;         /* absolute, those of the configuration among them */
    bool told;                     /* false: only root and the daemon's user learn them */
};

struct question {
    const struct command *command;
    struct arena *arena;
    struct daemon_files *files;
    struct buf *definitions;
};

static const char *text_of(struct arena *arena, const struct json *value)
{
    return json_is(value, JSON_STRING) ? arena_dup(arena, json_str(value)).at : NULL;
}

static int on_status(void *owner, const struct json *answer)
{
    struct question *q = owner;
    const struct json *paths = json_get_text(answer, "paths"), *tools = json_get_text(paths, "tools");
    q->files->told = paths != NULL;
    q->files->config = text_of(q->arena, json_get_text(paths, "config"));
    q->files->policies = text_of(q->arena, json_get_text(paths, "policies"));
    for (uint32_t i = 0; json_is(tools, JSON_ARRAY) && i < tools->len && i < OPTIONS_LIST_MAX; i++)
        q->files->tools.items[q->files->tools.count++] = text_of(q->arena, &tools->items[i]);
    return CLI_OK;
}

/* Definitions that servers have sent: files have those of the others. */
static int on_tools(void *owner, const struct json *answer)
{
    struct question *q = owner;
    const struct json *tools = json_get_text(answer, "tools"), *places = json_get_text(answer, "runs_at");
    struct json_out out = json_out(q->definitions);
    json_open(&out, '[');
    for (uint32_t i = 0; json_is(tools, JSON_ARRAY) && i < tools->len; i++) {
        const struct json *place = json_get(places, json_str(json_get_text(&tools->items[i], "name")));
        if (str_is(json_str(json_get_text(place, "kind")), "mcp"))
            json_put_raw(&out, json_to_str(q->arena, &tools->items[i]));
    }
    json_close(&out, ']');
    return CLI_OK;
}

static const char *definition_file(struct question *q, const char *socket)
{
    struct buf text = buf_in(q->arena);
    q->definitions = &text;
    if (rpc_call(q->command, socket, "toolgate/tools", str_of("{}"), on_tools, q) != CLI_OK)
        return NULL;
    int fd = memfd_create("definitions", MFD_CLOEXEC);
    if (fd < 0 || write(fd, text.at, text.len) != (ssize_t)text.len) {
        term_error(q->command->name, "the daemon's definitions could not be kept: no memory");
        return NULL;
    }
    return arena_printf(q->arena, "/proc/self/fd/%d", fd).at;
}

static bool add_tools(const struct command *command, struct local_options *local, const char *path)
{
    if (local->tools.count == OPTIONS_LIST_MAX) {
        term_error(command->name, "the daemon and --tools name more than %u files of tools",
                   OPTIONS_LIST_MAX);
        return false;
    }
    local->tools.items[local->tools.count++] = path;
    return true;
}

/* Whether the configuration names this file itself. */
static bool has_file(const struct config *config, const char *path)
{
    bool found = false;
    for (size_t i = 0; !found && i < config->tools.count; i++) {
        char *full = realpath(config->tools.list[i], NULL);
        found = full && strcmp(full, path) == 0;
        free(full);
    }
    return found;
}

/* Those that the daemon was given by --tools; the configuration brings its own. */
static bool add_more_tools(const struct command *command, struct local_options *local,
                           const struct daemon_files *files)
{
    struct config_sources sources = {.file = local->config, .offline = true};
    struct config config;
    struct why why;
    bool good = config_load(&sources, &config, &why) == OK;
    if (!good)
        term_error(command->name, "%s", why.text);
    for (size_t i = 0; good && i < files->tools.count; i++)
        if (!has_file(&config, files->tools.items[i]))
            good = add_tools(command, local, files->tools.items[i]);
    config_free(&config);
    return good;
}

bool daemon_files_apply(const struct command *command, const char *socket, struct arena *arena,
                        struct local_options *local)
{
    struct daemon_files files = {0};
    struct question q = {.command = command, .arena = arena, .files = &files};
    if (rpc_call(command, socket, "toolgate/status", str_of("{}"), on_status, &q) != CLI_OK)
        return false;
    if (!files.told) {
        term_error(command->name,
                   "the daemon at %s tells its files only to root and to the user that runs it: name them "
                   "with -c, --policies and --tools, or run this as that user",
                   socket);
        return false;
    }
    bool own_config = local->config != NULL;
    if (!own_config)
        local->config = files.config;
    if (!local->policies)
        local->policies = files.policies;
    if (!own_config && !add_more_tools(command, local, &files))
        return false;
    const char *definitions = definition_file(&q, socket);
    return definitions && add_tools(command, local, definitions);
}
