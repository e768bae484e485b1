/*
 * What policies may write, in the forms that `toolgate words` prints: for
 * people, as the reference in the docs, and as definitions for editors. All
 * of it is made from the tables that the loader itself reads.
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
