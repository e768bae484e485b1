/* The configuration first, then systemd, then the socket's folder. */
#include "server/state_dir.h"

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

const char *state_dir_path(struct arena *arena, const struct config *config, const char *name)
{
    const char *folder = given(config);
    if (folder)
        return arena_printf(arena, "%.*s/%s", (int)strcspn(folder, ":"), folder, name).at;
    struct why why; /* an error here occurs again when the socket is made, and is reported then */
    unix_socket_make_directory(config->socket, "socket", &why);
    return arena_printf(arena, "%s.%s", config->socket, name).at;
}
