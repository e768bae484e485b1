/* Dates begin at 00:00 UTC, so one look at that time finds each. */
#include "server/shadow_watch.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "catalog/shadow_expiry.h"
#include "json/write.h"
#include "server/server_internal.h"

#define SHADOW_WATCH_MOST_MS 3600000 /* between two looks at the clock, which may be set meanwhile */

static void log_expired(const struct server *server, int64_t now_ms)
{
    struct arena *arena = arena_new();
    struct shadow_expiry *list;
    size_t count = shadow_expired(server->gate.generation, now_ms, arena, &list);
    for (size_t i = 0; i < count; i++)
        log_event(LOG_WARN, "shadow_expired", LOG_STR("file", list[i].file),
                  LOG_STR("why", list[i].sentence));
    arena_free(arena);
}

static void wait_for_day(struct server *server);

static void on_time(void *owner)
{
    struct server *server = owner;
    int64_t now = clock_wall_ms();
    if (now / SHADOW_EXPIRY_DAY_MS != server->shadow_day) {
        server->shadow_day = now / SHADOW_EXPIRY_DAY_MS;
        log_expired(server, now);
    }
    wait_for_day(server);
}

static void wait_for_day(struct server *server)
{
    int64_t left = SHADOW_EXPIRY_DAY_MS - clock_wall_ms() % SHADOW_EXPIRY_DAY_MS;
    timer_set(&server->shadow_timer, server->loop,
              (uint32_t)(left < SHADOW_WATCH_MOST_MS ? left : SHADOW_WATCH_MOST_MS), on_time, server);
}

void shadow_watch_begin(struct server *server)
{
    int64_t now = clock_wall_ms();
    server->shadow_day = now / SHADOW_EXPIRY_DAY_MS;
    log_expired(server, now);
    wait_for_day(server);
}

size_t shadow_watch_count(const struct server *server)
{
    struct arena *arena = arena_new();
    struct shadow_expiry *list;
    size_t count = shadow_expired(server->gate.generation, clock_wall_ms(), arena, &list);
    arena_free(arena);
    return count;
}

void shadow_watch_write_status(struct json_out *out, const struct server *server)
{
    struct arena *arena = arena_new();
    struct shadow_expiry *list;
    size_t count = shadow_expired(server->gate.generation, clock_wall_ms(), arena, &list);
    json_field_open(out, "shadow_expired", '[');
    for (size_t i = 0; i < count; i++) {
        json_open(out, '{');
        json_field_str(out, "file", list[i].file);
        json_field_str(out, "why", list[i].sentence);
        json_close(out, '}');
    }
    json_close(out, ']');
    arena_free(arena);
}
