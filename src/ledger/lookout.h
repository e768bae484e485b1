/*
 * Hears from a sentinel that another server is the master now. The old one
 * goes on taking writes for seconds, and forgets them when it learns of it:
 * it has to be left at once.
 */
#ifndef TOOLGATE_LEDGER_LOOKOUT_H
#define TOOLGATE_LEDGER_LOOKOUT_H

#include "ledger/finder.h"

struct lookout;

#define LOOKOUT_AGAIN_MS 1000u /* from a sentinel that is lost to the next */

/* `moved` fires at most once for each lookout_start, from the loop's turn. `address` is borrowed. */
struct lookout *lookout_new(struct loop *loop, const struct address *address, void (*moved)(void *owner),
                            void *owner);
void lookout_free(struct lookout *lookout);

void lookout_start(struct lookout *lookout, const struct place *master); /* the one that is ours now */
void lookout_stop(struct lookout *lookout);

#endif
