/* toolgate words: parts that its files share. */
#ifndef TOOLGATE_CLI_CMD_WORDS_H
#define TOOLGATE_CLI_CMD_WORDS_H

#include "base/buf.h"

/* Takes the first of the forms, which are separated by "  or  ", off `*forms`. */
struct str words_take_form(struct str *forms);

/* cmd_words_man.c: toolgate-policy(5). */
void words_write_man(struct arena *arena, struct buf *out);

#endif
