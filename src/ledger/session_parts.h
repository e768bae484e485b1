/*
 * What a session remembers beside its core (session.h): the journal, the seen ids, and the details: goal,
 * facts, names of tools, arguments of open calls. A daemon loads a part when a request needs it and keeps it
 * in its cache; the core counts the changes of each, so that a cached part is known to be current without
 * asking.
 *
 * Details are fields of a hash, named by one letter and what follows it:
 *   g            the turn's goal
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
#include "ledger/session_store.h"

#define SESSION_NAMES_MAX      256u /* names of tools; of others the journal shows none */
#define SESSION_ID_BYTES       8u
#define SESSION_FIELDS_MAX     2048u /* details with more were not written by us */
#define SESSION_FACTS_MAX      1024u /* so that no details have SESSION_FIELDS_MAX */
#define SESSION_GOAL_MAX_BYTES 8192u

struct session_parts {
    unsigned known;   /* PART_BITs: loaded, and current as far as the core tells */
    uint64_t version; /* of the session that they were last compared with */
    uint32_t journal_count;
    uint16_t ids_changes, details_changes; /* of the core, when they were loaded or last written */
    struct buf journal, ids;
    struct store_field *fields; /* of the details; names and values are on the heap */
    size_t field_count, field_room;
};

void session_parts_clear(struct session_parts *parts); /* frees all */

/* Of a session that is not stored yet: all parts are known, and empty. */
void session_parts_begin(struct session_parts *parts, const struct session *session);
/* Takes over what a load with these parts has brought for `session`. */
void session_parts_load(struct session_parts *parts, const struct session *session, unsigned loaded,
                        const struct store_request *request);
/* Forgets the parts that another daemon has changed, and all if it has begun the session anew. */
void session_parts_check(struct session_parts *parts, const struct session *session);

/* ---- journal ---- */
/* `number` of the note, counting all that were ever written from 0. */
void session_parts_add_note(struct session_parts *parts, const struct session *session, uint32_t number,
                            const struct session_note *note);

/* To a ring of `max` notes: the newest stay, and are counted anew from 0. PART_JOURNAL is known. */
void session_parts_resize_journal(struct session_parts *parts, struct session *session, uint16_t max);

/* ---- ids: PART_IDS is known ---- */

enum ids_added { IDS_SAME, IDS_APPENDED, IDS_REPLACED };
/* Adds those that were not seen yet; the oldest go beyond LEDGER_SEEN_IDS_MAX. `from`: where new bytes begin.
 */
enum ids_added session_parts_add_ids(struct session_parts *parts, struct session *session,
                                     const struct hash128 *ids, size_t count, size_t *from);
/* Bit i: ids[i] was never seen; count is at most LEDGER_IDS_MAX. */
uint64_t session_parts_unseen(const struct session_parts *parts, const struct hash128 *ids, size_t count);

/* ---- details: PART_DETAILS is known ---- */

/* The value is empty where there is no such field. */
struct str session_parts_field(const struct session_parts *parts, struct str name);
void session_parts_set_field(struct session_parts *parts, struct str name, struct str value);
void session_parts_drop_field(struct session_parts *parts, struct str name);
/* Whether a fact has room in LEDGER_FACTS_MAX_BYTES and SESSION_FACTS_MAX. */
bool session_parts_fact_fits(const struct session_parts *parts, struct str field, struct str value);
size_t session_parts_names(const struct session_parts *parts); /* of tools */

/* The names of fields. `out` holds SESSION_FIELD_BYTES. */
#define SESSION_FIELD_BYTES 8u
struct str session_field_tool(uint32_t tool, char out[SESSION_FIELD_BYTES]);
struct str session_field_open(unsigned slot, char out[SESSION_FIELD_BYTES]);

#endif
