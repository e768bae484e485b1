/* toolgate/status has the files, toolgate/tools what upstreams have listed. */
#include "cli/daemon_files.h"

#include "base/arena.h"
#include "base/buf.h"
#include "cli/daemon_client.h"
#include "cli/term.h"
#include "config/config.h"
#include "json/write.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static const char *text_of(struct arena *arena, const struct json *value)
{
    return json_is(value, JSON_STRING) ? arena_dup(arena, json_str(value)).at : NULL;
}

/* The file of the definitions that servers have sent: files have those of the others. It ends with this
 * process. NULL: no memory. */
static const char *definition_file(struct arena *arena, const struct json *answer)
{
    const struct json *tools = json_get_text(answer, "tools"), *places = json_get_text(answer, "runs_at");
    struct buf text = buf_in(arena);
    struct json_out out = json_out(&text);
    json_open(&out, '[');
    for (uint32_t i = 0; json_is(tools, JSON_ARRAY) && i < tools->len; i++) {
        const struct json *place = json_get(places, json_str(json_get_text(&tools->items[i], "name")));
        if (str_is(json_str(json_get_text(place, "kind")), "mcp"))
            json_put_raw(&out, json_to_str(arena, &tools->items[i]));
    }
    json_close(&out, ']');
    int fd = memfd_create("definitions", MFD_CLOEXEC);
    bool written = fd >= 0 && write(fd, text.at, text.len) == (ssize_t)text.len;
    return written ? arena_printf(arena, "/proc/self/fd/%d", fd).at : NULL;
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
static bool add_more_tools(const struct command *command, struct arena *arena, struct local_options *local,
                           const struct json *tools)
{
    struct config_sources sources = {.file = local->config, .offline = true};
    struct config config;
    struct why why;
    bool good = config_load(&sources, &config, &why) == OK;
    if (!good)
        term_error(command->name, "%s", why.text);
    for (uint32_t i = 0; good && json_is(tools, JSON_ARRAY) && i < tools->len && i < OPTIONS_LIST_MAX; i++) {
        const char *path = text_of(arena, &tools->items[i]);
        if (path && !has_file(&config, path))
            good = add_tools(command, local, path);
    }
    config_free(&config);
    return good;
}

bool daemon_files_apply(const struct command *command, const char *socket, struct arena *arena,
                        struct local_options *local)
{
    struct json status, tools;
    struct why why;
    if (daemon_client_once(socket, arena, "toolgate/status", STR_LIT("{}"), &status, &why) != OK) {
        term_error(command->name, "%s", why.text);
        return false;
    }
    const struct json *paths = json_get_text(&status, "paths");
    if (!paths) {
        term_error(command->name,
                   "the daemon at %s tells its files only to root and to the user that runs it: name them "
                   "with -c, --policies and --tools, or run this as that user",
                   socket);
        return false;
    }
    bool own_config = local->config != NULL;
    if (!own_config)
        local->config = text_of(arena, json_get_text(paths, "config"));
    if (!local->policies)
        local->policies = text_of(arena, json_get_text(paths, "policies"));
    if (!own_config && !add_more_tools(command, arena, local, json_get_text(paths, "tools")))
        return false;
    if (daemon_client_once(socket, arena, "toolgate/tools", STR_LIT("{}"), &tools, &why) != OK) {
        term_error(command->name, "%s", why.text);
        return false;
    }
    const char *definitions = definition_file(arena, &tools);
    if (!definitions)
        term_error(command->name, "the daemon's definitions could not be kept: no memory");
    return definitions && add_tools(command, local, definitions);
}
