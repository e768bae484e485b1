/* `traces = { endpoint = …, headers = {…}, sample = 1.0 }`: where the spans of calls go. */
#ifndef TOOLGATE_CONFIG_CONFIG_TRACES_H
#define TOOLGATE_CONFIG_CONFIG_TRACES_H

#include "config/key_table.h"
#include "traces/span_exporter.h"

struct config;

/* Into `traces` of a struct config, which is a struct span_export. */
extern const struct config_key config_traces_keys[];

void config_traces_init(struct span_export *traces);

/* Reports keys without an endpoint. */
void config_traces_check(struct config_reader *reader, const struct config *config);

#endif
