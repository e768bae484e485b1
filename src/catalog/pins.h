/*
 * The definitions of upstreams' tools that somebody has accepted, by using them first or with `toolgate pins
 * accept`: a digest and the text of each, in one file of the state folder.
 *
 *   tool list ─▶ pins_review.h: accepted, changed, new … ─▶ import ─▶ the generation is live ─▶ pins_commit
 *
 * A second file beside the socket names the upstreams that have pins: if the state folder is lost, they are
 * not taken for new ones.
 */
#ifndef TOOLGATE_CATALOG_PINS_H
#define TOOLGATE_CATALOG_PINS_H

#include "base/err.h"
#include "json/value.h"

struct arena;
struct pins;
struct pins_review;

#define PINS_FILE_MAX_BYTES 67108864u    /* the file that is read */
#define PINS_RENAME_MS      604800000ll  /* a new name within a week of a vanished one may be the same tool */
#define PINS_FORGET_MS      7776000000ll /* a tool that was not offered for 90 days loses its pin */
#define PINS_LOCK_TRIES     50u          /* of 1 ms, while another daemon on this folder writes */
#define PINS_LOGGED_MAX     20u          /* log lines about one generation; the rest is counted */

/* Half of SHA-256 in hex, so that no attacker finds two definitions with one digest. */
#define PIN_DIGEST_DIGITS 32u

struct pin_digest {
    char hex[PIN_DIGEST_DIGITS + 1];
};

struct pin_digest pin_digest_of(struct str text);

static inline bool pin_digest_equal(const struct pin_digest *a, const struct pin_digest *b)
{
    return memcmp(a->hex, b->hex, PIN_DIGEST_DIGITS) == 0;
}

/* What is pinned of a tool's definition, in the arena: the members that clients see, in their canonical form,
 * from the bytes that the server sent, so that a hidden character or a changed order of words is another
 * definition. `definition`: an object. */
struct str pin_definition_text(struct arena *arena, const struct json *definition);

/* Reads the file; one that is missing or broken is reported by the review that needs it. Borrows both paths.
 */
struct pins *pins_new(const char *path, const char *witness_path);
void pins_free(struct pins *pins); /* NULL is allowed */

const char *pins_path(const struct pins *pins);

/* The reviewed generation is live: keeps what it uses for the first time, notes which tools have vanished,
 * logs what changed since `before` (NULL: there was none), and writes the file. */
void pins_commit(struct pins *pins, const struct pins_review *review, const struct pins_review *before);

/* Accepts the entry `tool` of the review ("files/search", or its name in tools/list; "*": all that wait), if
 * `digest` is what the review shows for it. ERR_NOT_FOUND, ERR_PARSE: another digest, ERR_IO: not written. */
enum err pins_accept(struct pins *pins, const struct pins_review *review, struct str tool, struct str digest,
                     size_t *count, struct why *why);

#endif
