/* Configuration, policies, state folder and decision log. */
#include "doctor/doctor_internal.h"

#include "base/clock.h"
#include "catalog/generation.h"
#include "catalog/shadow.h"
#include "policy/policy_set.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

void doctor_check_config(struct doctor *d)
{
    const char *file = d->config && d->config->file ? d->config->file : NULL;
    struct str serving = doctor_text(doctor_status(d, "generation"), "config_hash");
    char hash[24];
    if (!d->config) /* its errors are those of the policies' check, which loads it, too */
        return;
    snprintf(hash, sizeof(hash), "%016" PRIx64, d->config->hash);
    if (serving.len && !str_is(serving, hash))
        doctor_add(d, DOCTOR_WARNING, "config", "config_differs", doctor_reload(d),
                   "the daemon serves another configuration than %s", file ? file : "the default one");
    else
        doctor_add(d, DOCTOR_OK, "config", "config", NULL, "%s%s",
                   file ? file : "no file: the defaults apply", serving.len ? ", as the daemon has it" : "");
}

/* One line for each error. */
static void add_reload(struct doctor *d)
{
    struct str errors = doctor_text(doctor_status(d, "reload"), "errors");
    while (errors.len) {
        const char *end = memchr(errors.at, '\n', errors.len);
        struct str line = {errors.at, end ? (size_t)(end - errors.at) : errors.len};
        doctor_add(d, DOCTOR_ERROR, "policies", "reload_failed", doctor_reload(d),
                   "the last reload failed, and the daemon serves what it had: " STR_FMT, STR_ARG(line));
        errors = str_from(errors, line.len + 1);
    }
}

static void add_unmatched(struct doctor *d)
{
    const struct json *list = json_get_text(doctor_status(d, "generation"), "unmatched");
    for (uint32_t i = 0; json_is(list, JSON_ARRAY) && i < list->len; i++) {
        const struct json *one = &list->items[i];
        bool waits = str_is(doctor_text(one, "state"), "waiting");
        doctor_add(d, waits ? DOCTOR_WARNING : DOCTOR_ERROR, "policies",
                   waits ? "policy_waits" : "policy_without_tool",
                   waits ? "start its upstream: see above"
                         : "name a tool that the server has: toolgate tools lists them",
                   STR_FMT " guards no tool: '" STR_FMT "' %s" STR_FMT, STR_ARG(doctor_text(one, "file")),
                   STR_ARG(doctor_text(one, "tool")), waits ? "is not listed yet" : "",
                   STR_ARG(doctor_text(one, "why")));
    }
}

static void add_quarantined(struct doctor *d)
{
    const struct json *list = doctor_status(d, "quarantined");
    for (uint32_t i = 0; json_is(list, JSON_ARRAY) && i < list->len; i++) {
        const struct json *one = &list->items[i];
        doctor_add(d, DOCTOR_ERROR, "policies", "policy_quarantined",
                   arena_printf(d->arena,
                                "correct the file; or remove its lines from " STR_FMT " and restart",
                                STR_ARG(doctor_text(one, "list")))
                       .at,
                   STR_FMT " is quarantined: " STR_FMT, STR_ARG(doctor_text(one, "file")),
                   STR_ARG(doctor_text(one, "why")));
    }
}

static void add_faults(struct doctor *d)
{
    const struct json *list = doctor_status(d, "policy_faults");
    for (uint32_t i = 0; json_is(list, JSON_ARRAY) && i < list->len; i++) {
        const struct json *one = &list->items[i];
        struct str tool = doctor_text(one, "tool");
        doctor_add(d, DOCTOR_WARNING, "policies", "policy_fault",
                   "correct the policy, and add the case as an example",
                   "the policy of '" STR_FMT "' failed %" PRId64 " times, last: " STR_FMT,
                   STR_ARG(tool.len ? tool : doctor_text(one, "gateway")), doctor_number(one, "count"),
                   STR_ARG(doctor_text(one, "last")));
    }
}

/* Of the files as they are, not as they are served. */
static void add_expired(struct doctor *d)
{
    struct shadow_expiry *list;
    size_t count = d->generation ? shadow_expired(d->generation, clock_wall_ms(), d->arena, &list) : 0;
    for (size_t i = 0; i < count; i++)
        doctor_add(d, DOCTOR_WARNING, "policies", "shadow_expired",
                   "toolgate shadow says whether it is safe to enforce", STR_FMT ": " STR_FMT,
                   STR_ARG(list[i].file), STR_ARG(list[i].sentence));
}

/* As after the installation. */
static bool serves_nothing(const struct doctor *d)
{
    return d->generation && !d->generation->tool_count && !d->generation->config.upstream_count;
}

/* What `serve --check` says of the files. */
void doctor_check_policies(struct doctor *d)
{
    size_t before = d->count;
    for (size_t i = 0; i < d->report->error_count; i++)
        doctor_add(d, DOCTOR_ERROR, d->config ? "policies" : "config", "load_error",
                   "correct it; toolgate serve --check repeats this check", STR_FMT,
                   STR_ARG(d->report->errors[i]));
    for (size_t i = 0; i < d->report->warning_count; i++)
        doctor_add(d, DOCTOR_WARNING, "policies", "load_warning",
                   serves_nothing(d) ? "name a server in upstreams = { … }, or write a policy: toolgate new"
                                     : NULL,
                   STR_FMT, STR_ARG(d->report->warnings[i]));
    add_expired(d);
    if (!d->report->error_count)
        add_reload(d);
    add_unmatched(d);
    add_quarantined(d);
    add_faults(d);
    if (d->count == before && d->generation)
        doctor_add(d, DOCTOR_OK, "policies", "policies", NULL, "%zu policies load, %zu examples hold",
                   policy_set_count(d->generation->policies), d->report->example_count);
}

