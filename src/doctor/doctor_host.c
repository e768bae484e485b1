/* What the host gives: open files, the clock, systemd's unit, libcurl. */
#include "doctor/doctor_internal.h"

#include "base/clock.h"
#include "catalog/generation.h"
#include "confine/confine.h"
#include "upstream/http/fetch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/timex.h>
#include <unistd.h>

#define FILES_BESIDE_CONNECTIONS 64u /* log, Redis, upstreams, watches */
#define UNIT_FILE_MAX_BYTES      65536u
#define CLOCK_LEAST_MS           1735689600000 /* 2025: an earlier time is a clock that was never set */
#define CLOCK_JUMP_MS            5000

void doctor_check_limits(struct doctor *d)
{
    struct rlimit files;
    if (d->status || !d->config || getrlimit(RLIMIT_NOFILE, &files) != 0)
        return; /* a daemon says itself how many connections are possible */
    uint64_t wanted = (uint64_t)d->config->limits.connections + FILES_BESIDE_CONNECTIONS;
    if (files.rlim_max != RLIM_INFINITY && files.rlim_max < wanted)
        doctor_add(d, DOCTOR_WARNING, "limits", "files_below_connections",
                   arena_printf(d->arena, "ulimit -Hn %" PRIu64 ", or LimitNOFILE= in the unit", wanted).at,
                   "limits.connections is %u, but a process started from here may open %" PRIu64 " files",
                   d->config->limits.connections, (uint64_t)files.rlim_max);
    else
        doctor_add(d, DOCTOR_OK, "limits", "limits", NULL, "open files suffice for %u connections",
                   d->config->limits.connections);
}

/* The clock was set if the time that it says has passed since the daemon's start is not what has. */
static void check_jump(struct doctor *d, int64_t now_ms)
{
    int64_t uptime_ms = doctor_number(d->status, "uptime_s") * 1000;
    int64_t ahead_ms = now_ms - doctor_number(d->status, "started_ms") - uptime_ms;
    if (!d->status || (ahead_ms < CLOCK_JUMP_MS && ahead_ms > -CLOCK_JUMP_MS))
        return;
    doctor_add(d, DOCTOR_WARNING, "clock", "clock_jumped",
               "timedatectl set-ntp true; read the records' times before the jump with care",
               "the clock was set %" PRId64 " s %s since the daemon started",
               (ahead_ms < 0 ? -ahead_ms : ahead_ms) / 1000, ahead_ms < 0 ? "back" : "ahead");
}

void doctor_check_clock(struct doctor *d)
{
    struct timex state = {0};
    int64_t now_ms = clock_wall_ms();
    if (now_ms < CLOCK_LEAST_MS) {
        doctor_add(d, DOCTOR_ERROR, "clock", "clock_unset", "timedatectl set-ntp true",
                   "the clock says a time before 2025");
        return;
    }
    check_jump(d, now_ms);
    int synchronised = adjtimex(&state);
    if (synchronised == TIME_ERROR || (synchronised >= 0 && (state.status & STA_UNSYNC)))
        doctor_add(d, DOCTOR_WARNING, "clock", "clock_unsynchronised", "timedatectl set-ntp true",
                   "the kernel's clock is not synchronised: daemons that share a ledger need the same time");
    else
        doctor_add(d, DOCTOR_OK, "clock", "clock", NULL, "the clock is synchronised");
}

/* ---- systemd ---- */

const char *doctor_unit_path(struct arena *arena, const char *name)
{
    const char *given = getenv("SYSTEMD_UNIT_PATH"); /* as systemd itself reads it */
    const char *folders = given && *given ? given
                                          : "/etc/systemd/system:/run/systemd/system:"
                                            "/usr/local/lib/systemd/system:/usr/lib/systemd/system:"
                                            "/lib/systemd/system";
    for (const char *at = folders; *at; at += strspn(at, ":")) {
        int n = (int)strcspn(at, ":");
        const char *path = arena_printf(arena, "%.*s/%s", n, at, name).at;
        if (n && access(path, R_OK) == 0)
            return path;
        at += n;
    }
    return NULL;
}

static struct str read_unit(struct arena *arena, const char *path)
{
    char *text = arena_alloc(arena, UNIT_FILE_MAX_BYTES);
    FILE *file = fopen(path, "re");
    size_t n = file ? fread(text, 1, UNIT_FILE_MAX_BYTES, file) : 0;
    if (file)
        fclose(file);
    return (struct str){text, n};
}

/* The value of its last line "KEY=…". */
static struct str unit_value(struct str text, const char *key)
{
    struct str value = STR_NONE;
    while (text.len) {
        const char *end = memchr(text.at, '\n', text.len);
        struct str line = {text.at, end ? (size_t)(end - text.at) : text.len};
        text = str_from(text, line.len + 1);
        if (str_starts(line, key))
            value = str_trim(str_from(line, strlen(key)));
    }
    return value;
}

static void check_unit_program(struct doctor *d, const char *unit, struct str command)
{
    struct str program = {command.at, 0};
    while (program.len < command.len && !ascii_is_space(command.at[program.len]))
        program.len++;
    const char *path = arena_dup(d->arena, program).at;
    char real[4096] = "";
    if (access(path, X_OK) != 0)
        doctor_add(d, DOCTOR_ERROR, "systemd", "unit_program_missing",
                   "install toolgate again, or correct ExecStart= (systemctl edit --full toolgate.service)",
                   "%s starts %s, which cannot be run", unit, path);
    else if (d->program && realpath(path, real) && strcmp(real, d->program) != 0)
        doctor_add(d, DOCTOR_WARNING, "systemd", "unit_program_differs",
                   "install one of them, and restart the service", "%s starts %s, this program is %s", unit,
                   path, d->program);
    else
        doctor_add(d, DOCTOR_OK, "systemd", "unit", NULL, "%s starts this program", unit);
}

