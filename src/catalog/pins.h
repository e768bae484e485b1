/*
 * The definitions of upstreams' tools, prompts, resources and instructions that somebody has accepted, by
 * using them first or with `toolgate pins accept`: a digest and the text of each, in one file of the state
 * folder. A list beside the tools counts as an upstream of its own, such as "files:prompts".
 *
 *   tool list ─▶ pins_review: accepted, changed, new … ─▶ import ─▶ the generation is live ─▶ pins_commit
 *
 * A second file beside the socket names the upstreams that have pins: if the state folder is lost, they are
 * not taken for new ones.
 */
#ifndef TOOLGATE_CATALOG_PINS_H
#define TOOLGATE_CATALOG_PINS_H

#include "policy/config.h"

struct arena;
struct loop;
struct pins;

/* Half of SHA-256 in hex, so that no attacker finds two definitions with one digest. */
#define PIN_DIGEST_DIGITS 32u

struct pin_digest {
    char hex[PIN_DIGEST_DIGITS + 1];
};

/* What is pinned of a tool's definition, in the arena: the members that clients see, in their canonical form,
 * from the bytes that the server sent, so that a hidden character or a changed order of words is another
 * definition. `definition`: an object. */
struct str pin_definition_text(struct arena *arena, const struct json *definition);

/* "upstream/tool", in the arena. */
struct str pin_key(struct arena *arena, struct str upstream, struct str tool);

/* Reads the file; one that is missing or broken is reported by the review that needs it. Borrows the loop,
 * which outlives the pins, and both paths. pins_free writes what is not written yet; NULL is allowed. */
struct pins *pins_new(struct loop *loop, const char *path, const char *witness_path);
void pins_free(struct pins *pins);

const char *pins_path(const struct pins *pins);

/* ---- the review: one generation's tool lists against the pins ----
 * Which definitions were accepted, and which of the others stay out of service. Allocated with the
 * generation; it keeps no pointers into the pins, which may change during its life. */

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
    struct pin_entry **entries;
    size_t count;
    struct map *by_key; /* "upstream/tool" */
    size_t first;       /* of the upstream under review */
    size_t renamed;     /* of it, so far */
    struct str *lost;   /* upstreams whose pins were lost */
    size_t lost_count;
    struct str lost_why;
    size_t pending, held;
    struct pin_entry *empty; /* what a list without entries leaves, so that its first entry is a new one */
    size_t empty_count;
};

/* NULL: no pins are kept. */
struct pins_review *pins_review_new(struct arena *arena, struct pins *pins, enum pins_mode mode);

/* One upstream after the other: its tools, close. A second tool of one name is ignored. */
void pins_review_add(struct pins_review *review, struct str upstream, struct str tool,
                     const struct json *definition);
void pins_review_close(struct pins_review *review, struct str upstream);

/* NULL: none was reviewed. After pins_review_close. */
struct pin_entry *pins_review_find(const struct pins_review *review, struct str upstream, struct str tool);

/* Both as one, and the texts that have changed, for who sees and accepts; NULL: one of them is. */
struct pins_review *pins_review_join(struct arena *arena, const struct pins_review *a,
                                     const struct pins_review *b);

/* Of everything that waits for acceptance: what `accept '*'` wants to see. */
struct pin_digest pins_review_digest(const struct pins_review *review);

/* For the generation's hash. */
uint64_t pins_review_hash(const struct pins_review *review);

static inline bool pin_is_pending(const struct pin_entry *entry)
{
    return entry->state > PIN_FIRST;
}

const char *pin_state_name(enum pin_state state);

/* The reviewed generation is live: keeps what it uses for the first time, notes which tools have vanished,
 * logs what changed since `before` (NULL: there was none), and writes the file. */
void pins_commit(struct pins *pins, const struct pins_review *review, const struct pins_review *before);

/* Whether what a prompt has returned is another text than the accepted one of its name; the first is
 * accepted, and written to the file within a second. `text`: {"name","text"}. Another text waits, served, in
 * reviews that are joined, until it is accepted or is as it was; of the last PIN_TEXTS_MAX. */
#define PIN_TEXTS_MAX 64u
bool pins_text_changed(struct pins *pins, struct str upstream, struct str name, const struct json *text);

/* Accepts the entry `tool` of the review ("files/search", or its name in tools/list; "*": all that wait), if
 * `digest` is what the review shows for it. ERR_NOT_FOUND, ERR_PARSE: another digest, ERR_IO: not written. */
enum err pins_accept(struct pins *pins, const struct pins_review *review, struct str tool, struct str digest,
                     size_t *count, struct why *why);

#endif
