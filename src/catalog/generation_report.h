/* The errors and warnings of loading a generation, one line each: "file:line: expected …, got …". */
#ifndef TOOLGATE_CATALOG_GENERATION_REPORT_H
#define TOOLGATE_CATALOG_GENERATION_REPORT_H

#include "base/str.h"

struct arena;
struct example_outcome;

struct generation_report {
    struct arena *arena;
    struct str *errors, *warnings;
    size_t error_count, warning_count;
    size_t example_count; /* examples that ran */
    /* Called with each example's outcome; NULL after generation_report_init. */
    void (*example_seen)(void *owner, const struct example_outcome *outcome);
    void *example_owner;
};

void generation_report_init(struct generation_report *report, struct arena *arena);
void generation_report_error(struct generation_report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void generation_report_warning(struct generation_report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
