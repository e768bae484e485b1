/*
 * A session as bytes: what stores keep and daemons of different builds share. Little-endian.
 *
 *   head   the format (1 byte), the fixed fields (HEAD_FIELDS: the version first, then the counts of what
 *          follows), chains, each with its problems and names, counters, paced calls, problems that were
 *          asked about, texts that named turns, counts of calls that left the window; then zeros up to a
 *          multiple of CODEC_PAD_BYTES
 *   calls  CODEC_CALL_BYTES each: at most SESSION_CALLS_MAX, in the order of the array, so that a commit can
 *          write one
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

/* The whole value, appended. */
void codec_encode(const struct session *session, struct buf *out);

/* The head alone, padded, appended; returns its length. A commit may write it in place if the stored head is
 * as long. */
size_t codec_encode_head(const struct session *session, struct buf *out);
/* One call: CODEC_CALL_BYTES, appended; it stands at head + index * CODEC_CALL_BYTES. */
void codec_encode_call(const struct session_call *call, struct buf *out);
/* The guard of a session stored in this format at this version: CODEC_GUARD_BYTES. */
void codec_guard(uint8_t format, uint64_t version, char out[CODEC_GUARD_BYTES]);

void codec_encode_note(const struct session_note *note, struct buf *out);
/* Takes one off `bytes`. False: too few bytes, or no note. `tool` has its low 24 bits, `turn` its low 16. */
bool codec_decode_note(struct str *bytes, struct session_note *note);

#endif
