/* The rows of the configuration file, for config.c. */
#ifndef TOOLGATE_POLICY_CONFIG_KEYS_H
#define TOOLGATE_POLICY_CONFIG_KEYS_H

#include "policy/config.h"

/* Reads the file; then, when the command line has been applied, reports keys that contradict each other. */
void config_read_keys(struct config_reader *reader, const struct json *file, struct config *config);
void config_check_keys(struct config_reader *reader, struct config *config);

#endif
