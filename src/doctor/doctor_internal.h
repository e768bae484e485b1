/* What the checks share: doctor_daemon.c asks the daemon, doctor_files.c looks at the files, doctor_host.c at
 * the host, doctor_services.c at what the daemon talks to. */
#ifndef TOOLGATE_DOCTOR_DOCTOR_INTERNAL_H
#define TOOLGATE_DOCTOR_DOCTOR_INTERNAL_H

#include "base/arena.h"
#include "config/config.h"
#include "doctor/doctor.h"

#include <sys/types.h>

typedef void doctor_check(struct doctor *doctor);

/* `fix`: in the arena, or a literal; NULL: nothing to do. */
void doctor_add(struct doctor *doctor, enum doctor_level level, const char *area, const char *code,
                const char *fix, const char *format, ...) __attribute__((format(printf, 6, 7)));

/* Members of the daemon's status; NULL, STR_NONE, 0 if there is none. */
const struct json *doctor_status(const struct doctor *doctor, const char *key);
int64_t doctor_number(const struct json *object, const char *key);
struct str doctor_text(const struct json *object, const char *key);

/* By the daemon's process; `unknown` if there is none to see. */
uid_t doctor_daemon_user(const struct doctor *doctor, uid_t unknown);

/* How this daemon is restarted, and its configuration's reload. */
const char *doctor_restart(const struct doctor *doctor);
const char *doctor_start(const struct doctor *doctor);
const char *doctor_reload(const struct doctor *doctor);

/* The unit file that systemd uses for `name`, or NULL. */
const char *doctor_unit_path(struct arena *arena, const char *name);

doctor_check doctor_check_socket, doctor_check_version, doctor_check_connections;
doctor_check doctor_check_config, doctor_check_policies, doctor_check_state, doctor_check_decisions;
doctor_check doctor_check_limits, doctor_check_clock, doctor_check_unit, doctor_check_libcurl,
    doctor_check_sandbox;
doctor_check doctor_check_redis, doctor_check_upstreams, doctor_check_traces, doctor_check_metrics;

#endif
