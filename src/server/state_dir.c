/* The configuration first, then systemd, then the socket's folder. */
#include "server/state_dir.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/log.h"
#include "catalog/generation.h"
#include "catalog/tool.h"
#include "io/file.h"
#include "io/unix_socket.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *given(const struct config *config)
{
    const char *folder = config->state ? config->state : getenv("STATE_DIRECTORY");
    return folder && *folder ? folder : NULL;
}

/* The first of systemd's list. */
static const char *folder_of(const struct config *config, char path[PATH_MAX])
{
    const char *folder = given(config);
    snprintf(path, PATH_MAX, "%.*s", folder ? (int)strcspn(folder, ":") : 0, folder ? folder : "");
    return path;
}

static bool is_trusted(uid_t owner)
{
    return owner == 0 || owner == geteuid();
}

static enum err check_folder(const char *path, struct why *why)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
        return OK;
    if (!is_trusted(st.st_uid))
        return err_set(
            why, ERR_CONFIG,
            "state: the folder %s belongs to uid %u, not to the daemon's user (uid %u): chown -R %u %s, "
            "after a look at what is in it, or choose another",
            path, (unsigned)st.st_uid, (unsigned)geteuid(), (unsigned)geteuid(), path);
    if (st.st_mode & (S_IWGRP | S_IWOTH))
        return err_set(
            why, ERR_CONFIG,
            "state: other users may write into the folder %s: look at what is in it, then chmod go-w %s",
            path, path);
    return OK;
}

enum err state_dir_prepare(const struct config *config, struct why *why)
{
    char path[PATH_MAX], real[PATH_MAX];
    struct stat link;
    if (!given(config))
        return OK;
    folder_of(config, path);
    if (mkdir(path, 0700) == 0)
        log_event(LOG_INFO, "state_created", LOG_TEXT("folder", path));
    if (lstat(path, &link) != 0 || !realpath(path, real))
        return OK;
    if (S_ISLNK(link.st_mode) && !is_trusted(link.st_uid))
        return err_set(why, ERR_CONFIG,
                       "state: %s is a symbolic link of uid %u: remove it, or choose another", path,
                       (unsigned)link.st_uid);
    enum err err = check_folder(real, why);
    if (!err && (err = file_check_above(real, why)))
        err_prefix(why, "state");
    return err;
}

bool state_dir_is_given(const struct config *config)
{
    return given(config) != NULL;
}

const char *state_dir_folder(struct arena *arena, const struct config *config)
{
    char folder[PATH_MAX];
    return given(config) ? arena_dup(arena, str_of(folder_of(config, folder))).at : NULL;
}

static const char *path_of(struct arena *arena, const struct config *config, const char *name)
{
    char folder[PATH_MAX];
    if (given(config))
        return arena_printf(arena, "%s/%s", folder_of(config, folder), name).at;
    return arena_printf(arena, "%s.%s", config->socket, name).at;
}

const char *state_dir_beside_socket(struct arena *arena, const struct config *config, const char *name)
{
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

/* ---- the file `guarded`: a policy has a tool's name, an upstream letters, digits, '_' and '-'; a line with
 * anything else is skipped ---- */

static const char *guarded_path(struct arena *arena, const struct config *config)
{
    return state_dir_is_given(config) ? state_dir_path(arena, config, "guarded") : NULL;
}

static struct str read_text(struct arena *arena, const char *path)
{
    struct str text = STR_NONE;
    struct why why;
    if (access(path, F_OK) == 0 && file_read(arena, path, GUARDED_FILE_MAX_BYTES, &text, &why) != OK)
        log_event(LOG_ERROR, "guarded_unreadable", LOG_TEXT("why", why.text));
    return text;
}

struct guarded_tool *guarded_file_read(struct arena *arena, const struct config *config, size_t *count)
{
    const char *path = guarded_path(arena, config);
    struct str text = path ? read_text(arena, path) : STR_NONE;
    size_t lines = 0;
    *count = 0;
    for (size_t i = 0; i < text.len; i++)
        lines += text.at[i] == '\n';
    struct guarded_tool *list = ARENA_ARRAY(arena, struct guarded_tool, lines + 1);
    for (const char *end; text.len && (end = memchr(text.at, '\n', text.len));) {
        struct str line = {text.at, (size_t)(end - text.at)};
        const char *space = line.len ? memchr(line.at, ' ', line.len) : NULL;
        struct str policy = {line.at, space ? (size_t)(space - line.at) : 0};
        struct str upstream = str_from(line, policy.len + 1);
        text = str_from(text, line.len + 1);
        if (tool_name_fits(policy) && str_is_name(upstream))
            list[(*count)++] = (struct guarded_tool){.policy = policy, .upstream = upstream};
    }
    return list;
}

void guarded_file_write(const struct config *config, const struct guarded_tool *list, size_t count)
{
    struct arena *arena = arena_new();
    const char *path = guarded_path(arena, config);
    struct buf text = buf_in(arena);
    struct why why;
    for (size_t i = 0; i < count; i++)
        buf_printf(&text, STR_FMT " " STR_FMT "\n", STR_ARG(list[i].policy), STR_ARG(list[i].upstream));
    if (path && !str_eq(read_text(arena, path), buf_view(&text)) &&
        file_replace(path, buf_view(&text), false, &why) != OK)
        log_event(LOG_ERROR, "guarded_not_kept", LOG_TEXT("why", why.text));
    arena_free(arena);
}
