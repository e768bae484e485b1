/* Sessions in a table by the hash that their keys are made of, and in two lists: those that wait, those that
 * fly. */
#include "ledger/away.h"

#include <stdlib.h>

#define BUCKETS 16384u
#define HASH_AT 5u /* tg1:{ */

struct absence_list {
    struct absence *first, *last;
};

struct away {
    void *owner;
    struct absence *buckets[BUCKETS];
    struct absence_list waiting, flying;
    size_t sessions, commands;
};

struct away *away_new(void *owner)
{
    struct away *away = calloc(1, sizeof(*away));
    if (!away)
        abort();
    away->owner = owner;
    return away;
}

void *away_owner(const struct away *away)
{
    return away->owner;
}

/* ---- lists ------------------------------------------------------------------ */

static void link_last(struct absence_list *list, struct absence *a)
{
    a->next = NULL;
    a->previous = list->last;
    if (list->last)
        list->last->next = a;
    else
        list->first = a;
    list->last = a;
}

static void unlink_from(struct absence_list *list, struct absence *a)
{
    if (a->previous)
        a->previous->next = a->next;
    else
        list->first = a->next;
    if (a->next)
        a->next->previous = a->previous;
    else
        list->last = a->previous;
}

static void append(struct late_list *list, struct late *late)
{
    late->next = NULL;
    if (list->last)
        list->last->next = late;
    else
        list->first = late;
    list->last = late;
}

static void free_late(struct away *away, struct late *late)
{
    buf_clear(&late->job.command.bytes);
    free(late);
    away->commands--;
}

static void free_list(struct away *away, struct late_list *list)
{
    while (list->first) {
        struct late *late = list->first;
        list->first = late->next;
        free_late(away, late);
    }
    list->last = NULL;
}

/* ---- the table --------------------------------------------------------------- */

/* A key serves as well as what it has in common with the session's others: its hash, in hex, stands in both.
 */
static struct absence **bucket_of(const struct away *away, struct str stem)
{
    uint32_t n = 0;
    for (size_t i = HASH_AT; i < HASH_AT + 8; i++)
        n = n << 4 ^ (unsigned char)stem.at[i] ^ n >> 24;
    return (struct absence **)&away->buckets[n % BUCKETS];
}

struct absence *away_find(const struct away *away, struct str stem)
{
    if (!away->sessions)
        return NULL;
    for (struct absence *a = *bucket_of(away, stem); a; a = a->next_alike)
        if (memcmp(a->stem, stem.at, sizeof(a->stem)) == 0)
            return a;
    return NULL;
}

struct absence *away_note(struct away *away, struct str stem)
{
    struct absence *a = away_find(away, stem);
    if (a || away->sessions == AWAY_SESSIONS_MAX)
        return a;
    if (!(a = calloc(1, sizeof(*a))))
        abort();
    struct absence **bucket = bucket_of(away, stem);
    a->away = away;
    memcpy(a->stem, stem.at, sizeof(a->stem));
    a->next_alike = *bucket;
    *bucket = a;
    link_last(&away->waiting, a);
    away->sessions++;
    return a;
}

struct absence *away_first(const struct away *away)
{
    return away->waiting.first;
}

void away_fly(struct away *away, struct absence *a, bool flies)
{
    unlink_from(a->flying ? &away->flying : &away->waiting, a);
    a->flying = flies;
    link_last(flies ? &away->flying : &away->waiting, a);
}

static void free_absence(struct away *away, struct absence *a)
{
    free_list(away, &a->ready);
    free_list(away, &a->late);
    buf_clear(&a->doubts);
    free(a);
    away->sessions--;
}

static void drop(struct away *away, struct absence *a)
{
    struct absence **at = bucket_of(away, (struct str){a->stem, sizeof(a->stem)});
    while (*at != a)
        at = &(*at)->next_alike;
    *at = a->next_alike;
    unlink_from(a->flying ? &away->flying : &away->waiting, a);
    free_absence(away, a);
}

void away_settle(struct away *away, struct absence *a)
{
    if (!a->ready.first && !a->late.first && !a->doubts.len && !a->counted)
        drop(away, a);
}

static void free_all(struct away *away, struct absence *first)
{
    while (first) {
        struct absence *next = first->next;
        free_absence(away, first);
        first = next;
    }
}

void away_free(struct away *away)
{
    if (!away)
        return;
    free_all(away, away->waiting.first);
    free_all(away, away->flying.first);
    free(away);
}

/* ---- commands ------------------------------------------------------------------ */

bool away_add(struct away *away, struct absence *a, struct late_list *list, struct redis_job *from)
{
    struct late *late = away->commands < AWAY_LATE_MAX ? calloc(1, sizeof(*late)) : NULL;
    if (!late)
        return false;
    late->job = *from;
    late->of = a;
    from->command.bytes = (struct buf){.at = NULL};
    append(list, late);
    away->commands++;
    return true;
}

void away_remove(struct away *away, struct late *late)
{
    struct late_list *list = &late->of->ready;
    struct late *before = NULL;
    for (struct late *at = list->first; at != late; at = at->next)
        before = at;
    if (before)
        before->next = late->next;
    else
        list->first = late->next;
    if (list->last == late)
        list->last = before;
    free_late(away, late);
}

void absence_admit(struct absence *a, uint64_t admission)
{
    a->admitted[a->admitted_count++ % AWAY_ADMITTED] = (uint32_t)admission;
}

bool absence_admitted(const struct absence *a, uint64_t admission)
{
    for (uint32_t i = 0; i < AWAY_ADMITTED && i < a->admitted_count; i++)
        if (a->admitted[i] == (uint32_t)admission)
            return true;
    return false;
}

size_t away_sessions(const struct away *away)
{
    return away->sessions;
}

size_t away_commands(const struct away *away)
{
    return away->commands;
}
