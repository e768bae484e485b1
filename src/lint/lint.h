/*
 * `toolgate lint`: finds mistakes in policies and tools that the loader accepts.
 * One table of checks, each with its code; a finding states place, problem and
 * fix. For people and their CI; the daemon does not use it.
 */
#ifndef TOOLGATE_LINT_LINT_H
#define TOOLGATE_LINT_LINT_H

#include "config/config.h"

enum lint_level {
    LINT_ERROR,   /* toolgate refuses to load it */
    LINT_WARNING, /* probably not intended, or not portable */
    LINT_NOTE     /* shown only on request */
};

struct lint_finding {
    struct str file;
    int line; /* 0: unknown, or the file has no lines */
    enum lint_level level;
    const char *code;
    struct str sentence;
    bool theirs; /* about a definition that a server or a program published, not about a policy */
};

/* All codes, with a description of their findings. */
struct lint_code {
    const char *code;
    enum lint_level level;
    const char *finds;
};
const struct lint_code *lint_codes(size_t *count);
const char *lint_level_name(enum lint_level level);

struct lint;
struct lint *lint_new(void);
void lint_free(struct lint *lint);

/* Loads the sources and checks everything in them. Files that do not load become findings, and the others are
 * checked one by one. Returns false if nothing could be checked; the findings give the reason. */
bool lint_run(struct lint *lint, const struct config_sources *sources);

/* All findings so far, sorted by file and line, without duplicates. Valid until the next lint_run. */
const struct lint_finding *lint_findings(struct lint *lint, size_t *count);

#endif