/* ---- the state folder ---- */

/* The daemon's own answer first: systemd gives it a folder that this process does not know. */
static const char *state_folder(const struct doctor *d)
{
    struct str state = doctor_text(doctor_status(d, "paths"), "state");
    const char *path = state.len ? arena_dup(d->arena, state).at : d->config ? d->config->state : NULL;
    if (path)
        return path;
    const char *slash = strrchr(d->socket, '/');
    return slash == d->socket ? "/"
           : slash            ? arena_printf(d->arena, "%.*s", (int)(slash - d->socket), d->socket).at
                              : ".";
}

static void check_room(struct doctor *d, const char *folder)
{
    struct statvfs disk;
    if (statvfs(folder, &disk) != 0)
        return;
    uint64_t left = (uint64_t)disk.f_bavail * disk.f_frsize;
    enum doctor_level level = left < DOCTOR_ROOM_ERROR_BYTES  ? DOCTOR_ERROR
                              : left < DOCTOR_ROOM_WARN_BYTES ? DOCTOR_WARNING
                                                              : DOCTOR_OK;
    const char *fix =
        level
            ? arena_printf(d->arena, "free space: df -h %s; or set state to a folder on another disk", folder)
                  .at
            : NULL;
    doctor_add(d, level, "state", level ? "disk_full" : "state", fix, "%s: %" PRIu64 " MiB are free%s",
               folder, left >> 20, level ? ", and the decision log needs room" : "");
}

uid_t doctor_daemon_user(const struct doctor *d, uid_t unknown)
{
    struct stat st;
    int64_t pid = d->status ? doctor_number(d->status, "pid") : 0;
    const char *path = arena_printf(d->arena, "/proc/%" PRId64, pid).at;
    return pid && stat(path, &st) == 0 ? st.st_uid : unknown;
}

void doctor_check_state(struct doctor *d)
{
    const char *folder = state_folder(d);
    struct stat st;
    if (stat(folder, &st) != 0) {
        doctor_add(
            d, d->status ? DOCTOR_ERROR : DOCTOR_WARNING, "state", "state_missing",
            arena_printf(d->arena, "install -d -m 0700 -o USER %s, with the user of the daemon", folder).at,
            "%s: %s; quarantine, decision log and call ids have no place", folder, strerror(errno));
        return;
    }
    bool configured = d->config && d->config->state;
    if (configured && (st.st_mode & (S_IWGRP | S_IWOTH)) && !(st.st_mode & S_ISVTX))
        doctor_add(d, DOCTOR_ERROR, "state", "state_open", arena_printf(d->arena, "chmod 0700 %s", folder).at,
                   "%s has mode %04o: others may replace the daemon's keys and records", folder,
                   (unsigned)st.st_mode & 07777u);
    uid_t user = doctor_daemon_user(d, st.st_uid);
    if (configured && user != st.st_uid)
        doctor_add(d, DOCTOR_ERROR, "state", "state_owner",
                   arena_printf(d->arena, "chown -R %u %s", (unsigned)user, folder).at,
                   "%s belongs to uid %u, the daemon runs as uid %u", folder, (unsigned)st.st_uid,
                   (unsigned)user);
    check_room(d, folder);
}

/* ---- the decision log ---- */

static void check_sink(struct doctor *d, const struct json *sink)
{
    struct str path = doctor_text(sink, "path"), error = doctor_text(sink, "why"),
               state = doctor_text(sink, "state");
    bool is_file = str_is(doctor_text(sink, "kind"), "file");
    int64_t dropped = doctor_number(sink, "dropped");
    if (!str_is(state, "up"))
        doctor_add(d, DOCTOR_ERROR, "decisions", "decisions_down",
                   arena_printf(d->arena,
                                is_file ? "make " STR_FMT " writable for the daemon: ls -ld, df -h"
                                        : "start what reads " STR_FMT ", or see why it does not read: ss -xa",
                                STR_ARG(path))
                       .at,
                   "the decision log cannot be written: " STR_FMT " is " STR_FMT "%s" STR_FMT, STR_ARG(path),
                   STR_ARG(state), error.len ? ": " : "", STR_ARG(error));
    else if (dropped)
        doctor_add(d, DOCTOR_WARNING, "decisions", "decisions_dropped",
                   is_file ? "look for a full or slow disk: df -h, iostat"
                           : "look at what reads it: it was away or too slow",
                   "%" PRId64 " records were dropped since the daemon's start (" STR_FMT ")", dropped,
                   STR_ARG(path));
    else
        doctor_add(d, DOCTOR_OK, "decisions", "decisions", NULL, STR_FMT ": %" PRId64 " records written",
                   STR_ARG(path), doctor_number(sink, "written"));
}

void doctor_check_decisions(struct doctor *d)
{
    const struct json *decisions = doctor_status(d, "decisions"), *sinks = json_get_text(decisions, "sinks");
    if (d->config && !d->config->decisions.on)
        doctor_add(d, DOCTOR_WARNING, "decisions", "decisions_off", "remove decisions = false",
                   "the decision log is off: nobody can say later which calls were refused, and why");
    for (uint32_t i = 0; json_is(sinks, JSON_ARRAY) && i < sinks->len; i++)
        check_sink(d, &sinks->items[i]);
    int64_t lines = d->status ? doctor_number(d->status, "log_lines_dropped") : 0;
    if (lines > 0)
        doctor_add(d, DOCTOR_WARNING, "log", "log_lines_dropped",
                   "see whether its disk is full, or what reads it stands still",
                   "the daemon's log has lost %" PRId64 " lines since its start", lines);
}
