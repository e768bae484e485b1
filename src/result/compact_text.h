/* Shortening a text that is no JSON: whole lines where it has some, and never without saying how much went.
 */
#ifndef TOOLGATE_RESULT_COMPACT_TEXT_H
#define TOOLGATE_RESULT_COMPACT_TEXT_H

#include "result/compact_tree.h"

/* At most `budget` bytes of it: its beginning, and the lines in which words of the goal stand. */
struct str compact_text(struct arena *arena, const struct compact_rules *rules, struct str text,
                        size_t budget, size_t *left_out);

#endif
