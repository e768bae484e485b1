/*
 * Strings of models, tools and files as a terminal may show them: a character that could move the cursor,
 * change colours, reorder the line or hide text is written as an escape, \x1b or \u{202e}, instead.
 */
#ifndef TOOLGATE_BASE_PRINTABLE_H
#define TOOLGATE_BASE_PRINTABLE_H

#include "base/buf.h"

/* C0 and C1 controls, DEL, bidirectional controls, tag characters, invisible separators, and bytes that are
 * no UTF-8 are escaped; a newline and a tab become a space. */
void printable_write(struct buf *out, struct str text);

/* The same of at most `max` bytes of the text, with "…" if it is longer. */
void printable_write_cut(struct buf *out, struct str text, size_t max);

/* Whether printable_write escapes this code point. */
bool printable_is_hidden(uint32_t code_point);

#endif
