/*
 * Requests as the scripts' ARGV, and their packed replies back into words.
 * Every layout here is the one that the script's first comment states.
 */
#ifndef TOOLGATE_LEDGER_PACK_H
#define TOOLGATE_LEDGER_PACK_H

#include "ledger/ledger.h"
#include "ledger/script.h"

struct buf;

#define PACK_NAME_MAX_BYTES 64u   /* of a tool, as the ledger remembers it; longer ones are cut */
#define PACK_EXT_MAX_BYTES  64u   /* of dev.toolgate/ext */
#define PACK_GOAL_MAX_BYTES 4096u /* of a turn's goal */
#define PACK_FACTS_MAX      32u   /* facts of one result; the rest find no room */

/* In admit's reply. */
#define PACK_SAYS_AT   8u  /* what is said, and behind it why */
#define PACK_UNSEEN_AT 20u /* one bit an id */

struct pack_options {
    uint32_t ttl_s, history;
};

/* The texts live in the arena, or are the request's own. */
void pack_admit(struct script_run *run, const struct ledger_admit *request,
                const struct pack_options *options, struct arena *arena);
void pack_settle(struct script_run *run, const struct ledger_settle *request,
                 const struct pack_options *options, struct arena *arena);
void pack_turn(struct script_run *run, uint32_t turn, struct str goal, const struct pack_options *options,
               struct arena *arena);
void pack_see(struct script_run *run, const struct hash128 *ids, size_t count,
              const struct pack_options *options, struct arena *arena);
void pack_reset(struct script_run *run, struct str tool, const struct pack_options *options,
                struct arena *arena);

void pack_leave(struct script_run *run, const struct pack_options *options, struct arena *arena);

#define PACK_DOUBT_BYTES 14u
/* What merge needs to take an admission back, put behind others. */
void pack_doubt(struct buf *out, const struct ledger_admit *request);
void pack_merge(struct script_run *run, uint64_t number, struct str doubts, struct str account,
                const struct pack_options *options, struct arena *arena);

/* A reply being read. A reply that is too short reads as zeros and sets `bad`. */
struct reply {
    const unsigned char *at, *end;
    bool bad;
};
struct reply reply_of(struct str text);
uint8_t reply_u8(struct reply *reply);
uint32_t reply_u32(struct reply *reply);
uint64_t reply_u48(struct reply *reply);
struct str reply_take(struct reply *reply, size_t len);
struct str reply_part(struct reply *reply); /* what stands behind its length in 4 bytes */

/* What admit, turn and view send after their fixed bytes. */
struct reply_parts {
    struct str gave_up, goal, facts, names, journal, chains;
};
void reply_read_parts(struct reply *reply, struct reply_parts *parts);

#endif
