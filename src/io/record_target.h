/*
 * What the thread of a record sink writes to: a file or journald. These functions may block; none
 * allocates or logs. Only record_*.c include this header.
 */
#ifndef TOOLGATE_IO_RECORD_TARGET_H
#define TOOLGATE_IO_RECORD_TARGET_H

#include "io/record_sink.h"

struct record_target {
    const struct record_sink_options *options;
    int fd; /* -1: not open */
};

struct record_target_ops {
    enum err (*open)(struct record_target *target, struct why *why);
    /* `lines`: whole ones. Returns the bytes of those that are written, always whole lines; less than all:
     * `why` says why. *lost: of these, how many can never be written. */
    size_t (*write)(struct record_target *target, struct str lines, uint64_t *lost, struct why *why);
};

extern const struct record_target_ops record_file_ops, record_journal_ops;

static inline const struct record_target_ops *record_target_ops(const struct record_sink_options *options)
{
    return options->kind == RECORD_SINK_FILE ? &record_file_ops : &record_journal_ops;
}

void record_target_close(struct record_target *target);

#endif
