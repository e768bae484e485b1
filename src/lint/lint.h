/*
 * What is suspicious about policies and tools, beyond what the loader
 * refuses: one table of checks, each with its code, and findings that say
 * where, what and how to mend it. For people and their CI; a daemon does not
 * need it.
 */
#ifndef TOOLGATE_LINT_LINT_H
#define TOOLGATE_LINT_LINT_H

#include "config/config.h"

enum lint_level {
    LINT_ERROR,   /* toolgate refuses it */
    LINT_WARNING, /* it works, and not as somebody thinks, or not everywhere */
    LINT_NOTE     /* worth to know; counts only for who asks for it */
};

struct lint_finding {
    struct str file;
    int line; /* 0: the file has none, or it cannot be told */
    enum lint_level level;
    const char *code;
    struct str sentence;
};

/* Every code there is, with what its findings are about. */
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

/* Loads what the sources name and looks at all of it. Files that do not load become findings, and the others
 * are looked at alone. False: there was nothing to look at, and the findings say why. */
bool lint_run(struct lint *lint, const struct config_sources *sources);

/* All of them so far, by file and line, none twice. Valid until the next look. */
const struct lint_finding *lint_findings(struct lint *lint, size_t *count);

#endif
