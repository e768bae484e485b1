/*
 * A result that exceeds the tool's byte or token budget loses fields and items; a note reports what was left
 * out and how to get it. A structured result still matches its output schema, or stays whole. The caller
 * leaves errors out.
 */
#ifndef TOOLGATE_RESULT_COMPACT_H
#define TOOLGATE_RESULT_COMPACT_H

#include "catalog/tool.h"
#include "json/value.h"
#include "result/result.h"

struct arena;

struct compaction {
    bool done;            /* `result` replaces the tool's */
    struct result result; /* with new content and structured */
    size_t from, to;      /* bytes of the answer: structured value and blocks with text */
    struct str note;      /* for the model: what was left out, or why nothing could be */
};

/* False if the result is within the budget: `out` is then the result itself. */
bool compact_result(struct arena *arena, const struct tool *tool, const struct json *args, struct str goal,
                    const struct result *result, struct compaction *out);

/* ---- what compact.c, compact_text.c and compact_tree.c share ---- */

#define COMPACT_GOAL_WORDS_MAX   16u
#define COMPACT_ARGUMENT_IDS_MAX 32u
#define COMPACT_ID_MAX_BYTES     4096u /* of an argument that is an id; a longer one is none */
#define COMPACT_KEPT_TEXT_BYTES  200u  /* of a title that is kept but too long */
#define COMPACT_PATH_MAX_BYTES   80u   /* of a path in a note */
#define COMPACT_OMISSIONS_MAX    8u    /* paths in a note; the rest are counted */

/* ---- compact_tree.c ---- */

/* What the goal, the arguments and the policy ask to keep. */
struct compact_rules {
    struct arena *arena;
    const struct tool *tool;
    bool drops; /* leave out what the policy drops */
    /* of three letters and more, without common ones, in lower case */
    struct str goal_words[COMPACT_GOAL_WORDS_MAX];
    size_t goal_word_count;
    struct compact_id {
        struct str text;
        const uint16_t *restart; /* compact_has_argument_id */
    } argument_ids[COMPACT_ARGUMENT_IDS_MAX];
    size_t argument_id_count;
    struct compact_key *keys; /* COMPACT_KEYS of them, by their places in their objects */
};

/* What is known of a key: the rows of a list have the same ones. */
#define COMPACT_KEYS 32u
struct compact_key {
    struct str key;
    uint32_t size; /* as JSON; 0: no key yet */
    bool identifies;
};

struct compact_node {
    const struct json *value;
    struct compact_node *parent, *children;
    struct str key;  /* in an object */
    struct str time; /* of an object: the latest time among its own members; empty: none */
    uint32_t count;
    uint32_t key_size;   /* bytes of the key as JSON, with its colon */
    uint32_t size;       /* bytes as JSON without spaces and dropped parts */
    uint32_t least;      /* bytes of what must stay if the part stays; `size` if all of it must */
    uint32_t floor;      /* the same if lists within may lose items: no budget goes below */
    uint16_t goal_words; /* a bit for each word of the goal that occurs in it */
    bool entity : 1;     /* an object with an id of the arguments: the subject of the call */
    bool kept : 1;       /* must stay */
    bool leads : 1;      /* something below must stay by name */
    bool dropped : 1;    /* by the policy */
};

struct compact_rules compact_rules_of(struct arena *arena, const struct tool *tool, const struct json *args,
                                      struct str goal);

struct compact_node *compact_tree(const struct compact_rules *rules, const struct json *value);

/* Bytes of a string as JSON, with its quotes and escapes. */
uint32_t compact_string_size(struct str text);

/* A bit for each word of the goal in the text. */
uint16_t compact_goal_words_in(const struct compact_rules *rules, struct str text);

/* Whether an id of the arguments occurs in the text as a whole word. */
bool compact_has_argument_id(const struct compact_rules *rules, struct str text);

/* The name of an id or a title. */
bool compact_is_identifying_key(struct str key);

/* ---- shortening ---- */

enum compact_omission_kind { OMITTED_ITEMS, OMITTED_DETAIL, OMITTED_FIELD, OMITTED_TEXT };

struct omission {
    enum compact_omission_kind kind;
    struct str path;
    uint64_t count, of; /* items or bytes left out, of all */
};

struct shrink_ctx {
    const struct compact_rules *rules;
    bool items_only; /* leave out whole items and nothing else: for a schema that allows no less */
    struct omission omissions[COMPACT_OMISSIONS_MAX];
    size_t count, more;
};

/* At most about `budget` bytes, if possible. An object or list shares them among its children. */
struct json compact_shrink(struct shrink_ctx *s, const struct compact_node *root, size_t budget);

/* ---- compact_text.c ---- */

/* At most `budget` bytes of a text: its beginning, and lines with words of the goal, with a mark for each
 * gap. */
struct str compact_text(struct arena *arena, const struct compact_rules *rules, struct str text,
                        size_t budget, size_t *left_out);

bool compact_html_detect(struct str text);

/* The text of a page as a reader sees it, without scripts, styles and comments: headings as "# …", items as
 * "- …", a line for each block. */
struct str compact_html_to_text(struct arena *arena, struct str page);

/* Roughly how many tokens a text is for any model: within a third for English prose, code and JSON, rather
 * too high than too low, and never more than it has bytes. */
size_t token_estimate(struct str text);

#endif
