/* The list itself is in state/quarantine.c. */
#include "server/quarantine_watch.h"

#include "base/arena.h"
#include "base/clock.h"
#include "json/write.h"
#include "policy/policy_set.h"
#include "server/reload.h"
#include "server/server_internal.h"
#include "state/quarantine.h"

#define WATCH_MOST_S 3600 /* between two looks at the clock, which may be set meanwhile */

static void on_time(void *owner)
{
    struct server *server = owner;
    if (quarantine_next_s(server->quarantine) == 0)
        reload_request(server, "quarantine");
    else
        quarantine_watch_begin(server);
}

void quarantine_watch_begin(struct server *server)
{
    int64_t left = quarantine_next_s(server->quarantine);
    timer_clear(&server->quarantine_timer);
    if (left < 0)
        return;
    left = left < WATCH_MOST_S ? left : WATCH_MOST_S;
    timer_set(&server->quarantine_timer, server->loop, (uint32_t)left * 1000 + 1, on_time, server);
}

void quarantine_watch_end(struct server *server)
{
    timer_clear(&server->quarantine_timer);
}

static bool is_held(const struct policy_set *policies, const struct quarantine_faults *faults)
{
    size_t count;
    const struct policy_stall *stalls = policy_set_stalls(policies, &count);
    for (size_t i = 0; i < count; i++)
        if (stalls[i].text == faults->text && str_eq(stalls[i].file, faults->file))
            return true;
    return false;
}

static void write_one(struct json_out *out, struct arena *arena, const struct client *client,
                      const struct quarantine_faults *faults, bool held)
{
    const struct policy_set *policies = client->server->gate.generation->policies;
    json_open(out, '{');
    for (size_t n = 0; n < policy_set_count(policies); n++)
        if (str_eq(policy_set_at(policies, n)->file, faults->file))
            json_field_str(out, "tool", policy_set_at(policies, n)->name);
    json_field_str(out, "file", faults->file);
    json_field_str(out, "why",
                   ARENA_JOIN(arena, quarantine_sentence(arena, faults),
                              held ? STR_LIT(", so it does not run, and its tool's calls fail")
                                   : STR_LIT("; after more such calls it is quarantined for a day")));
    json_field_int(out, "faults", (int64_t)faults->count);
    json_field_int(out, "sessions", (int64_t)faults->sessions);
    json_field_int(out, "last_ms", faults->last_s * 1000);
    if (faults->until_s)
        json_field_int(out, "until_ms", faults->until_s * 1000);
    json_field_text(out, "fix",
                    held ? "change the file, or remove its lines from the list and restart"
                         : "change the file");
    json_field_text(out, "list", quarantine_path(client->server->quarantine));
    json_close(out, '}');
}

static void write_list(struct json_out *out, const struct client *client, const char *key, bool held)
{
    struct arena *arena = arena_new();
    struct quarantine_faults *list = ARENA_ARRAY(arena, struct quarantine_faults, QUARANTINE_MAX);
    size_t count = quarantine_list(client->server->quarantine, list, QUARANTINE_MAX), shown = 0;
    for (size_t i = 0; i < count; i++) {
        if (is_held(client->server->gate.generation->policies, &list[i]) != held)
            continue;
        if (!shown++)
            json_field_open(out, key, '[');
        write_one(out, arena, client, &list[i], held);
    }
    if (shown)
        json_close(out, ']');
    arena_free(arena);
}

void quarantine_watch_write_status(struct json_out *out, const struct client *client)
{
    if (!client_is_operator(client))
        return;
    write_list(out, client, "quarantined", true);
    write_list(out, client, "suspected", false);
}
