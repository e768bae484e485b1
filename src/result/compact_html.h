/* A page of HTML as the text that a reader sees: markup is most of its bytes, and says a model little. */
#ifndef TOOLGATE_RESULT_COMPACT_HTML_H
#define TOOLGATE_RESULT_COMPACT_HTML_H

#include "base/str.h"

struct arena;

bool compact_html_detect(struct str text);

/* Headings as "# …", items as "- …", a line for each block; without scripts, styles and comments. */
struct str compact_html_to_text(struct arena *arena, struct str page);

#endif
