/*
 * Slots that are reused, and ids that count up: id = serial * MCP_CALLS_MAX +
 * slot. A late response finds its slot taken by another id and matches nothing.
 */
#include "upstream/mcp/mcp_client_internal.h"

#include <stdlib.h>

#define FIRST_ROOM 16u

void pending_init(struct pending_requests *all)
{
    TAILQ_INIT(&all->sent);
    TAILQ_INIT(&all->waiting);
    TAILQ_INIT(&all->free);
}

void pending_clear(struct pending_requests *all)
{
    for (uint32_t i = 0; i < all->used; i++)
        free(all->slots[i]);
    free(all->slots);
}

/* A free slot, or a new one. */
static struct pending_request *take_slot(struct pending_requests *all)
{
    struct pending_request *pending = TAILQ_FIRST(&all->free);
    if (pending) {
        TAILQ_REMOVE(&all->free, pending, entry);
        return pending;
    }
    if (all->used == MCP_CALLS_MAX)
        return NULL;
    if (all->used == all->room) {
        all->room = all->room ? all->room * 2 : FIRST_ROOM;
        all->slots = reallocarray(all->slots, all->room, sizeof(struct pending_request *));
    }
    pending = malloc(sizeof(*pending));
    if (!all->slots || !pending)
        abort();
    pending->slot = all->used;
    return all->slots[all->used++] = pending;
}

struct pending_request *pending_add(struct pending_requests *all)
{
    struct pending_request *pending = take_slot(all);
    if (!pending)
        return NULL;
    *pending =
        (struct pending_request){.slot = pending->slot, .id = ++all->serial * MCP_CALLS_MAX + pending->slot};
    TAILQ_INSERT_TAIL(&all->waiting, pending, entry);
    return pending;
}

void pending_mark_sent(struct pending_requests *all, struct pending_request *pending)
{
    TAILQ_REMOVE(&all->waiting, pending, entry);
    pending->sent = true;
    TAILQ_INSERT_TAIL(&all->sent, pending, entry);
}

void pending_remove(struct pending_requests *all, struct pending_request *pending)
{
    TAILQ_REMOVE(pending->sent ? &all->sent : &all->waiting, pending, entry);
    pending->id = 0;
    TAILQ_INSERT_HEAD(&all->free, pending, entry);
}

struct pending_request *pending_find(const struct pending_requests *all, uint64_t id)
{
    uint32_t slot = (uint32_t)(id % MCP_CALLS_MAX);
    if (!id || slot >= all->used)
        return NULL;
    struct pending_request *pending = all->slots[slot];
    return pending->id == id && pending->sent ? pending : NULL;
}

/* If there is no room, the oldest entry is reused for an unknown caller, which differs from every other. */
void abandoned_calls_add(struct abandoned_calls *all, uint64_t id, uint64_t caller, int64_t now_us)
{
    size_t oldest = 0;
    for (size_t i = 1; i < MCP_ABANDONED_MAX; i++)
        if (all->list[i].until_us < all->list[oldest].until_us)
            oldest = i;
    bool taken = all->list[oldest].until_us > now_us;
    all->list[oldest].id = taken ? 0 : id;
    all->list[oldest].caller = taken ? 0 : caller;
    all->list[oldest].until_us = now_us + (int64_t)MCP_ABANDONED_MS * 1000;
}

void abandoned_calls_remove(struct abandoned_calls *all, uint64_t id)
{
    for (size_t i = 0; id && i < MCP_ABANDONED_MAX; i++)
        if (all->list[i].id == id)
            memset(&all->list[i], 0, sizeof(all->list[i]));
}

bool abandoned_calls_by_others(const struct abandoned_calls *all, uint64_t caller, int64_t now_us)
{
    bool found = false;
    for (size_t i = 0; i < MCP_ABANDONED_MAX; i++)
        found |= all->list[i].until_us > now_us && all->list[i].caller != caller;
    return found;
}
