/* The pins in memory, which pins.c changes and pins_review.c reads. No other file includes this header. */
#ifndef TOOLGATE_CATALOG_PINS_INTERNAL_H
#define TOOLGATE_CATALOG_PINS_INTERNAL_H

#include "catalog/pins.h"
#include "io/timer.h"

#include <sys/stat.h>

struct pin {
    struct str upstream, tool;
    struct str text; /* the accepted definition, canonical */
    struct pin_digest digest;
    int64_t gone_ms; /* since when the server does not offer it, wall clock; 0: it does */
    bool unwritten;  /* the file does not have it yet */
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
    struct loop *loop;
    struct timer write; /* set while first texts wait to be written */
    struct pins_table table;
    struct changed_text {
        struct arena *arena; /* NULL: free, or as accepted again */
        struct pin_entry entry;
    } texts[PIN_TEXTS_MAX];
    size_t next_text;
    struct stat read; /* the file as it was read or written; st_ino 0: there was none */
    bool broken;      /* the file is there and cannot be read: `why` */
    bool dirty;       /* not written yet */
    struct why why;
};

struct pin_digest pin_digest_of(struct str text);
bool pin_digest_equal(const struct pin_digest *a, const struct pin_digest *b);

struct pin *pins_find(const struct pins *pins, struct str upstream, struct str tool); /* NULL: none */
void *pin_get(const struct map *map, struct str upstream, struct str tool); /* of a map from pin_key */

void pins_refresh(struct pins *pins); /* reads the file again if another daemon has written it */
bool pins_had(const struct pins *pins, struct str upstream); /* by the witness, though there is no pin */

#endif
