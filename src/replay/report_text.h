/* The report of a replay as text for a person. */
#ifndef TOOLGATE_REPLAY_REPORT_TEXT_H
#define TOOLGATE_REPLAY_REPORT_TEXT_H

#include "replay/replay_report.h"

#define REPORT_TEXT_ROWS 20u /* of each table; --json has all */

/* Escape sequences, or "". */
struct report_colours {
    const char *plain, *bold, *dim, *red, *green, *yellow;
};

void report_text(const struct replay_report *report, const struct report_colours *colours, struct buf *out);

#endif
