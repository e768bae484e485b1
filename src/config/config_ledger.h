/* `ledger = { redis = …, on_outage = … }`: the store of budgets and loops, and the rule for its outages. */
#ifndef TOOLGATE_CONFIG_CONFIG_LEDGER_H
#define TOOLGATE_CONFIG_CONFIG_LEDGER_H

#include "config/config.h"
#include "config/key_table.h"

extern const struct config_key config_ledger_keys[];

/* Reports combinations of keys that contradict each other. */
void config_ledger_check(struct config_reader *reader, const struct config *config);

/* False: the daemon has to be restarted for the difference. */
bool config_ledger_equal(const struct config *a, const struct config *b);

/* Opens the configured ledger; `loop` is for Redis, `key_file` (ledger_options) for a local one. Secrets in
 * the address are expanded here, and no error shows them. */
struct ledger;
struct loop;
enum err config_ledger_open(const struct config *config, struct loop *loop, const char *key_file,
                            struct ledger **out, struct why *why);

/* Checks the address without connecting. */
enum err config_ledger_validate(const struct config *config, struct why *why);

#endif
