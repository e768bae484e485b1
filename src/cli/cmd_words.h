/*
 * The vocabulary of policies in the forms that `toolgate words --format`
 * prints, from the tables that the loader reads.
 */
#ifndef TOOLGATE_CLI_CMD_WORDS_H
#define TOOLGATE_CLI_CMD_WORDS_H

#include "base/buf.h"
#include "policy/reference.h"

struct arena;

/* docs/vocabulary.md */
void cmd_words_markdown(struct arena *arena, struct buf *out);

/* lua/types/toolgate.lua, in the annotations of lua-language-server (LuaCATS). */
void cmd_words_luacats(struct arena *arena, struct buf *out);

#endif
