/*
 * One generation's tool lists against the pins: which definitions were accepted, and which of the others stay
 * out of service. Allocated with the generation; it keeps no pointers into the pins, which may change
 * during its life.
 */
#ifndef TOOLGATE_CATALOG_PINS_REVIEW_H
#define TOOLGATE_CATALOG_PINS_REVIEW_H

#include "policy/config.h"
#include "catalog/pins.h"

enum pin_state {
    PIN_ACCEPTED,
    PIN_FIRST,   /* used for the first time: accepted by that */
    PIN_CHANGED, /* another text than the accepted one */
    PIN_RENAMED, /* a new name, while another tool of this server has vanished */
    PIN_NEW,     /* `pins` is "all" */
    PIN_LOST     /* its pin was lost with the file */
};

struct pin_entry {
    struct str upstream, tool;     /* the server's name for it */
    struct str published;          /* the name in tools/list; empty until import has given it one */
    const struct json *definition; /* borrowed from the tool list */
    struct pin_digest digest;
    enum pin_state state;
    bool held;                     /* not listed, not callable */
    struct str was_tool, was_text; /* what was accepted: of this tool, or of the vanished one; may be empty */
    struct pin_digest was_digest;
};

struct pins_review {
    struct arena *arena;
    struct pins *pins;
    enum pins_mode mode;
    struct pin_entry *entries;
    size_t count;
    struct map *by_key;  /* "upstream/tool" */
    size_t first;        /* of the upstream under review */
    struct str upstream; /* under review */
    struct str *lost;    /* upstreams whose pins were lost */
    size_t lost_count;
    struct str lost_why;
    size_t pending, held;
};

/* NULL: no pins are kept. */
struct pins_review *pins_review_new(struct arena *arena, struct pins *pins, enum pins_mode mode);

/* One upstream after the other: open, its tools, close. A second tool of one name is ignored. */
void pins_review_open(struct pins_review *review, struct str upstream);
void pins_review_tool(struct pins_review *review, const struct json *definition);
void pins_review_close(struct pins_review *review);

/* NULL: none was reviewed. After pins_review_close. */
struct pin_entry *pins_review_find(const struct pins_review *review, struct str upstream, struct str tool);

/* By its published name; NULL: none. */
struct pin_entry *pins_review_published(const struct pins_review *review, struct str name);

/* Of everything that waits for acceptance: what `accept '*'` wants to see. */
struct pin_digest pins_review_digest(const struct pins_review *review);

/* For the generation's hash. */
uint64_t pins_review_hash(const struct pins_review *review);

static inline bool pin_is_pending(const struct pin_entry *entry)
{
    return entry->state > PIN_FIRST;
}

const char *pin_state_name(enum pin_state state);

#endif
