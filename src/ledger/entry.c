#include "ledger/ledger_internal.h"

#include "base/alloc.h"

#include <stdlib.h>

#define LET_GO_AT_ONCE 4 /* where all are in use there are more than ENTRIES_MAX for a while */

void entries_init(struct entries *e)
{
    *e = (struct entries){.spare_commits = NULL};
    lru_init(&e->table);
}

/* Leaves nothing of it but its memory. */
static void take_out(struct entries *e, struct ledger_entry *entry)
{
    lru_remove(&e->table, &entry->node);
    timer_clear(&entry->pause);
    session_parts_clear(&entry->parts);
    buf_clear(&entry->core);
}

void entries_clear(struct entries *e, void (*drop)(struct ledger_entry *entry))
{
    struct ledger_entry *entry;
    while ((entry = (struct ledger_entry *)e->table.oldest)) {
        drop(entry);
        take_out(e, entry);
        free(entry);
    }
    while (e->spare_commits) {
        struct commit *commit = e->spare_commits;
        e->spare_commits = commit->spare;
        buf_clear(&commit->writes);
        buf_clear(&commit->bytes);
        buf_clear(&commit->gave_up);
        free(commit);
    }
    lru_clear(&e->table);
}

struct ledger_entry *entries_find(struct entries *e, struct hash128 id)
{
    return (struct ledger_entry *)lru_find(&e->table, id);
}

struct ledger_entry *entries_get(struct entries *e, struct ledger *ledger, struct hash128 id)
{
    struct ledger_entry *entry = entries_find(e, id), *spare = NULL;
    if (entry)
        return entry;
    struct ledger_entry *oldest = (struct ledger_entry *)e->table.oldest;
    for (int i = 0; i < LET_GO_AT_ONCE && oldest && e->table.count >= ENTRIES_MAX; i++) {
        struct ledger_entry *newer = (struct ledger_entry *)oldest->node.newer;
        if (!oldest->busy && !oldest->paused && STAILQ_EMPTY(&oldest->queue)) {
            take_out(e, oldest);
            free(spare);
            spare = oldest;
        }
        oldest = newer;
    }
    /* All but the session, which is filled in when it is loaded or begun: with many sessions each request
     * would otherwise clear some 8 KB. */
    if ((entry = spare))
        memset(entry, 0, offsetof(struct ledger_entry, session));
    else
        entry = alloc_zeroed(sizeof(*entry));
    entry->node.id = id;
    entry->ledger = ledger;
    STAILQ_INIT(&entry->queue);
    STAILQ_INIT(&entry->flying);
    lru_add(&e->table, &entry->node);
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
    entry->core.len = 0;
    entry->session.batch = 0; /* what is stored may be of another daemon's step */
}

struct commit *entries_commit(struct entries *e, struct ledger_entry *entry)
{
    struct commit *commit = e->spare_commits;
    if (commit)
        e->spare_commits = commit->spare;
    else
        commit = alloc_zeroed(sizeof(*commit));
    commit->ledger = entry->ledger;
    commit->entry = entry;
    return commit;
}

void entries_return_commit(struct entries *e, struct commit *commit)
{
    commit->spare = e->spare_commits;
    e->spare_commits = commit;
}
