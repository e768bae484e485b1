/*
 * A session as bytes: what stores keep and daemons of different builds share.
 *
 *   head   the format (1 byte), the fixed fields of struct session (the version first), chains, each with its
 *          problems and names, counters, paced calls, problems that were asked about, texts that named turns,
 *          counts of calls that left the window; then zeros up to a multiple of CODEC_PAD_BYTES
 *   calls  at most SESSION_CALLS_MAX, in the order of the array
 *
 * What decodes is encoded as the same bytes. Bytes that were not written by this codec are an error of that
 * session, never of the daemon.
 *
 * Beside this core a session has a journal, seen ids, and details: goal, facts, names of tools, arguments of
 * open calls. They are loaded and cached together with the core. Details are fields one after another, each
 * the lengths of its name and value (4 bytes each) and then both. A name is one letter and what follows it:
 *   g            the turn's goal; it counts if session.has_goal
 *   e            what failed last: 8 bytes of its arguments' hash, then the error
 *   u            unseen ids that the turn named: 4 bytes of turn, then 8 each
 *   f + name     a fact, as JSON
 *   t + 4 bytes  the name of a tool, by its hash (little-endian)
 *   a + 1 byte   an open call's arguments, by its slot (session.h): 8 bytes admission (little-endian),
 *                then JSON
 */
#ifndef TOOLGATE_LEDGER_CODEC_H
#define TOOLGATE_LEDGER_CODEC_H

#include "base/buf.h"
#include "ledger/session.h"

#define CODEC_FORMAT      7u /* the first byte */
#define CODEC_VERSION_AT  1u /* eight bytes: session.version; they are compared before a commit */
#define CODEC_GUARD_BYTES 9u /* format and version: the beginning of every value */
#define CODEC_PAD_BYTES   32u
#define CODEC_MAX_BYTES   16384u /* of any session; a longer value is not ours */

/* Unless CODEC_OK or CODEC_OLDER, `session` is unspecified. Array elements beyond their counts are left as
 * they are. */
enum codec_result {
    CODEC_OK,
    CODEC_DAMAGED,
    CODEC_OLDER, /* of an earlier format: only `version` is set, and the session begins again */
    CODEC_NEWER  /* of a later one: leave it alone */
};
enum codec_result codec_decode(struct str bytes, struct session *session);
void codec_encode(const struct session *session, struct buf *core); /* instead of what `core` held */

/* The guard of a session stored in this format at this version: CODEC_GUARD_BYTES. */
void codec_guard(uint8_t format, uint64_t version, char out[CODEC_GUARD_BYTES]);

#define SESSION_ID_BYTES   8u
#define SESSION_FIELDS_MAX 2048u /* details with more were not written by us */
#define SESSION_FACTS_MAX  1024u /* so that no details have SESSION_FIELDS_MAX */

struct session_parts {
    struct buf journal, ids, details;
};

/* PART_BITs of those that exist as a stored core tells. */
unsigned session_parts_with(const struct session *session);

/* `number` of the note, counting all that were ever written from 0. */
void session_parts_add_note(struct session_parts *parts, const struct session *session, uint32_t number,
                            const struct session_note *note);

#define DETAIL_HEAD_BYTES 8u /* lengths of name and value */
struct detail {
    struct str name, value;
};
/* Takes the next field off `rest`; false: none exists. */
bool detail_next(struct str *rest, struct detail *detail);
/* Behind the others; there must be none of this name. */
void detail_add(struct buf *details, struct str name, struct str value);
struct str detail_find(struct str details, struct str name); /* empty: none exists */
/* What follows `key` in a field that begins with it; empty: none exists, or of another key. */
struct str detail_find_keyed(struct str details, struct str name, uint64_t key);

/* The names of fields. `out` holds SESSION_FIELD_BYTES. */
#define SESSION_FIELD_BYTES 8u
struct str session_field_tool(uint32_t tool, char out[SESSION_FIELD_BYTES]);
struct str session_field_open(unsigned slot, char out[SESSION_FIELD_BYTES]);

/* ---- as JSON for people and policies (session_json.c): in the arena, borrowing nothing ---- */

/* Array, oldest first, one entry per logical call: {tool, class, code, turn, step, at_ms, retries}. Open
 * repair chains come last; they have "open": true instead of a time and a turn. */
struct json session_json_history(struct arena *arena, const struct session *session,
                                 const struct session_parts *parts);
/* Object, sorted by name. */
struct json session_json_facts(struct arena *arena, const struct session_parts *parts);
/* Everything: {session, turn, step, goal, budgets, ids, facts, history}. `name` is the session's. */
struct json session_json(struct arena *arena, struct str name, const struct session *session,
                         const struct session_parts *parts);
/* How many of its calls have no result yet. */
unsigned session_waiting(const struct session *session);

#endif
