/*
 * Slots that are used again and again, and ids that count up: id = serial *
 * MCP_CALLS_MAX + slot. An answer to an id of yesterday finds its slot taken by
 * another, and is nobody's.
 */
#include "upstream/mcp/mcp_client_internal.h"

#include <stdlib.h>

#define FIRST_ROOM 16u

static void *grown(void *old, size_t count, size_t size)
{
    void *more = reallocarray(old, count, size);
    if (!more)
        abort();
    return more;
}

static void make_room(struct pendings *all)
{
    if (all->used < all->room)
        return;
    all->room = all->room ? all->room * 2 : FIRST_ROOM;
    all->slots = grown(all->slots, all->room, sizeof(struct pending *));
    all->next_spare = grown(all->next_spare, all->room, sizeof(*all->next_spare));
}

static struct pending *new_slot(struct pendings *all)
{
    if (all->used == MCP_CALLS_MAX)
        return NULL;
    make_room(all);
    struct pending *pending = grown(NULL, 1, sizeof(*pending));
    pending->slot = all->used++;
    all->slots[pending->slot] = pending;
    return pending;
}

static struct pending *take_slot(struct pendings *all)
{
    if (!all->spare)
        return new_slot(all);
    struct pending *pending = all->slots[all->spare - 1];
    all->spare = all->next_spare[pending->slot];
    return pending;
}

static void append(struct pending_list *list, struct pending *pending)
{
    pending->next = NULL;
    pending->previous = list->last;
    if (list->last)
        list->last->next = pending;
    else
        list->first = pending;
    list->last = pending;
    list->count++;
}

static void unlink_one(struct pending_list *list, struct pending *pending)
{
    if (pending->previous)
        pending->previous->next = pending->next;
    else
        list->first = pending->next;
    if (pending->next)
        pending->next->previous = pending->previous;
    else
        list->last = pending->previous;
    list->count--;
}

struct pending *pending_add(struct pendings *all)
{
    struct pending *pending = take_slot(all);
    if (!pending)
        return NULL;
    *pending = (struct pending){.slot = pending->slot, .id = ++all->serial * MCP_CALLS_MAX + pending->slot};
    append(&all->waiting, pending);
    return pending;
}

void pending_send(struct pendings *all, struct pending *pending)
{
    unlink_one(&all->waiting, pending);
    pending->sent = true;
    append(&all->sent, pending);
}

void pending_remove(struct pendings *all, struct pending *pending)
{
    unlink_one(pending->sent ? &all->sent : &all->waiting, pending);
    pending->id = 0;
    all->next_spare[pending->slot] = all->spare;
    all->spare = pending->slot + 1;
}

struct pending *pending_find(const struct pendings *all, uint64_t id)
{
    uint32_t slot = (uint32_t)(id % MCP_CALLS_MAX);
    if (!id || slot >= all->used)
        return NULL;
    struct pending *pending = all->slots[slot];
    return pending->id == id && pending->sent ? pending : NULL;
}

/* ---- given up --------------------------------------------------------------------- */

/* Where there is no room the one that is over first gives its own, and is nobody's any more: all are
 * strangers to it. */
void abandoned_calls_add(struct abandoned_calls *all, uint64_t id, uint64_t caller, int64_t now_us)
{
    struct abandoned_call *place = all->list;
    for (size_t i = 1; i < MCP_ABANDONED_MAX; i++)
        if (all->list[i].until_us < place->until_us)
            place = &all->list[i];
    bool taken = place->until_us > now_us;
    *place = (struct abandoned_call){taken ? 0 : id, taken ? 0 : caller,
                                     now_us + (int64_t)MCP_ABANDONED_MS * 1000};
}

void abandoned_calls_remove(struct abandoned_calls *all, uint64_t id)
{
    for (size_t i = 0; id && i < MCP_ABANDONED_MAX; i++)
        if (all->list[i].id == id)
            all->list[i] = (struct abandoned_call){0};
}

bool abandoned_calls_by_others(const struct abandoned_calls *all, uint64_t caller, int64_t now_us)
{
    bool found = false;
    for (size_t i = 0; i < MCP_ABANDONED_MAX; i++)
        found |= all->list[i].until_us > now_us && all->list[i].caller != caller;
    return found;
}

/* ---- all ---------------------------------------------------------------------------- */

void pendings_clear(struct pendings *all)
{
    for (uint32_t i = 0; i < all->used; i++)
        free(all->slots[i]);
    free(all->slots);
    free(all->next_spare);
    *all = (struct pendings){0};
}
