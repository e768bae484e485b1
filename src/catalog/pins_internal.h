/* The pins in memory. Included by pins.c, pins_file.c and pins_review.c only. */
#ifndef TOOLGATE_CATALOG_PINS_INTERNAL_H
#define TOOLGATE_CATALOG_PINS_INTERNAL_H

#include "catalog/pins_review.h"

#include <sys/stat.h>

struct pin {
    struct str upstream, tool;
    struct str text; /* the accepted definition, canonical */
    struct pin_digest digest;
    int64_t gone_ms; /* since when the server does not offer it, wall clock; 0: it does */
};

/* Replaced as a whole when the file is read, and written over when a pin changes. */
struct pins_table {
    struct arena *arena;
    struct pin **list;
    size_t count;
    struct map *by_key; /* "upstream/tool" to struct pin */
};

struct pins {
    const char *path, *witness;
    struct pins_table table;
    struct stat read; /* the file as it was read or written; st_ino 0: there was none */
    bool broken;      /* the file is there and cannot be read: `why` */
    bool dirty;       /* not written yet */
    struct why why;
};

/* pins.c */
struct pins_table pins_table_new(void);
struct pin *pins_table_find(const struct pins_table *table, struct str upstream, struct str tool);
/* Copies; replaces a pin of this name. */
void pins_table_put(struct pins_table *table, const struct pin *pin);
/* What a map has under "upstream/tool". */
void *pins_get(const struct map *map, struct str upstream, struct str tool);
struct str pins_key(struct arena *arena, struct str upstream, struct str tool);

/* pins_file.c */
/* Reads the file if it is another one than before. A file that has vanished is logged and written again. */
void pins_file_refresh(struct pins *pins);
/* The lock of all daemons on this folder; -1 after an error. */
int pins_file_lock(const struct pins *pins, struct why *why);
void pins_file_unlock(int lock);
/* With the lock. */
enum err pins_file_write(struct pins *pins, struct why *why);
/* The upstreams that had pins once, one name a line. */
struct str pins_file_witness(const struct pins *pins, struct arena *arena);
bool pins_file_has_line(struct str text, struct str line);

#endif
