/* `metrics = { listen = "127.0.0.1:9464" }`: the HTTP endpoint for operators. */
#ifndef TOOLGATE_CONFIG_CONFIG_METRICS_H
#define TOOLGATE_CONFIG_CONFIG_METRICS_H

#include "config/config.h"
#include "config/key_table.h"

extern const struct config_key config_metrics_keys[];

/* Reports combinations of keys that contradict each other. */
void config_metrics_check(struct config_reader *reader, const struct config *config);

#endif
