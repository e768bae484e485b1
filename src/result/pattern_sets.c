/* Two walks: one names the place of the first hit, the other masks secrets and shares what it does not
 * change. */
#include "result/pattern_sets.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/printable.h"
#include "json/build.h"
#include "result/secret_text.h"

#include <strings.h>

/* ---- find ---- */

struct search {
    unsigned sets;
    struct buf path;
    struct pattern_found *found;
};

static struct str find_hidden(struct str text)
{
    return str_of(printable_find_invisible(text));
}

static bool find_in_text(struct search *s, struct str text)
{
    size_t at, len;
    struct pattern_found *found = s->found;
    if ((s->sets & PATTERN_SET_SECRETS) && secret_text_find_key(text, 0, &at, &len, &found->pattern))
        found->set = PATTERN_SET_SECRETS;
    else if ((s->sets & PATTERN_SET_INSTRUCTIONS) && order_text_find(text, 0, &at, &len, &found->pattern))
        found->set = PATTERN_SET_INSTRUCTIONS;
    else if ((s->sets & PATTERN_SET_HIDDEN) && (found->pattern = find_hidden(text)).len)
        found->set = PATTERN_SET_HIDDEN;
    else
        return false;
    return true;
}

static bool find(struct search *s, const struct json *value)
{
    size_t length = s->path.len;
    if (value->type == JSON_STRING)
        return find_in_text(s, json_str(value));
    for (uint32_t i = 0; i < json_child_count(value); i++) {
        if (value->type == JSON_ARRAY) {
            buf_printf(&s->path, "[%u]", i);
        } else {
            struct str key = value->members[i].key;
            if (find_in_text(s, key)) /* the place is the object: the key is what must not be said */
                return true;
            buf_text(&s->path, length ? "." : "");
            buf_str(&s->path, key);
        }
        if (find(s, json_child(value, i)))
            return true;
        s->path.len = length;
    }
    return false;
}

bool pattern_sets_find(struct arena *arena, unsigned sets, const struct json *value,
                       struct pattern_found *found)
{
    struct search s = {.sets = sets, .path = buf_in(arena), .found = found};
    if (!value || !find(&s, value))
        return false;
    found->path = str_cut(buf_view(&s.path), PATTERN_PATH_MAX_BYTES);
    return true;
}

/* ---- mask ---- */

/* Hidden characters first: they could divide a secret. */
struct str pattern_sets_mask_text(struct arena *arena, unsigned sets, struct str text)
{
    struct buf visible = buf_in(arena), out = buf_in(arena);
    size_t done = 0, at, len;
    struct str name;
    if ((sets & PATTERN_SET_HIDDEN) && find_hidden(text).len) {
        printable_strip_invisible(&visible, text);
        text = visible.len ? buf_view(&visible) : STR_LIT("");
    }
    while ((sets & PATTERN_SET_SECRETS) && secret_text_find_key(text, done, &at, &len, &name)) {
        buf_add(&out, text.at + done, at - done);
        buf_printf(&out, "[redacted " STR_FMT "]", STR_ARG(name));
        done = at + len;
    }
    if (!done)
        return text;
    buf_str(&out, str_from(text, done));
    return buf_view(&out);
}

static struct str mask_text(const void *sets, struct arena *arena, struct str text)
{
    return pattern_sets_mask_text(arena, *(const unsigned *)sets, text);
}

const struct json *pattern_sets_mask(struct arena *arena, unsigned sets, const struct json *value)
{
    return json_map_strings(arena, value, mask_text, &sets);
}

/*
 * ---- orders to the model ----
 *
 * A phrase is words with single spaces between: "a|b" is one of both, "a|b*" any number of them, also none.
 * Between the words of a text stand blanks and punctuation. A tag is compared byte by byte, in any case.
 */

#define WORD_GAP_MAX_BYTES 4u
#define WORDS_SKIPPED_MAX  4u /* of a "*" */

static const struct order {
    struct str name, phrase;
} phrases[] =
    {
        {STR("ignore_previous"),
         STR("ignore|disregard|forget|override all|any|of|the|your|my|these|those|every* "
             "previous|prior|above|earlier|preceding|system|former "
             "instruction|instructions|prompt|prompts|directions|rules|messages|guidelines|orders")},
        {STR("do_not_tell"), STR("not|don't|never tell|inform|alert|notify the|your user|human|operator")},
        {STR("do_not_tell"),
         STR("not|don't|never mention|reveal|disclose|show this|it|that to the|your user|human|operator")},
        {STR("without_telling"),
         STR("without telling|informing|asking|notifying|alerting the|your user|human|operator")},
        {STR("new_instructions"),
         STR("your new|real|actual|true|updated instruction|instructions|task|mission|orders is|are")},
        {STR("reveal_prompt"), STR("reveal|print|repeat|output|leak|send|show me|us|all|of* your|the* "
                                   "system|initial|hidden prompt|instructions")},
        {STR("new_role"),
         STR("you are now in|a|an|the* developer|debug|god|dan|jailbreak|unrestricted|unfiltered|admin "
             "mode|assistant|ai|model")},
},
  tags[] =
      {
          {STR("chat_template"), STR("<|im_start|>")},   {STR("chat_template"), STR("<|im_end|>")},
          {STR("chat_template"), STR("<|system|>")},     {STR("chat_template"), STR("<|assistant|>")},
          {STR("chat_template"), STR("<|eot_id|>")},     {STR("chat_template"), STR("<<SYS>>")},
          {STR("system_tag"), STR("<system>")},          {STR("system_tag"), STR("</system>")},
          {STR("system_tag"), STR("<system-reminder>")}, {STR("important_tag"), STR("<important>")},
},
  lines[] = {
      /* of the gateway's feedback: a tool that begins a line so speaks in its name */
      {STR("gateway_line"), STR("Next: call ")},
      {STR("gateway_line"), STR("Next: for the rest call ")},
      {STR("gateway_line"), STR("Next: Call ")},
};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static bool is_word_char(char c)
{
    return ascii_is_letter(c) || c == '\'';
}