void doctor_check_unit(struct doctor *d)
{
    const char *unit = doctor_unit_path(d->arena, "toolgate.service");
    if (!unit) {
        doctor_add(d, access("/run/systemd/system", F_OK) == 0 ? DOCTOR_WARNING : DOCTOR_OK, "systemd",
                   "unit_missing",
                   access("/run/systemd/system", F_OK) == 0 ? "make install, or install the package" : NULL,
                   "no unit toolgate.service is installed");
        return;
    }
    struct str text = read_unit(d->arena, unit);
    check_unit_program(d, unit, unit_value(text, "ExecStart="));
    struct str limit = unit_value(text, "LimitNOFILE=");
    uint64_t files = limit.len ? strtoull(arena_dup(d->arena, limit).at, NULL, 10) : 0;
    uint32_t connections = d->config ? d->config->limits.connections : 0;
    if (files && files < (uint64_t)connections + FILES_BESIDE_CONNECTIONS)
        doctor_add(d, DOCTOR_WARNING, "systemd", "unit_files_below_connections",
                   arena_printf(d->arena, "systemctl edit toolgate.service, with [Service] LimitNOFILE=%u",
                                2 * connections)
                       .at,
                   "%s has LimitNOFILE=%" PRIu64 ", less than limits.connections (%u) needs", unit, files,
                   connections);
}

/* ---- sandboxes ---- */

static size_t count_sandboxes(const struct doctor *d, bool best_effort)
{
    size_t count = 0;
    for (size_t i = 0; d->config && i < d->config->upstream_count; i++) {
        const struct confine_spec *sandbox = &d->config->upstreams[i]->sandbox;
        count += sandbox->on && sandbox->best_effort == best_effort;
    }
    return count;
}

/* Even a confined process of root owns most files, and reads what its sandbox does not hide. */
static void check_root(struct doctor *d)
{
    const struct config *config = d->config;
    size_t count = 0;
    for (size_t i = 0; config && i < config->upstream_count; i++) {
        const struct upstream_spec *spec = config->upstreams[i];
        count += spec->kind == UPSTREAM_STDIO && !spec->user.len && !spec->spawner.len;
    }
    if (count && doctor_daemon_user(d, (uid_t)-1) == 0)
        doctor_add(d, DOCTOR_WARNING, "sandbox", "daemon_as_root",
                   "run the daemon as a user of its own, as the unit of the package does, or name "
                   "upstreams.NAME.user",
                   "the daemon runs as root, and so do %zu of its upstreams", count);
}

void doctor_check_sandbox(struct doctor *d)
{
    check_root(d);
    struct confine_support support = confine_support();
    size_t strict = count_sandboxes(d, false), lenient = count_sandboxes(d, true);
    if (support.landlock_abi && support.seccomp)
        doctor_add(d, DOCTOR_OK, "sandbox", "sandbox", NULL, "Landlock ABI %d and seccomp: sandboxes hold%s",
                   support.landlock_abi,
                   support.landlock_abi < 6
                       ? ", except for signals between processes of one user (Linux 6.12)"
                       : "");
    else
        doctor_add(d,
                   strict    ? DOCTOR_ERROR
                   : lenient ? DOCTOR_WARNING
                             : DOCTOR_OK,
                   "sandbox", "sandbox_unsupported",
                   strict || lenient ? "Linux 5.13 or later, with landlock in the lsm= of its command line"
                                     : NULL,
                   "this kernel has no %s: %zu upstreams with a sandbox do not start, %zu run unconfined",
                   support.landlock_abi ? "seccomp filters" : "Landlock", strict, lenient);
}

/* ---- libcurl ---- */

/* What needs it: "the upstream far". */
static struct str http_user(const struct doctor *d)
{
    const struct config *config = d->config;
    for (size_t i = 0; i < config->upstream_count; i++)
        if (config->upstreams[i]->kind != UPSTREAM_STDIO)
            return arena_printf(d->arena, "the upstream " STR_FMT, STR_ARG(config->upstreams[i]->name));
    for (size_t i = 0; d->generation && i < d->generation->tool_count; i++)
        if (d->generation->tools[i]->runner == RUNNER_UPSTREAM &&
            d->generation->tools[i]->target.kind == TARGET_HTTP)
            return arena_printf(d->arena, "the tool " STR_FMT, STR_ARG(d->generation->tools[i]->name));
    return config->traces.endpoint.len ? STR_LIT("traces.endpoint") : STR_NONE;
}

void doctor_check_libcurl(struct doctor *d)
{
    struct str user = d->config ? http_user(d) : STR_NONE;
    struct why why;
    if (!user.len)
        return;
    if (fetch_check_library(&why) == OK)
        doctor_add(d, DOCTOR_OK, "libcurl", "libcurl", NULL, "libcurl is there, for " STR_FMT, STR_ARG(user));
    else
        doctor_add(d, DOCTOR_ERROR, "libcurl", "libcurl_missing", "apt-get install libcurl4",
                   STR_FMT " needs libcurl: %s", STR_ARG(user), why.text);
}
