/* Counts per connection: a program that opens one for each call is not seen. */
#include "server/unreported.h"

#include "base/hash.h"
#include "server/problems.h"
#include "server/server_internal.h"

#include <stdio.h>

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
