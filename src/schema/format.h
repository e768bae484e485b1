/* The `format`s toolgate asserts: a check, words and an example for each. */
#ifndef TOOLGATE_SCHEMA_FORMAT_H
#define TOOLGATE_SCHEMA_FORMAT_H

#include "base/str.h"

struct format {
    const char *name;    /* "date-time" */
    const char *words;   /* "ISO datetime" */
    const char *example; /* "2026-05-03T00:00:00Z" */
    bool (*check)(struct str s);
};

/* NULL: unknown, or one that is an annotation only. */
const struct format *format_find(struct str name);

#endif
