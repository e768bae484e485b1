/* The published metaschemas, by URI. Internal to this room. */
#ifndef TOOLGATE_SCHEMA_METASCHEMAS_H
#define TOOLGATE_SCHEMA_METASCHEMAS_H

#include <stddef.h>

struct metaschema {
    const char *uri, *text;
};

extern const struct metaschema metaschemas[];
extern const size_t metaschema_count;

#endif
