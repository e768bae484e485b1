/*
 * What has to be told to Redis once it is back, session by session: commands
 * in their order, admissions to take back, and whether the engine that stood
 * in has counted something. Only keeps it; engine.c decides.
 */
#ifndef TOOLGATE_LEDGER_AWAY_H
#define TOOLGATE_LEDGER_AWAY_H

#include "ledger/redis.h"

struct away;

#define AWAY_SESSIONS_MAX 262144u /* more find no place: what they counted stays in this daemon */
#define AWAY_LATE_MAX     65536u  /* commands that wait, of all sessions together */
#define AWAY_ADMITTED     32u     /* admissions of one session that the stand-in is known to hold */

/* A command that waits, or is under way for the second time. */
struct late {
    struct redis_job job;
    struct absence *of;
    struct late *next;
    bool sent;
};

struct late_list {
    struct late *first, *last;
};

/* One session. */
struct absence {
    struct away *away;
    char stem[SCRIPT_KEY_BYTES - 1]; /* what its keys have in common */
    struct buf doubts;               /* admissions nobody heard of, as pack_doubt puts them */
    bool counted;                    /* the stand-in has news */
    bool flying;                     /* something of it is under way */
    struct late_list ready;          /* in the order in which they go, those under way first */
    struct late_list late;           /* to go behind the next merge */
    struct absence *next, *previous; /* among those that wait, or those that fly */
    struct absence *next_alike;      /* in the table */
    uint32_t admitted[AWAY_ADMITTED];
    uint32_t admitted_count;
};

struct away *away_new(void *owner);
void away_free(struct away *away);
void *away_owner(const struct away *away);

struct absence *away_find(const struct away *away, struct str stem); /* NULL: nothing to tell */
struct absence *away_note(struct away *away, struct str stem);       /* NULL: no place */
struct absence *away_first(const struct away *away);                 /* that waits; NULL: none does */
void away_fly(struct away *away, struct absence *absence, bool flies);
/* Lets go of it where nothing is left to tell. */
void away_settle(struct away *away, struct absence *absence);

/* The command is moved out of `from`. False: no place, it is lost. */
bool away_add(struct away *away, struct absence *absence, struct late_list *list, struct redis_job *from);
void away_remove(struct away *away, struct late *late); /* from its session's `ready` */

void absence_admit(struct absence *absence, uint64_t admission);
bool absence_admitted(const struct absence *absence, uint64_t admission);

size_t away_sessions(const struct away *away);
size_t away_commands(const struct away *away);

#endif
