/* One row for each kind; a peer can cause as many as it likes and changes no more than its row. */
#include "server/problems.h"

#include "base/log.h"
#include "json/write.h"
#include "server/server_internal.h"

#include <stdio.h>

static const char *const codes[] = {
    [PROBLEM_UNKNOWN_KEY] = "unknown_key",
    [PROBLEM_MISPLACED_KEY] = "misplaced_key",
    [PROBLEM_EMPTY_SESSION] = "empty_session",
    [PROBLEM_WRONG_TYPE] = "wrong_type",
    [PROBLEM_TRACE_CONTEXT] = "invalid_trace_context",
    [PROBLEM_CHECKS_UNREPORTED] = "checks_unreported",
    [PROBLEM_REPORT_UNPLACED] = "report_unplaced",
};

void problems_note(struct client *client, enum problem_kind kind, struct str text)
{
    struct problem_notes *notes = &client->server->problems;
    struct problem_note *note = &notes->kinds[kind];
    struct str shown = str_cut(text, sizeof(note->text) - 1);
    uint64_t held;
    note->count++;
    note->last_ms = clock_wall_ms();
    memcpy(note->text, shown.at, shown.len);
    note->text[shown.len] = '\0';
    snprintf(note->client, sizeof(note->client), "pid %d, user %s", (int)client->peer.pid, client->peer.user);
    if (rate_limit_allow(&notes->lines, PROBLEM_LINES_PER_SECOND, &held))
        log_event(LOG_WARN, "request_warning", LOG_TEXT("code", codes[kind]), LOG_TEXT("why", note->text),
                  LOG_NUM("pid", client->peer.pid), LOG_TEXT("user", client->peer.user),
                  LOG_NUM("not_logged", held));
}

void problems_write(struct json_out *out, const struct server *server)
{
    json_field_open(out, "problems", '[');
    for (size_t i = 0; i < PROBLEM_KINDS; i++) {
        const struct problem_note *note = &server->problems.kinds[i];
        if (!note->count)
            continue;
        json_open(out, '{');
        json_field_text(out, "code", codes[i]);
        json_field_int(out, "count", (int64_t)note->count);
        json_field_text(out, "last", note->text);
        json_field_text(out, "client", note->client);
        json_field_int(out, "last_ms", note->last_ms);
        json_close(out, '}');
    }
    json_close(out, ']');
}

/* ---- checks that nobody reports ------------------------------------------------
 * Counted per connection: a program that opens one for each call is not seen. */

uint32_t unreported_add(struct client *client, struct str step)
{
    struct unreported *checks = &client->unreported;
    uint64_t hash = step.len ? hash_stable(step).low | 1 : 0;
    char text[PROBLEM_TEXT_BYTES];
    if (!hash || hash != checks->step)
        checks->count++;
    checks->step = hash;
    if (checks->count <= UNREPORTED_MAX)
        return 0;
    if (checks->count >= checks->next_noted) {
        checks->next_noted = 2 * checks->count;
        snprintf(text, sizeof(text),
                 "%u checks in a row without a report: nothing is counted and no loop is found; the program "
                 "must send "
                 "toolgate/report after each tool that it ran",
                 checks->count);
        problems_note(client, PROBLEM_CHECKS_UNREPORTED, str_of(text));
    }
    return checks->count;
}

void unreported_clear(struct client *client)
{
    client->unreported = (struct unreported){0};
}
