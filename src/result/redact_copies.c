/*
 * A hash table by the first bytes of each copy in lower case. For each beginning of four bytes it is known
 * how long the keys are that begin so: most places of a text are passed at one look, the others hash a few
 * bytes.
 */
#include "result/redact.h"

#include "base/arena.h"
#include "base/buf.h"
#include "json/build.h"
#include "json/write.h"

#define START_BYTES 4u  /* a copy has at least so many bytes */
#define KEY_BYTES   32u /* of a longer copy that its hash is of */

_Static_assert(REDACT_COPY_MIN_BYTES >= START_BYTES && REDACT_NUMBER_MIN_BYTES >= START_BYTES,
               "the first bytes of each copy are read");
_Static_assert(REDACT_COPIES_MAX < UINT16_MAX, "slots hold numbers of copies");

struct redact_copy {
    struct str text;
    uint64_t hash; /* of its key */
};

static unsigned char folded(char c)
{
    return (unsigned char)ascii_lower(c);
}

static size_t key_len(struct str text)
{
    return text.len < KEY_BYTES ? text.len : KEY_BYTES;
}

static uint64_t hash_on(uint64_t hash, char c)
{
    return (hash ^ folded(c)) * 0x9e3779b97f4a7c15u;
}

static size_t start_of(const char *at)
{
    uint32_t start = (uint32_t)folded(at[0]) << 24 | (uint32_t)folded(at[1]) << 16 |
                     (uint32_t)folded(at[2]) << 8 | folded(at[3]);
    return (start * 2654435761u) >> (32 - REDACT_START_BITS);
}

static size_t slot_of(const struct redact_copies *copies, uint64_t hash)
{
    return (hash >> 32) & (copies->slot_count - 1);
}

/* The copy in this slot, which moves on; NULL: no more. */
static const struct redact_copy *next_copy(struct redact_copies *copies, size_t *slot)
{
    size_t number = copies->slots[*slot];
    *slot = (*slot + 1) & (copies->slot_count - 1);
    copies->steps++;
    return number ? &copies->list[number - 1] : NULL;
}

static bool is_at(struct redact_copies *copies, const char *at, struct str copy)
{
    for (size_t i = 0; i < copy.len; i++, copies->steps++)
        if (folded(at[i]) != folded(copy.at[i]))
            return false;
    return true;
}

/* ---- to add ---- */

static void put_in_slot(struct redact_copies *copies, size_t number)
{
    size_t slot = slot_of(copies, copies->list[number].hash);
    while (copies->slots[slot]) {
        slot = (slot + 1) & (copies->slot_count - 1);
        copies->steps++;
    }
    copies->slots[slot] = (uint16_t)(number + 1);
}

/* Twice as many copies, in four times as many slots. */
static void grow(struct redact_copies *copies)
{
    size_t room = copies->room ? copies->room * 2 : 16;
    struct redact_copy *list = ARENA_ARRAY(copies->arena, struct redact_copy, room);
    if (copies->count)
        memcpy(list, copies->list, copies->count * sizeof(*list));
    if (!copies->lengths)
        copies->lengths = ARENA_ARRAY(copies->arena, uint64_t, (size_t)1 << REDACT_START_BITS);
    copies->list = list;
    copies->room = room;
    copies->slot_count = room * 4;
    copies->slots = ARENA_ARRAY(copies->arena, uint16_t, copies->slot_count);
    for (size_t i = 0; i < copies->count; i++)
        put_in_slot(copies, i);
}

