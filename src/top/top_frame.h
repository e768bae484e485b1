/*
 * One frame of `toolgate top` as text: lines that fit the terminal, the most
 * important first. What clients, models and upstreams sent passes term_clip.
 */
#ifndef TOOLGATE_CLI_TOP_FRAME_H
#define TOOLGATE_CLI_TOP_FRAME_H

#include "base/buf.h"
#include "top/top_figures.h"

struct top_view {
    unsigned columns, rows; /* rows 0: as many as there is to show */
    enum top_order order;
    unsigned interval_s;
    struct str notice; /* why there is no newer answer; empty: it is up to date */
    bool keys;         /* show which keys do what */
};

/* `now` without a status: only the notice. */
void top_frame(struct buf *out, const struct top_view *view, const struct top_snapshot *now,
               const struct top_figures *figures);

#endif
