/* Looks for the log, then for its older files. */
#include "review/daemon_log.h"

#include "base/arena.h"
#include "cli/daemon_client.h"
#include "cli/term.h"
#include "config/config.h"
#include "state/state_dir.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define SYSTEM_STATE "/var/lib/toolgate" /* StateDirectory= of the service */

static const struct json *ask(const char *socket, struct arena *arena)
{
    struct daemon_client *client;
    struct json *status = ARENA_NEW(arena, struct json);
    struct why why;
    if (daemon_client_connect(socket, &client, &why) != OK)
        return NULL;
    enum err err = daemon_client_call(client, arena, "toolgate/status", STR_LIT("{}"), status, &why);
    daemon_client_close(client);
    return err ? NULL : status;
}

/* NULL after an error on stderr. */
static const char *told(const struct command *command, const char *socket, struct arena *arena,
                        const struct json *status)
{
    const struct json *paths = json_get_text(status, "paths"), *file = json_get_text(paths, "decisions");
    if (file)
        return arena_dup(arena, json_str(file)).at;
    if (paths)
        term_error(command->name,
                   "the daemon at %s writes no file of decisions: set decisions = true in its configuration, "
                   "without file = false, or name a FILE",
                   socket);
    else
        term_error(command->name,
                   "the daemon at %s tells its files only to root and to the user that runs it: run this as "
                   "one of them, or name a FILE",
                   socket);
    return NULL;
}

/* Also true for a file in a folder that may not be read. */
static bool exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 || errno == EACCES;
}

/* NULL after an error on stderr. */
static const char *by_default(const struct command *command, const char *socket, bool any,
                              struct arena *arena)
{
    struct config config = {.socket = socket};
    config_init(&config);
    const char *beside = state_dir_decisions(arena, &config);
    const char *system = SYSTEM_STATE "/" DECISIONS_FILE_NAME;
    if (exists(beside))
        return beside;
    if (any && exists(system))
        return system;
    term_error(command->name,
               "no daemon answers at %s, and there is no log at %s: start the daemon, name its socket with "
               "--socket, or name a FILE",
               socket, beside);
    return NULL;
}

static bool may_read(const struct command *command, const char *path)
{
    struct stat st;
    if (access(path, R_OK) == 0)
        return true;
    int error = errno;
    const struct passwd *owner = stat(path, &st) == 0 ? getpwuid(st.st_uid) : NULL;
    if (error == EACCES)
        term_error(command->name,
                   "%s: only root and the user %s may read it: run this as one of them, with sudo", path,
                   owner ? owner->pw_name : "of the daemon");
    else
        term_error(command->name, "%s: %s: wait for the daemon's first call, or name a FILE", path,
                   strerror(error));
    return false;
}

/* FILE.N, …, FILE.1, FILE. An operator may have taken one away: what is older than it is read all the same.
 */
static void add_files(struct arena *arena, const char *path, size_t rotated, struct daemon_log *out)
{
    const char **files = ARENA_ARRAY(arena, const char *, rotated + 1);
    size_t count = 0;
    for (size_t i = rotated; i > 0; i--) {
        const char *file = arena_printf(arena, "%s.%zu", path, i).at;
        if (access(file, F_OK) == 0)
            files[count++] = file;
    }
    files[count++] = path;
    out->files = files;
    out->count = count;
}

static bool is_missing(const char *path)
{
    return access(path, F_OK) != 0 && errno == ENOENT;
}

bool daemon_log_find(const struct command *command, const char *socket, enum daemon_log_part part,
                     struct arena *arena, struct daemon_log *out)
{
    const char *place = socket ? socket : daemon_client_default_socket(arena);
    *out = (struct daemon_log){.status = ask(place, arena)};
    const char *path =
        out->status ? told(command, place, arena, out->status) : by_default(command, place, !socket, arena);
    bool written_only = part == DAEMON_LOG_WRITTEN;
    if (!path || (!(written_only && is_missing(path)) && !may_read(command, path)))
        return false;
    add_files(arena, path, written_only ? 0 : DECISIONS_KEEP_MAX, out);
    for (size_t i = 0; isatty(STDERR_FILENO) && i < out->count; i++)
        fprintf(stderr, "%s%s%s", i ? ", " : "reading ", out->files[i], i + 1 == out->count ? "\n" : "");
    return true;
}

const struct json *daemon_log_status(const struct command *command, const char *socket, struct arena *arena)
{
    const struct json *status = ask(socket, arena);
    if (!status)
        term_error(command->name, "no daemon answers at %s: name the socket of one, or leave --socket out",
                   socket);
    return status;
}