/* Where the next word of the text begins; text.len: no word is near. */
static size_t next_word(struct str text, size_t at)
{
    for (size_t end = at + WORD_GAP_MAX_BYTES; at < text.len && at < end; at++)
        if (is_word_char(text.at[at]))
            return at;
    return text.len;
}

/* Whether the word is one of "a|b|c". */
static bool is_one_of(struct str words, struct str word)
{
    while (words.len) {
        const char *bar = memchr(words.at, '|', words.len);
        size_t len = bar ? (size_t)(bar - words.at) : words.len;
        if (len == word.len && words.at[0] == (word.at[0] | 32) && strncasecmp(words.at, word.at, len) == 0)
            return true;
        words = str_from(words, bar ? len + 1 : len);
    }
    return false;
}

/* The end of the phrase that begins at `at`; 0: it does not stand there. */
static size_t phrase_end(struct str text, size_t at, struct str phrase)
{
    size_t end = at, next = at;
    while (phrase.len) {
        /* cuts the next "a|b*" off the phrase */
        const char *space = memchr(phrase.at, ' ', phrase.len);
        struct str slot = {phrase.at, space ? (size_t)(space - phrase.at) : phrase.len};
        phrase = str_from(phrase, space ? slot.len + 1 : slot.len);
        bool any_number = slot.at[slot.len - 1] == '*';
        slot.len -= any_number;
        unsigned words = 0, most = any_number ? WORDS_SKIPPED_MAX : 1;
        while (words < most && next < text.len) {
            size_t word = next;
            while (word < text.len && is_word_char(text.at[word]))
                word++;
            if (!is_one_of(slot, (struct str){text.at + next, word - next}))
                break;
            words++;
            end = word;
            next = next_word(text, word);
        }
        if (!words && !any_number)
            return 0;
    }
    return end;
}

static size_t order_end(struct str text, size_t at, struct str *name)
{
    if (text.at[at] == '<') {
        for (size_t i = 0; i < COUNT(tags); i++) {
            *name = tags[i].name;
            if (str_starts_nocase(str_from(text, at), tags[i].phrase.at))
                return at + tags[i].phrase.len;
        }
        return 0;
    }
    for (size_t i = 0; i < COUNT(lines) && (!at || text.at[at - 1] == '\n'); i++) {
        *name = lines[i].name;
        if (str_starts(str_from(text, at), lines[i].phrase.at))
            return at + lines[i].phrase.len;
    }
    for (size_t i = 0; i < COUNT(phrases); i++) {
        *name = phrases[i].name;
        size_t end = phrase_end(text, at, phrases[i].phrase);
        if (end)
            return end;
    }
    return 0;
}

/* The first two letters of the phrases, in both cases: most words of a text stop here. */
static const bool first_pairs[32][32] = {
    ['i' & 31]['g' & 31] = true, ['d' & 31]['i' & 31] = true, ['f' & 31]['o' & 31] = true,
    ['o' & 31]['v' & 31] = true, ['n' & 31]['o' & 31] = true, ['d' & 31]['o' & 31] = true,
    ['n' & 31]['e' & 31] = true, ['w' & 31]['i' & 31] = true, ['y' & 31]['o' & 31] = true,
    ['r' & 31]['e' & 31] = true, ['p' & 31]['r' & 31] = true, ['o' & 31]['u' & 31] = true,
    ['l' & 31]['e' & 31] = true, ['s' & 31]['e' & 31] = true, ['s' & 31]['h' & 31] = true};

static bool may_begin(struct str text, size_t at)
{
    unsigned char first = (unsigned char)text.at[at];
    if (first == '<')
        return true;
    return first >= 'A' && at + 1 < text.len && first_pairs[first & 31][text.at[at + 1] & 31] &&
           (!at || !is_word_char(text.at[at - 1]));
}

bool order_text_find(struct str text, size_t from, size_t *at, size_t *len, struct str *name)
{
    for (size_t i = from; i < text.len; i++) {
        size_t end = may_begin(text, i) ? order_end(text, i, name) : 0;
        if (!end)
            continue;
        *at = i;
        *len = end - i;
        return true;
    }
    return false;
}
