/* The configuration first, then systemd, then the socket's folder. */
#include "state/state_dir.h"

#include "base/arena.h"
#include "io/unix_socket.h"

#include <stdlib.h>

static const char *given(const struct config *config)
{
    const char *folder = config->state ? config->state : getenv("STATE_DIRECTORY");
    return folder && *folder ? folder : NULL;
}

bool state_dir_is_given(const struct config *config)
{
    return given(config) != NULL;
}

static const char *path_of(struct arena *arena, const struct config *config, const char *name)
{
    const char *folder = given(config);
    if (folder)
        return arena_printf(arena, "%.*s/%s", (int)strcspn(folder, ":"), folder, name).at;
    return arena_printf(arena, "%s.%s", config->socket, name).at;
}

const char *state_dir_path(struct arena *arena, const struct config *config, const char *name)
{
    struct why why; /* an error here occurs again when the socket is made, and is reported then */
    if (!given(config))
        unix_socket_make_directory(config->socket, "socket", &why);
    return path_of(arena, config, name);
}

const char *state_dir_decisions(struct arena *arena, const struct config *config)
{
    const struct config_decisions *decisions = &config->decisions;
    if (!decisions->on || !decisions->to_file)
        return NULL;
    return decisions->file ? decisions->file : path_of(arena, config, DECISIONS_FILE_NAME);
}
