/*
 * A JSON value with what compaction must know of each part: how many bytes it
 * is, whether it must stay, whether it is what the call asked about. Only
 * compact*.c include this header.
 */
#ifndef TOOLGATE_RESULT_COMPACT_TREE_H
#define TOOLGATE_RESULT_COMPACT_TREE_H

#include "json/value.h"

struct arena;

#define COMPACT_WORDS_MAX        16u /* words of the goal that are looked for */
#define COMPACT_ARGUMENT_IDS_MAX 32u /* ids in the arguments */

struct node {
    const struct json *value;
    struct node *parent, *children;
    struct str key;  /* within an object */
    struct str when; /* of an object: the latest time among its own members; empty: none */
    uint32_t count;
    uint32_t size;    /* bytes as JSON without spaces; dropped parts left out */
    uint32_t least;   /* of what must stay of it, if it stays at all; `size` where all of it must */
    uint32_t floor;   /* the same, where lists within it may lose items: what no budget goes below */
    uint16_t words;   /* a bit for each word of the goal that stands in it */
    bool entity : 1;  /* an object that holds an id of the arguments: what the call is about */
    bool kept : 1;    /* must stay whatever goes */
    bool leads : 1;   /* something below was named to be kept */
    bool dropped : 1; /* was named to go first */
};

/* What the policy names, what the call says. All borrowed. */
struct compact_rules {
    const struct str *keep, *drop, *gives_ids;
    size_t keep_count, drop_count, gives_id_count;
    struct str words[COMPACT_WORDS_MAX]; /* in lower case */
    size_t word_count;
    struct str asked[COMPACT_ARGUMENT_IDS_MAX];
    size_t asked_count;
};

/* Words of three letters and more that say something. The texts live in the arena. */
void compact_set_goal(struct compact_rules *rules, struct str goal, struct arena *arena);

/* Ids that the arguments name. */
void compact_set_argument_ids(struct compact_rules *rules, const struct json *arguments);

/* `drops`: whether what is named to go first has gone. */
struct node *compact_tree(struct arena *arena, const struct compact_rules *rules, const struct json *value,
                          bool drops);

/* A bit for each word of the goal in the text. */
uint16_t compact_goal_words_in(const struct compact_rules *rules, struct str text);

/* Does an id of the arguments stand in the text, as a word of its own? */
bool compact_has_argument_id(const struct compact_rules *rules, struct str text);

/* The name of an id or a title: what stands there says which thing it is. */
bool compact_is_identifying_key(struct str key);

#define COMPACT_KEPT_TEXT_BYTES 200u /* bytes of a title that stays, where not all of it can */

/* "events[].raw": where a part stands. */
struct str compact_node_path(struct arena *arena, const struct node *node);

/* Bytes of a string as JSON, and of a member's key with its colon. */
uint32_t compact_string_size(struct str text);
uint32_t compact_key_size(const struct node *member);

#endif
