/* Parts of toolgate/status that the page shows, too. Each writes one member of an object that is open. */
#ifndef TOOLGATE_SERVER_STATUS_METHOD_H
#define TOOLGATE_SERVER_STATUS_METHOD_H

#include "policy/policy_set.h"

struct client;
struct json_out;
struct ledger;

void status_write_ledger(struct json_out *out, const struct ledger *ledger);

/* What this client may see: failures of policies. */
void status_write_failures(struct json_out *out, const struct client *client);

/* "enforce", "shadow" or "off". */
const char *status_mode_name(enum policy_mode mode);

#endif
