/*
 * `ledger = { redis = …, on_outage = … }`: where budgets and loops are kept,
 * and what happens while that is away.
 */
#ifndef TOOLGATE_CONFIG_CONFIG_LEDGER_H
#define TOOLGATE_CONFIG_CONFIG_LEDGER_H

#include "config/config.h"
#include "config/key_table.h"

extern const struct setting config_ledger_keys[];

/* What no single key can say. */
void config_ledger_check(struct settings *settings, const struct config *config);

/* The two that go another way with another value need the daemon to be started anew. */
bool config_ledger_equal(const struct config *a, const struct config *b);

/* The ledger that is configured; `loop` is for Redis. An address may name what is not in the file (${NAME},
 * ${file:/path}): it is filled in here, and nothing that is said about it shows it. */
struct ledger;
struct loop;
enum err config_ledger_open(const struct config *config, struct loop *loop, struct ledger **out,
                            struct why *why);

/* Whether it could be opened, without asking whether anybody is there. */
enum err config_ledger_validate(const struct config *config, struct why *why);

#endif
