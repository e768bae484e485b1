/* The fields that words of policies take, and those of tables that toolgate fills in. Only files of this room
 * include this header. */
#ifndef TOOLGATE_POLICY_VOCABULARY_WORD_FIELDS_H
#define TOOLGATE_POLICY_VOCABULARY_WORD_FIELDS_H

#include "base/str.h"
#include "policy/vocabulary/field_table.h"

extern const struct field_table word_repair_table, word_ok_table, word_follow_up_table,
    word_tool_return_table, word_seen_table, word_params_table, word_type_table, word_str_table,
    word_number_table, word_list_table, word_peer_table, word_past_table, word_url_table;

/* The table of a word, "repair" or "ok.follow_up", whose names Lua checks; NULL: Lua checks none of it. */
const struct field_table *word_table_named(struct str name);

#endif