static void add_text(struct redact_copies *copies, struct str text)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < key_len(text); i++)
        hash = hash_on(hash, text.at[i]);
    const struct redact_copy *known;
    copies->overflow |= copies->steps > REDACT_STEPS_MAX;
    if (copies->overflow)
        return;
    for (size_t slot = slot_of(copies, hash); copies->count && (known = next_copy(copies, &slot));)
        if (known->hash == hash && known->text.len == text.len && is_at(copies, text.at, known->text))
            return;
    if (copies->count == REDACT_COPIES_MAX) {
        copies->overflow = true;
        return;
    }
    if (copies->count == copies->room)
        grow(copies);
    copies->list[copies->count] = (struct redact_copy){text, hash};
    put_in_slot(copies, copies->count++);
    copies->lengths[start_of(text.at)] |= (uint64_t)1 << key_len(text);
    unsigned char first = folded(text.at[0]);
    copies->begins[first] = true;
    copies->begins[first >= 'a' && first <= 'z' ? first - 32 : first] = true;
}

void redact_copies_add(struct redact_copies *copies, const struct json *hidden)
{
    struct str text = str_trim(json_str(hidden));
    struct buf escaped = buf_in(copies->arena);
    switch (hidden->type) {
    case JSON_STRING:
        if (text.len < REDACT_COPY_MIN_BYTES || str_is(text, REDACTED))
            return;
        json_write_string(&escaped, text);
        add_text(copies, text);
        if (escaped.len > text.len + 2)
            add_text(copies, (struct str){escaped.at + 1, escaped.len - 2});
        return;
    case JSON_NUMBER:
        if (hidden->len >= REDACT_NUMBER_MIN_BYTES)
            add_text(copies, (struct str){hidden->text, hidden->len});
        return;
    default:
        for (uint32_t i = 0; i < json_child_count(hidden); i++)
            redact_copies_add(copies, json_child(hidden, i));
    }
}

/* ---- to search ---- */

/* The length of the longest copy that stands at text[at] with a key of this hash, if that is more than
 * `longest`. */
static size_t longer_copy(struct redact_copies *copies, struct str text, size_t at, uint64_t hash,
                          size_t longest)
{
    const struct redact_copy *copy;
    for (size_t slot = slot_of(copies, hash); (copy = next_copy(copies, &slot));) {
        size_t end = at + copy->text.len;
        if (copy->hash != hash || copy->text.len <= longest || end > text.len)
            continue;
        bool ends = end == text.len || !ascii_is_alnum(text.at[end - 1]) || !ascii_is_alnum(text.at[end]);
        if (ends && is_at(copies, text.at + at, copy->text))
            longest = copy->text.len;
    }
    return longest;
}

/* The longest copy that stands at text[at], not inside a longer word. */
static size_t copy_at(struct redact_copies *copies, struct str text, size_t at)
{
    if (text.len - at < START_BYTES || (at && ascii_is_alnum(text.at[at]) && ascii_is_alnum(text.at[at - 1])))
        return 0;
    uint64_t lengths = copies->lengths[start_of(text.at + at)], hash = 0;
    size_t longest = 0, rest = text.len - at;
    for (size_t len = 0; lengths >> len && len <= rest; len++) {
        if (lengths & (uint64_t)1 << len)
            longest = longer_copy(copies, text, at, hash, longest);
        if (len < rest)
            hash = hash_on(hash, text.at[at + len]);
        copies->steps++;
    }
    return longest;
}

struct str redact_copies_mask(struct redact_copies *copies, struct str text)
{
    struct buf out = buf_in(copies->arena);
    size_t done = 0;
    for (size_t at = 0; copies->count;) {
        while (at < text.len && !copies->begins[(unsigned char)text.at[at]])
            at++;
        if (at == text.len)
            break;
        size_t len = copy_at(copies, text, at);
        if (copies->steps > REDACT_STEPS_MAX) {
            copies->overflow = true;
            return STR_LIT(REDACTED);
        }
        if (len) {
            buf_str(&out, (struct str){text.at + done, at - done});
            buf_text(&out, REDACTED);
            done = at + len;
        }
        at += len ? len : 1;
    }
    if (!done)
        return text;
    buf_str(&out, str_from(text, done));
    return buf_view(&out);
}

/* ---- names of redacted fields in texts: by their first byte, most places of a text begin none ---- */

