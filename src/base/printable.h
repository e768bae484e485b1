/*
 * Strings of models, tools, servers and files in a line of ours: on a terminal, in the log, in the feedback
 * that a model reads. A character that could begin another line, move the cursor, change colours, reorder
 * the line or hide text is written as an escape, \x1b or \u{202e}, or is removed.
 */
#ifndef TOOLGATE_BASE_PRINTABLE_H
#define TOOLGATE_BASE_PRINTABLE_H

#include "base/buf.h"

struct arena;

/* C0 and C1 controls, DEL, bidirectional controls, tag characters, invisible separators, and bytes that are
 * no UTF-8 are escaped; a newline and a tab become a space. A joiner stays behind a visible character that is
 * not ASCII, as in scripts and emoji that need it. */
void printable_write(struct buf *out, struct str text);

/* The same of each line of the text: its newlines stay. */
void printable_write_lines(struct buf *out, struct str text);

/* The same of at most `max` bytes of the text, with "…" if it is longer. */
void printable_write_cut(struct buf *out, struct str text, size_t max);

/* The same of a JSON text, which stays one: the escapes are JSON's. */
void printable_write_json(struct buf *out, struct str json);

/* Whether printable_write would write it as it is. */
bool printable_is_plain(struct str text);

/* The text itself if it is plain, else a copy as printable_write writes it. */
struct str printable_line(struct arena *arena, struct str text);

/* Hidden characters, without the controls that JSON text may have: what a person who reads a text does not
 * see, and a model does. Counts those in the text. */
size_t printable_count_hidden(struct str text);

/* Writes the text without them. */
void printable_strip(struct buf *out, struct str text);

/* Writes what of a text can stand in a tool's name: letters without their marks, digits, '-', '.' and '_',
 * which also stands for each run of other characters between. May write nothing. */
void printable_write_name(struct buf *out, struct str text);

/* What is invisible in a text of data, such as a tool's result: zero-width, bidirectional and tag characters.
 * Unlike above, controls, soft hyphens, marks of direction and line separators are not, nor are the tags of a
 * flag, as all of them have a use in data. Returns "zero_width", "bidirectional" or "tags" for the first;
 * NULL: none exists. */
const char *printable_find_invisible(struct str text);

/* Writes the text without what is invisible. */
void printable_strip_invisible(struct buf *out, struct str text);

#endif
