/* The checks in the order in which an operator wants to read them: the first that fails explains most of the
 * others. */
#include "doctor/doctor_internal.h"

#include <stdarg.h>

static doctor_check *const checks[] = {
    doctor_check_config,    doctor_check_socket,    doctor_check_version, doctor_check_connections,
    doctor_check_state,     doctor_check_decisions, doctor_check_redis,   doctor_check_libcurl,
    doctor_check_upstreams, doctor_check_policies,  doctor_check_traces,  doctor_check_metrics,
    doctor_check_limits,    doctor_check_clock,     doctor_check_unit,    doctor_check_sandbox,
};

const char *doctor_level_name(enum doctor_level level)
{
    static const char *const names[] = {
        [DOCTOR_OK] = "ok", [DOCTOR_WARNING] = "warning", [DOCTOR_ERROR] = "error"};
    return names[level];
}

void doctor_add(struct doctor *d, enum doctor_level level, const char *area, const char *code,
                const char *fix, const char *format, ...)
{
    va_list args;
    if (d->count == DOCTOR_FINDINGS_MAX) {
        d->left_out++;
        return;
    }
    va_start(args, format);
    d->findings[d->count++] =
        (struct doctor_finding){level, area, code, arena_vprintf(d->arena, format, args), str_of(fix)};
    va_end(args);
}

const struct json *doctor_status(const struct doctor *d, const char *key)
{
    return d->status ? json_get_text(d->status, key) : NULL;
}

int64_t doctor_number(const struct json *object, const char *key)
{
    int64_t n = 0;
    return json_int(json_get_text(object, key), &n) ? n : 0;
}

struct str doctor_text(const struct json *object, const char *key)
{
    return json_str(json_get_text(object, key));
}

void doctor_run(struct doctor *d)
{
    d->findings = ARENA_ARRAY(d->arena, struct doctor_finding, DOCTOR_FINDINGS_MAX);
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
        checks[i](d);
}