static size_t skip_blanks(struct str text, size_t at)
{
    while (at < text.len && (text.at[at] == ' ' || text.at[at] == '\t'))
        at++;
    return at;
}

/* Behind the name: an end of a quote, ":" or "=", blanks. Where the value begins, or 0. */
static size_t value_at(struct str text, size_t at)
{
    while (at < text.len && (text.at[at] == '"' || text.at[at] == '\'' || text.at[at] == '\\' ||
                             text.at[at] == '*' || text.at[at] == '`'))
        at++;
    at = skip_blanks(text, at);
    if (at == text.len || (text.at[at] != ':' && text.at[at] != '='))
        return 0;
    at++;
    while (at < text.len && text.at[at] == '*')
        at++;
    return skip_blanks(text, at);
}

/* A quoted value ends with its quote, a list or an object with its bracket, any other with the line or before
 * a comma, a semicolon or a bracket. */
static size_t value_end(struct str text, size_t at)
{
    size_t depth = 0;
    char quote = '\0';
    for (size_t i = at; i < text.len; i++) {
        char c = text.at[i];
        if (quote && c == '\\')
            i++;
        else if (quote && c == quote && !depth)
            return i + 1;
        else if (quote)
            quote = c == quote ? '\0' : quote;
        else if ((c == '"' || c == '\'') && (depth || i == at))
            quote = c;
        else if (c == '[' || c == '{')
            depth++;
        else if (depth && (c == ']' || c == '}') && !--depth)
            return i + 1;
        else if (!depth && (c == '\n' || c == '\r' || c == ',' || c == ';' || c == ']' || c == '}'))
            return i;
    }
    return text.len;
}

void redact_names_of(struct redact_names *names, struct arena *arena, const struct str *fields, size_t count)
{
    names->list = ARENA_ARRAY(arena, struct str, count + 1);
    for (size_t i = 0; i < count; i++) {
        struct str name = fields[i]; /* its last name: "email" of "customers[].email", "tags" of "tags[]" */
        while (name.len && (name.at[name.len - 1] == ']' || name.at[name.len - 1] == '['))
            name.len--;
        size_t from = name.len;
        while (from && name.at[from - 1] != '.' && name.at[from - 1] != ']')
            from--;
        name = str_from(name, from);
        if (!name.len)
            continue;
        names->list[names->count++] = name;
        unsigned char first = (unsigned char)ascii_lower(name.at[0]);
        names->begins[first] = true;
        names->begins[first >= 'a' && first <= 'z' ? first - 32 : first] = true;
    }
}

struct str redact_named_values(struct arena *arena, struct redact_names *names, struct str text)
{
    struct buf out = buf_in(arena);
    size_t done = 0;
    for (size_t at = 0;;) {
        while (at < text.len && !names->begins[(unsigned char)text.at[at]])
            at++;
        if (at == text.len)
            break;
        size_t from = 0; /* where the value behind one of the names at `at` begins */
        bool inside_word = at && (ascii_is_alnum(text.at[at - 1]) || text.at[at - 1] == '_');
        for (size_t i = 0; i < names->count && !inside_word && !from; i++) {
            struct str name = names->list[i], rest = str_from(text, at);
            if (rest.len >= name.len && strncasecmp(rest.at, name.at, name.len) == 0)
                from = value_at(text, at + name.len);
        }
        size_t to = from ? value_end(text, from) : 0;
        bool is_masked = to > from && str_starts(str_from(text, from), REDACTED);
        if (to > from && !is_masked) {
            bool quoted = text.at[from] == '"' && to - from >= 2 && text.at[to - 1] == '"';
            buf_str(&out, (struct str){text.at + done, from + quoted - done});
            buf_text(&out, REDACTED);
            done = to - quoted;
        }
        at = to > from ? to : at + 1;
    }
    if (!done)
        return text;
    buf_str(&out, str_from(text, done));
    return buf_view(&out);
}
