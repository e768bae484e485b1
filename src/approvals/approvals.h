/*
 * The fleet's table of approvals (approval_table.h), kept as one record of the ledger's store: read, changed
 * and committed if nobody else has committed since. So an approval that two daemons would spend is spent
 * once. Nothing here runs for a call that no policy asks about.
 *
 * While Redis is away nothing is approved and nothing is spent: there is no stand-in for a person's yes.
 */
#ifndef TOOLGATE_APPROVALS_APPROVALS_H
#define TOOLGATE_APPROVALS_APPROVALS_H

#include "approvals/approval_table.h"

struct approvals;
struct ledger;

#define APPROVALS_CONFLICTS_MAX 16u /* of one commit; then its requests are unavailable */
#define APPROVAL_ID_CHARS       16u /* hexadecimal digits */

/* Borrows the ledger's store. */
struct approvals *approvals_new(struct ledger *ledger);
/* After the ledger: its stores end no request any more. */
void approvals_free(struct approvals *approvals);

/* True: it has ended, and `done` is not called. False: `done` is called later, exactly once. The request, and
 * what it borrows, lives until then. */
bool approvals_do(struct approvals *approvals, struct approval_request *request);
/* A copy of a request whose answer nobody waits for; it has no texts. */
void approvals_do_unheard(struct approvals *approvals, const struct approval_request *request);
/* Forgets the owner's requests; what they change may be committed all the same. */
void approvals_cancel(struct approvals *approvals, const void *owner);

/* Now, by the clock of the store. */
int64_t approvals_now_ms(const struct approvals *approvals);
/* A process of this host. */
struct approval_process approvals_process(uint32_t pid);

void approvals_write_id(uint64_t id, char out[APPROVAL_ID_CHARS + 1]);
/* 0: no id. */
uint64_t approvals_read_id(struct str text);

#endif
