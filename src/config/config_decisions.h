/* `decisions = { file = …, arguments = "masked", … }`: what the decision log records of a call, and where. */
#ifndef TOOLGATE_CONFIG_CONFIG_DECISIONS_H
#define TOOLGATE_CONFIG_CONFIG_DECISIONS_H

#include "config/key_table.h"

#define DECISIONS_FILE_MB    64u /* max_mb: of the file, and of each older one */
#define DECISIONS_SOCKET_MB  8u  /* the same beside the socket, a folder that is mostly in memory */
#define DECISIONS_KEEP       4u  /* keep: older files */
#define DECISIONS_JOURNAL    "/run/systemd/journal/socket"
#define DECISIONS_MASK_MAX   256u /* names in mask */
#define DECISIONS_MAX_MB_MAX 65536
#define DECISIONS_KEEP_MAX   1000

/* How much of a value a record has. */
enum decisions_detail { DECISIONS_NONE, DECISIONS_HASH, DECISIONS_MASKED, DECISIONS_FULL };

struct config_decisions {
    bool on;
    bool to_file;                /* false: `file = false`, only other sinks */
    const char *file;            /* NULL: in the state folder */
    const char *journald;        /* journald's socket; NULL: none */
    unsigned arguments, results; /* enum decisions_detail */
    const struct str *mask;      /* globs of the names of secret values */
    size_t mask_count;
    uint32_t max_mb; /* 0: the default of its place */
    uint32_t keep;
};

void config_decisions_init(struct config_decisions *decisions);

/* Equal in what the sinks depend on, so that a reload need not open them again. */
bool config_decisions_same_sinks(const struct config_decisions *a, const struct config_decisions *b);

/* Reads false, true or a table, into a struct config_decisions. */
key_reader config_decisions_read;
extern const struct config_key config_decisions_keys[];

#endif
