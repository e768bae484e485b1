/* `sandbox` of an upstream that toolgate starts: true, "best_effort" or a table of keys. */
#ifndef TOOLGATE_CONFIG_CONFIG_SANDBOX_H
#define TOOLGATE_CONFIG_CONFIG_SANDBOX_H

#include "config/config_upstreams.h"

key_reader config_sandbox_read; /* into a struct config_upstream */
extern const struct config_key config_sandbox_keys[];

#endif
