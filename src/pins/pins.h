/*
 * The definitions of upstreams' tools that somebody has accepted, by using them first or with `toolgate pins
 * accept`: a digest and the text of each, in one file of the state folder.
 *
 *   tool list ─▶ pins_review.h: accepted, changed, new … ─▶ import ─▶ the generation is live ─▶ pins_commit
 *
 * A second file beside the socket names the upstreams that have pins: if the state folder is lost, they are
 * not taken for new ones.
 */
#ifndef TOOLGATE_PINS_PINS_H
#define TOOLGATE_PINS_PINS_H

#include "base/err.h"
#include "pins/pin_definition.h"

struct pins;
struct pins_review;

#define PINS_FILE_MAX_BYTES 67108864u    /* the file that is read */
#define PINS_RENAME_MS      604800000ll  /* a new name within a week of a vanished one may be the same tool */
#define PINS_FORGET_MS      7776000000ll /* a tool that was not offered for 90 days loses its pin */
#define PINS_LOCK_TRIES     50u          /* of 1 ms, while another daemon on this folder writes */
#define PINS_LOGGED_MAX     20u          /* log lines about one generation; the rest is counted */

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
