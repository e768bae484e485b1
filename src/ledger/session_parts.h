/*
 * What a session remembers beside its core (session.h): the journal, the seen ids, and the details: goal,
 * facts, names of tools, arguments of open calls. They are loaded and cached together with the core.
 *
 * Details are fields one after another, each the lengths of its name and value (4 bytes each) and then both.
 * A name is one letter and what follows it:
 *   g            the turn's goal; it counts if session.has_goal
 *   e            what failed last: 8 bytes of its arguments' hash, then the error
 *   u            unseen ids that the turn named: 4 bytes of turn, then 8 each
 *   f + name     a fact, as JSON
 *   t + 4 bytes  the name of a tool, by its hash (little-endian)
 *   a + 1 byte   an open call's arguments, by its slot (session.h): 8 bytes admission (little-endian),
 *                then JSON
 */
#ifndef TOOLGATE_LEDGER_SESSION_PARTS_H
#define TOOLGATE_LEDGER_SESSION_PARTS_H

#include "base/buf.h"
#include "ledger/rules.h"

#define SESSION_NAMES_MAX      256u /* names of tools; of others the journal shows none */
#define SESSION_ID_BYTES       8u
#define SESSION_FIELDS_MAX     2048u /* details with more were not written by us */
#define SESSION_FACTS_MAX      1024u /* so that no details have SESSION_FIELDS_MAX */
#define SESSION_GOAL_MAX_BYTES 8192u

struct session_parts {
    struct buf journal, ids, details;
};

/* PART_BITs of those that exist as a stored core tells. */
unsigned session_parts_with(const struct session *session);
void session_parts_clear(struct session_parts *parts); /* frees all */

/* ---- journal ---- */
/* `number` of the note, counting all that were ever written from 0. */
void session_parts_add_note(struct session_parts *parts, const struct session *session, uint32_t number,
                            const struct session_note *note);
/* To a ring of `max` notes: the newest stay, and are counted anew from 0. */
void session_parts_resize_journal(struct session_parts *parts, struct session *session, uint16_t max);

/* ---- ids ---- */
/* Adds those that were not seen yet. True: the oldest had to go, beyond LEDGER_SEEN_IDS_MAX. */
bool session_parts_add_ids(struct session_parts *parts, struct session *session, const struct hash128 *ids,
                           size_t count);
/* Bit i: ids[i] was never seen; count is at most LEDGER_IDS_MAX. */
uint64_t session_parts_unseen(const struct session_parts *parts, const struct hash128 *ids, size_t count);

/* ---- details ---- */
struct detail {
    struct str name, value;
};
/* Takes the next field off `rest`; false: there is none. */
bool detail_next(struct str *rest, struct detail *detail);
/* Behind the others; there must be none of this name. */
void detail_add(struct buf *details, struct str name, struct str value);
struct str detail_find(struct str details, struct str name); /* empty: there is none */
/* `value` at NULL: the field goes. */
void detail_set(struct buf *details, struct str name, struct str value);

/* Whether a fact has room in LEDGER_FACTS_MAX_BYTES and SESSION_FACTS_MAX. */
bool session_parts_fact_fits(const struct session_parts *parts, struct str field, struct str value);
size_t session_parts_names(const struct session_parts *parts); /* of tools */

/* The names of fields. `out` holds SESSION_FIELD_BYTES. */
#define SESSION_FIELD_BYTES 8u
struct str session_field_tool(uint32_t tool, char out[SESSION_FIELD_BYTES]);
struct str session_field_open(unsigned slot, char out[SESSION_FIELD_BYTES]);

#endif
