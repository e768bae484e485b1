/* The socket, the daemon behind it, and whether it is the one that these files and this program describe. */
#include "doctor/doctor_internal.h"

#include "base/version.h"

#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#define UNIT_NAME "toolgate.service"

static bool is_of_systemd(const struct doctor *d)
{
    return str_starts(str_of(d->socket), CONFIG_SYSTEM_FOLDER "/") && doctor_unit_path(d->arena, UNIT_NAME);
}

const char *doctor_start(const struct doctor *d)
{
    if (is_of_systemd(d))
        return "systemctl start toolgate.socket toolgate.service";
    if (d->config && d->config->file)
        return arena_printf(d->arena, "toolgate serve -c %s --socket %s", d->config->file, d->socket).at;
    return arena_printf(d->arena, "toolgate serve --socket %s", d->socket).at;
}

const char *doctor_restart(const struct doctor *d)
{
    if (is_of_systemd(d))
        return "systemctl restart toolgate.service";
    return arena_printf(d->arena, "kill %" PRId64 " && %s", d->status ? doctor_number(d->status, "pid") : 0,
                        doctor_start(d))
        .at;
}

const char *doctor_reload(const struct doctor *d)
{
    return arena_printf(d->arena, "toolgate reload --socket %s", d->socket).at;
}

/* Why this user cannot connect, and the group that can. */
static void add_forbidden(struct doctor *d, const struct stat *st)
{
    const struct group *group = getgrgid(st->st_gid);
    const char *fix = group && (st->st_mode & S_IWGRP)
                          ? arena_printf(d->arena, "usermod -aG %s USER, and log in again", group->gr_name).at
                          : "set socket_mode = \"0660\" in the configuration, and restart the daemon";
    doctor_add(d, DOCTOR_ERROR, "socket", "socket_forbidden", fix,
               "%s has mode %04o: this user (uid %u) may not connect", d->socket,
               (unsigned)st->st_mode & 07777u, (unsigned)getuid());
}

void doctor_check_socket(struct doctor *d)
{
    struct stat st;
    if (d->status)
        doctor_add(d, DOCTOR_OK, "socket", "socket", NULL, "%s: a daemon answers (pid %" PRId64 ")",
                   d->socket, doctor_number(d->status, "pid"));
    else if (stat(d->socket, &st) != 0)
        doctor_add(d, DOCTOR_ERROR, "socket", errno == ENOENT ? "socket_missing" : "socket_unreachable",
                   doctor_start(d), "%s: %s; no daemon runs there", d->socket, strerror(errno));
    else if (!S_ISSOCK(st.st_mode))
        doctor_add(d, DOCTOR_ERROR, "socket", "socket_is_file", "name the daemon's socket with --socket",
                   "%s is no socket", d->socket);
    else if (access(d->socket, W_OK) != 0)
        add_forbidden(d, &st);
    else
        doctor_add(d, DOCTOR_ERROR, "socket", "daemon_silent", doctor_start(d), STR_FMT,
                   STR_ARG(d->no_status));
    bool guarded = !d->config || d->config->allow_count;
    if (d->status && !guarded && stat(d->socket, &st) == 0 && (st.st_mode & S_IWOTH))
        doctor_add(d, DOCTOR_WARNING, "socket", "socket_open_to_all",
                   "set socket_mode = \"0660\", or say who may call what with allow = { … }",
                   "%s has mode %04o, and the configuration has no allow: every user of this host may call "
                   "every tool",
                   d->socket, (unsigned)st.st_mode & 07777u);
}

void doctor_check_version(struct doctor *d)
{
    struct str version = doctor_text(d->status, "version");
    if (!d->status)
        return;
    if (str_is(version, TOOLGATE_VERSION))
        doctor_add(d, DOCTOR_OK, "version", "version", NULL, "the daemon is toolgate " STR_FMT,
                   STR_ARG(version));
    else
        doctor_add(d, DOCTOR_WARNING, "version", "version_differs", doctor_restart(d),
                   "the daemon is toolgate " STR_FMT ", this program is " TOOLGATE_VERSION, STR_ARG(version));
    if (!doctor_status(d, "paths"))
        doctor_add(d, DOCTOR_WARNING, "version", "no_operator",
                   "run toolgate doctor as root, or as the user that runs the daemon",
                   "this user sees only part of the daemon's state: upstreams, paths and problems are not "
                   "checked");
}

void doctor_check_connections(struct doctor *d)
{
    const struct json *connections = doctor_status(d, "connections");
    int64_t open = doctor_number(connections, "open"), most = doctor_number(connections, "most");
    int64_t refused = doctor_number(connections, "refused");
    if (!connections)
        return;
    if (d->config && most < (int64_t)d->config->limits.connections)
        doctor_add(d, DOCTOR_WARNING, "limits", "files_below_connections",
                   "raise LimitNOFILE= of the service (systemctl edit toolgate.service), or ulimit -Hn, and "
                   "restart the daemon",
                   "limits.connections is %u, but the daemon's limit of open files allows %" PRId64,
                   d->config->limits.connections, most);
    else if (most > 0 && open >= most - most / 10)
        doctor_add(d, DOCTOR_WARNING, "limits", "connections_nearly_used", "raise limits.connections",
                   "%" PRId64 " of %" PRId64 " connections are open", open, most);
    else if (refused)
        doctor_add(d, DOCTOR_WARNING, "limits", "connections_refused",
                   "raise limits.connections, or add the user to allow; the daemon's log names them",
                   "the daemon has refused %" PRId64 " connections since its start", refused);
    else
        doctor_add(d, DOCTOR_OK, "limits", "connections", NULL,
                   "%" PRId64 " of %" PRId64 " connections are open", open, most);
}
