/*
 * What is wrong with this installation, and the command that fixes it: the checks of `toolgate doctor`. They
 * read files, limits and the running daemon's toolgate/status, and change nothing.
 */
#ifndef TOOLGATE_DOCTOR_DOCTOR_H
#define TOOLGATE_DOCTOR_DOCTOR_H

#include "base/err.h"
#include "json/value.h"

#include <stdint.h>

struct arena;
struct config;
struct generation;
struct generation_report;

#define DOCTOR_FINDINGS_MAX     512u        /* further ones are left out: thousands of files may be broken */
#define DOCTOR_ROOM_WARN_BYTES  1073741824u /* free on the state folder's disk */
#define DOCTOR_ROOM_ERROR_BYTES 67108864u
#define DOCTOR_SKEW_MS          2000 /* between the clock of Redis and this host's */
#define DOCTOR_CONNECT_MS       2000

enum doctor_level { DOCTOR_OK, DOCTOR_WARNING, DOCTOR_ERROR };
const char *doctor_level_name(enum doctor_level level); /* "ok", "warning", "error" */

struct doctor_finding {
    enum doctor_level level;
    const char *area, *code; /* "redis", "redis_down" */
    struct str what, fix;    /* fix: a command or an edit; empty: nothing to do */
};

struct doctor {
    struct arena *arena;
    const char *socket, *program;        /* program: this binary */
    const struct config *config;         /* NULL: it does not load */
    const struct generation *generation; /* of the files; NULL: they do not load */
    const struct generation_report *report;
    const struct json *status; /* of the daemon; NULL: none answers, and `no_status` says why */
    struct str no_status;
    struct doctor_finding *findings;
    size_t count, left_out;
};

/* Runs every check; `findings` are in the order of the areas. */
void doctor_run(struct doctor *doctor);

#endif
