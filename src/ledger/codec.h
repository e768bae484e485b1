/*
 * A session as bytes: what stores keep and daemons of different builds share. Little-endian.
 *
 *   head   the format (1 byte), the fixed fields (HEAD_FIELDS: the version first, then the counts of what
 *          follows), chains, each with its problems and names, counters, paced calls, problems that were
 *          asked about, texts that named turns, counts of calls that left the window; then zeros up to a
 *          multiple of CODEC_PAD_BYTES
 *   calls  CODEC_CALL_BYTES each: at most SESSION_CALLS_MAX, in the order of the array
 *
 * One table of fields per struct serves both directions; the tables at the top of codec.c are the layout.
 * Hashes are cut to the width of their field, sums of costs stop at its largest value. What decodes is
 * encoded as the same bytes. Bytes that were not written by this codec are an error of that session, never of
 * the daemon.
 */
#ifndef TOOLGATE_LEDGER_CODEC_H
#define TOOLGATE_LEDGER_CODEC_H

#include "base/buf.h"
#include "ledger/rules.h"

#define CODEC_FORMAT      5u /* the first byte */
#define CODEC_VERSION_AT  1u /* eight bytes: session.version; they are compared before a commit */
#define CODEC_GUARD_BYTES 9u /* format and version: the beginning of every value */
#define CODEC_PAD_BYTES   32u
#define CODEC_CALL_BYTES  36u
#define CODEC_NOTE_BYTES  12u    /* of the journal; retries stop at 63 there */
#define CODEC_MAX_BYTES   16384u /* of any session; a longer value is none of ours */

/* Unless CODEC_OK or CODEC_OLDER, `session` is unspecified. Array elements beyond their counts are left as
 * they are. */
enum codec_result {
    CODEC_OK,
    CODEC_DAMAGED,
    CODEC_OLDER, /* of an earlier format: only `version` is set, and the session begins anew */
    CODEC_NEWER  /* of a later one: leave it alone */
};
enum codec_result codec_decode(struct str bytes, struct session *session);

/* Makes `core` the session's bytes. It is empty, or holds them as they were before the calls whose bit is set
 * in `changed` did; then only these are written again, and the head, which was `*head` bytes long. */
void codec_update(const struct session *session, uint32_t changed, size_t *head, struct buf *core);

/* The guard of a session stored in this format at this version: CODEC_GUARD_BYTES. */
void codec_guard(uint8_t format, uint64_t version, char out[CODEC_GUARD_BYTES]);

void codec_encode_note(const struct session_note *note, struct buf *out);
/* Takes one off `bytes`. False: too few bytes, or no note. `tool` has its low 24 bits, `turn` its low 16. */
bool codec_decode_note(struct str *bytes, struct session_note *note);

#endif
