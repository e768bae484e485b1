#include "ledger/entry.h"

#include <stdlib.h>

#define TABLE_FIRST 256u

void entries_init(struct entries *e)
{
    *e = (struct entries){.size = TABLE_FIRST};
    e->table = calloc(e->size, sizeof(struct ledger_entry *));
    if (!e->table)
        abort();
    TAILQ_INIT(&e->recent);
}

static struct ledger_entry **place_of(const struct entries *e, struct hash128 id)
{
    struct ledger_entry **at = &e->table[id.low % e->size];
    while (*at && ((*at)->id.low != id.low || (*at)->id.high != id.high))
        at = &(*at)->alike;
    return at;
}

static void grow(struct entries *e)
{
    size_t size = e->size * 2;
    struct ledger_entry **table = calloc(size, sizeof(struct ledger_entry *)), *entry;
    if (!table)
        return; /* longer chains do, too */
    TAILQ_FOREACH (entry, &e->recent, recent) {
        entry->alike = table[entry->id.low % size];
        table[entry->id.low % size] = entry;
    }
    free(e->table);
    e->table = table;
    e->size = size;
}

/* Leaves nothing of it but its memory. */
static void take_out(struct entries *e, struct ledger_entry *entry)
{
    *place_of(e, entry->id) = entry->alike;
    TAILQ_REMOVE(&e->recent, entry, recent);
    e->count--;
    timer_clear(&entry->pause);
    session_parts_clear(&entry->parts);
    buf_clear(&entry->head);
}

static void drop_entry(struct entries *e, struct ledger_entry *entry)
{
    take_out(e, entry);
    free(entry);
}

void entries_clear(struct entries *e, void (*drop)(struct ledger_entry *entry))
{
    struct ledger_entry *entry, *next;
    for (entry = TAILQ_FIRST(&e->recent); entry; entry = next) {
        next = TAILQ_NEXT(entry, recent);
        drop(entry);
        drop_entry(e, entry);
    }
    while (e->spare_commits) {
        struct commit *commit = e->spare_commits;
        e->spare_commits = commit->spare;
        buf_clear(&commit->notes);
        buf_clear(&commit->bytes);
        buf_clear(&commit->gave_up);
        free(commit);
    }
    free(e->table);
    e->table = NULL;
}

struct ledger_entry *entries_find(const struct entries *e, struct hash128 id)
{
    return *place_of(e, id);
}

static bool is_idle(const struct ledger_entry *entry)
{
    return !entry->busy && !entry->paused && STAILQ_EMPTY(&entry->queue);
}

/* Looks at a few only: where all are in use there are more than ENTRIES_MAX for a while. Returns the memory
 * of one that was let go of; NULL: of none. */
static struct ledger_entry *let_go(struct entries *e)
{
    struct ledger_entry *entry = TAILQ_FIRST(&e->recent), *spare = NULL;
    for (int i = 0; i < 4 && entry && e->count >= ENTRIES_MAX; i++) {
        struct ledger_entry *next = TAILQ_NEXT(entry, recent);
        if (is_idle(entry)) {
            take_out(e, entry);
            free(spare);
            spare = entry;
        }
        entry = next;
    }
    return spare;
}

/* All but the session, which is filled in when it is loaded or begun: with many sessions each request would
 * otherwise clear some 8 KB. */
static void clear_entry(struct ledger_entry *entry)
{
    memset(entry, 0, offsetof(struct ledger_entry, session));
}

struct ledger_entry *entries_get(struct entries *e, struct ledger *ledger, struct hash128 id)
{
    struct ledger_entry *entry = *place_of(e, id);
    if (entry) {
        if (TAILQ_NEXT(entry, recent)) {
            TAILQ_REMOVE(&e->recent, entry, recent);
            TAILQ_INSERT_TAIL(&e->recent, entry, recent);
        }
        return entry;
    }
    entry = let_go(e);
    if (e->count >= e->size)
        grow(e);
    if (entry)
        clear_entry(entry);
    else if (!(entry = calloc(1, sizeof(*entry))))
        abort();
    entry->id = id;
    entry->ledger = ledger;
    STAILQ_INIT(&entry->queue);
    STAILQ_INIT(&entry->flying);
    *place_of(e, id) = entry;
    TAILQ_INSERT_TAIL(&e->recent, entry, recent);
    e->count++;
    return entry;
}

static uint8_t keep_text(char *to, size_t room, struct str text)
{
    struct str kept = str_cut(text, room);
    memcpy(to, kept.at, kept.len);
    return (uint8_t)kept.len;
}

void entry_set_name(struct ledger_entry *entry, struct str name)
{
    entry->name_len = keep_text(entry->name, sizeof(entry->name), name);
}

void entry_set_looped(struct ledger_entry *entry, struct str tool)
{
    entry->looped_len = keep_text(entry->looped, sizeof(entry->looped), tool);
}

void entry_forget(struct ledger_entry *entry)
{
    entry->loaded = entry->begun = entry->stored = false;
    entry->head_len = entry->head.len = 0;
    entry->parts.known = 0;
    entry->session.batch = 0; /* what is stored may be of another daemon's step */
}

struct commit *entries_commit(struct entries *e, struct ledger_entry *entry)
{
    struct commit *commit = e->spare_commits;
    if (commit)
        e->spare_commits = commit->spare;
    else if (!(commit = calloc(1, sizeof(*commit))))
        abort();
    commit->ledger = entry->ledger;
    commit->entry = entry;
    return commit;
}

void entries_return_commit(struct entries *e, struct commit *commit)
{
    commit->spare = e->spare_commits;
    e->spare_commits = commit;
}
