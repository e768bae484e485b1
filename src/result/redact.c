/*
 * Two walks over all parts of a result: the first collects the values of the fields, the second masks them
 * and their copies. A value without either is returned itself, byte for byte.
 */
#include "result/redact.h"

#include "base/arena.h"
#include "base/buf.h"
#include "json/build.h"
#include "json/parse.h"
#include "json/spelled.h"
#include "json/write.h"
#include "schema/sample.h"

/*
 * ---- copies of hidden values ----
 *
 * A hash table by the first bytes of each copy in lower case. For each beginning of four bytes it is known
 * how long the keys are that begin so: most places of a text are passed at one look, the others hash a few
 * bytes.
 */

#define START_BYTES 4u  /* a copy has at least this many bytes */
#define KEY_BYTES   32u /* of a longer copy that its hash is of */
#define SLOTS_FIRST 64u /* a power of two */
#define SLOTS_EACH  4u  /* for each copy, at least */

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

/* In any case. */
static void mark_first(bool begins[256], struct str text)
{
    unsigned char first = folded(text.at[0]);
    begins[first] = true;
    begins[first >= 'a' && first <= 'z' ? first - 32 : first] = true;
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

static void put_in_slot(struct redact_copies *copies, size_t number)
{
    size_t slot = slot_of(copies, copies->list[number].hash);
    while (copies->slots[slot]) {
        slot = (slot + 1) & (copies->slot_count - 1);
        copies->steps++;
    }
    copies->slots[slot] = (uint16_t)(number + 1);
}

static void add_slots(struct redact_copies *copies)
{
    if (!copies->lengths)
        copies->lengths = ARENA_ARRAY(copies->arena, uint64_t, (size_t)1 << REDACT_START_BITS);
    copies->slot_count = copies->slot_count ? copies->slot_count * 2 : SLOTS_FIRST;
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
    if (copies->count * SLOTS_EACH >= copies->slot_count)
        add_slots(copies);
    copies->list = arena_grow(copies->arena, copies->list, copies->count, sizeof(*copies->list));
    copies->list[copies->count] = (struct redact_copy){text, hash};
    put_in_slot(copies, copies->count++);
    copies->lengths[start_of(text.at)] |= (uint64_t)1 << key_len(text);
    mark_first(copies->begins, text);
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

/* ---- names of hidden fields, in texts that are no JSON, or JSON that breaks off ---- */

struct names {
    struct str *list; /* the last name of each field */
    size_t count;
    bool begins[256]; /* by the first byte, in any case: most places of a text begin none */
};

/* Behind the name: an end of a quote, ":" or "=", blanks. Where the value begins, or 0. */
static size_t value_at(struct str text, size_t at)
{
    at = str_span(text, str_span(text, at, "\"'\\*`"), " \t");
    if (at == text.len || (text.at[at] != ':' && text.at[at] != '='))
        return 0;
    return str_span(text, str_span(text, at + 1, "*"), " \t");
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

static void names_of(struct names *names, struct arena *arena, const struct str *fields, size_t count)
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
        mark_first(names->begins, name);
    }
}

/* The text with the value behind "field:", "field=" and "\"field\":" masked; else the text itself. */
static struct str mask_named_values(struct arena *arena, const struct names *names, struct str text)
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

/* ---- masks that the output schema accepts ---- */

#define REFS_MAX         16u  /* of a chain of $ref; a longer one is followed no further */
#define FIT_BRANCHES_MAX 256u /* looked at for one child: references can make a few branches many */
#define FITTED_MAX       64u /* different schemas of hidden fields in one result; of more, none is compiled */

/* "#/$defs/Card" in the root: names without escapes, as generators write them. */
static const struct json *resolve(const struct json *root, const struct json *schema)
{
    for (unsigned i = 0; i < REFS_MAX; i++) {
        struct str ref = json_str(json_get_text(schema, "$ref"));
        if (!str_starts(ref, "#"))
            break;
        const struct json *at = root;
        for (size_t from = 2; at && from < ref.len;) {
            size_t to = str_find(ref, from, "/");
            at = json_get(at, (struct str){ref.at + from, to - from});
            from = to + 1;
        }
        if (!at)
            break;
        schema = at;
    }
    return schema;
}

/* The schema of an item or of a member, through $ref, allOf, anyOf and oneOf; NULL: none. */
static const struct json *fit_child(const struct json *root, const struct json *schema, bool is_item,
                                    struct str key, uint32_t index, unsigned depth, unsigned *branches_left)
{
    static const char *const branches[] = {"allOf", "anyOf", "oneOf"};
    const struct json *found = NULL;
    schema = resolve(root, schema);
    if (is_item) {
        const struct json *items = json_get_text(schema, "items"),
                          *first = json_get_text(schema, "prefixItems");
        first = json_is(items, JSON_ARRAY) ? items : first;
        if (json_is(first, JSON_ARRAY) && index < first->len)
            found = &first->items[index];
        else if (json_is(items, JSON_OBJECT))
            found = items;
    } else {
        const struct json *others = json_get_text(schema, "additionalProperties");
        found = json_get(json_get_text(schema, "properties"), key);
        if (!found && json_is(others, JSON_OBJECT))
            found = others;
    }
    for (size_t b = 0; !found && depth && b < sizeof(branches) / sizeof(*branches); b++) {
        const struct json *list = json_get_text(schema, branches[b]);
        for (uint32_t i = 0; !found && json_is(list, JSON_ARRAY) && i < list->len && *branches_left; i++) {
            --*branches_left;
            found = fit_child(root, &list->items[i], is_item, key, index, depth - 1, branches_left);
        }
    }
    return found;
}

/* `mask` if the schema accepts it, else a sample of the schema (minItems, enum, format, const); NULL:
 * neither. A field's schema is compiled by itself, beside the definitions of the whole, so that its $refs
 * resolve. */
static const struct json *fit_mask(struct arena *arena, const struct json *root, const struct json *schema,
                                   const struct json *mask)
{
    static const char *const definitions[] = {"$defs", "definitions"};
    struct json alone = *resolve(root, schema), sample;
    struct schema *compiled;
    struct why why;
    for (size_t i = 0; alone.type == JSON_OBJECT && i < sizeof(definitions) / sizeof(*definitions); i++) {
        const struct json *defs = json_get_text(root, definitions[i]);
        if (defs)
            alone = json_with(arena, &alone, str_of(definitions[i]), *defs);
    }
    const struct json *source = json_keep(arena, alone);
    if (schema_compile(arena, source, NULL, &compiled, NULL, &why) == OK) {
        if (schema_validate(compiled, mask) == SCHEMA_VALID)
            return mask;
        if (schema_sample(arena, compiled, SAMPLE_REQUIRED, &sample))
            return json_keep(arena, sample);
    }
    return NULL;
}

/* ---- the walks ---- */

struct walk {
    struct arena *arena;
    const struct str *fields;
    size_t count;
    struct names names; /* of the fields, in texts */
    bool removes;       /* leaves the fields out instead */
    struct buf path;    /* of the current value: "customers[].email" */
    struct redact_copies *copies;
    bool collects;             /* the first walk */
    bool keeps_words;          /* a string that is one lower-case word may be an enum's: is no copy */
    const struct json *root;   /* of the output schema, which accepts the masks; NULL: masks by type */
    const struct json *schema; /* of the object or list whose children are walked; NULL: none */
    struct fitted {
        const struct json *schema, *mask, *fit; /* fit NULL: nothing does */
    } * fitted;                                 /* what stands for a hidden value of this schema and type */
    size_t fitted_count;
    unsigned masked_keys;       /* of that object */
    struct redact_found *found; /* NULL: not asked for */
    unsigned nested;            /* JSON in a string */
};

/* The first walk. `copies` NULL: the fields are left out. */
static struct walk walk_for(struct arena *arena, const struct str *fields, size_t count,
                            struct redact_copies *copies)
{
    struct walk w = {.arena = arena, .fields = fields, .count = count, .path = buf_in(arena)};
    w.copies = copies;
    w.collects = copies != NULL;
    w.removes = !copies;
    if (copies)
        names_of(&w.names, arena, fields, count);
    return w;
}

size_t redact_field_at(const struct str *fields, size_t count, struct str path, struct str key)
{
    size_t i = 0;
    for (; i < count; i++) {
        bool is_path = memchr(fields[i].at, '.', fields[i].len) || memchr(fields[i].at, '[', fields[i].len);
        if (str_eq(fields[i], is_path ? path : key))
            break;
    }
    return i;
}

/* By the type of what they stand for. */
static const struct json masks[] = {
    [JSON_NULL] = {.type = JSON_NULL},
    [JSON_BOOL] = {.type = JSON_BOOL},
    [JSON_NUMBER] = {.type = JSON_NUMBER, .integral = true, .len = 1, .text = "0"},
    [JSON_STRING] = {.type = JSON_STRING, .len = sizeof(REDACTED) - 1, .text = REDACTED},
    [JSON_ARRAY] = {.type = JSON_ARRAY},
    [JSON_OBJECT] = {.type = JSON_OBJECT},
};

/* The rows of a list have one schema, which is compiled once for all of them. */
static const struct json *fitted_mask(struct walk *w, const struct json *schema, const struct json *mask)
{
    for (size_t i = 0; i < w->fitted_count; i++)
        if (w->fitted[i].schema == schema && w->fitted[i].mask == mask)
            return w->fitted[i].fit;
    if (w->fitted_count == FITTED_MAX)
        return NULL;
    const struct json *fit = fit_mask(w->arena, w->root, schema, mask);
    w->fitted = arena_grow(w->arena, w->fitted, w->fitted_count, sizeof(*w->fitted));
    w->fitted[w->fitted_count++] = (struct fitted){schema, mask, fit};
    return fit;
}

/* What stands for a hidden value; NULL: it is left out, as its schema takes no mask and does not require it.
 * If it does, the mask, and the result does not fit. */
static const struct json *hide(struct walk *w, const struct json *value, const struct json *schema,
                               bool is_required)
{
    if (w->removes)
        return NULL;
    if (w->collects) {
        redact_copies_add(w->copies, value);
        return value;
    }
    if (w->found && value->type != JSON_STRING && value->type != JSON_NULL)
        w->found->blank = true;
    const struct json *mask = &masks[value->type], *fit = schema ? fitted_mask(w, schema, mask) : mask;
    return !fit && is_required ? mask : fit;
}

static const struct json *walk(struct walk *w, const struct json *value, const struct json *schema);

/* The object or array in a text, however it is spelled. */
static bool json_in(struct walk *w, struct str text, struct json *out)
{
    struct json_error fault;
    struct str trimmed = str_trim(text);
    if (w->nested == REDACT_NESTED_MAX || !trimmed.len || !strchr("{[`\"", trimmed.at[0]))
        return false;
    bool read = json_parse(w->arena, trimmed, NULL, out, &fault) == OK || fault.soft ||
                json_read_spelled(w->arena, trimmed, out, NULL) == JSON_SPELLED;
    return read && (out->type == JSON_OBJECT || out->type == JSON_ARRAY);
}

static bool is_lower_word(struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!(text.at[i] >= 'a' && text.at[i] <= 'z') && text.at[i] != '_' && text.at[i] != '-')
            return false;
    return true;
}

/* JSON in the text is walked as a value of its own; other text is searched for copies and named values. */
static struct str walk_text(struct walk *w, struct str text)
{
    struct json value;
    if (json_in(w, text, &value)) {
        struct buf outer = w->path, written = buf_in(w->arena);
        w->path = buf_in(w->arena);
        w->nested++;
        const struct json *now = walk(w, &value, NULL);
        w->nested--;
        w->path = outer;
        if (now == &value)
            return text;
        json_write(&written, now);
        return buf_view(&written);
    }
    if (w->collects || (w->keeps_words && is_lower_word(text)))
        return text;
    text = redact_copies_mask(w->copies, text);
    return mask_named_values(w->arena, &w->names, text);
}

static const struct json *walk_string(struct walk *w, const struct json *value)
{
    if (w->removes)
        return value;
    struct str text = json_str(value), now = walk_text(w, text);
    return now.at == text.at ? value : json_keep(w->arena, json_string(now));
}

/* A key may be a copy: {"ana@example.com": {…}}. Two masked keys stay two. */
static struct str walk_key(struct walk *w, struct str key)
{
    if (w->removes || w->collects || is_lower_word(key))
        return key;
    struct str now = redact_copies_mask(w->copies, key);
    if (now.at != key.at && ++w->masked_keys > 1)
        now = arena_printf(w->arena, STR_FMT " %u", STR_ARG(now), w->masked_keys);
    return now;
}

static const struct json *walk_child(void *walking, const struct json *parent, uint32_t i, struct str *key)
{
    static const struct json null = {.type = JSON_NULL};
    struct walk *w = walking;
    const struct json *child = json_child(parent, i), *schema = w->schema, *inner = NULL;
    struct str name = *key;
    size_t length = w->path.len;
    bool is_item = parent->type == JSON_ARRAY;
    if (is_item) {
        buf_text(&w->path, "[]");
    } else {
        *key = walk_key(w, name);
        buf_text(&w->path, length ? "." : "");
        buf_str(&w->path, name);
    }
    if (schema) {
        unsigned branches = FIT_BRANCHES_MAX;
        inner = fit_child(w->root, schema, is_item, name, i, REFS_MAX, &branches);
    }
    size_t field = redact_field_at(w->fields, w->count, buf_view(&w->path), name);
    bool hides = field < w->count, is_required = is_item;
    if (hides && w->found && field < REDACT_FIELDS_MAX)
        w->found->fields |= (uint64_t)1 << field;
    if (hides && inner) /* `required` may be long, and is read for each hidden member alone */
        is_required |= json_array_has(json_get_text(resolve(w->root, schema), "required"), name);
    const struct json *now = hides ? hide(w, child, inner, is_required) : walk(w, child, inner);
    w->path.len = length;
    return now || !is_item ? now : &null;
}

/* Returns the value itself if nothing in it changes, or if the result will be withheld. */
static const struct json *walk(struct walk *w, const struct json *value, const struct json *schema)
{
    if (w->copies && w->copies->overflow)
        return value;
    if (value->type == JSON_STRING)
        return walk_string(w, value);
    if (value->type == JSON_NUMBER) { /* a long one may be a copy, too */
        struct str text = {value->text, value->len};
        bool is_copy = !w->removes && !w->collects && text.len >= REDACT_NUMBER_MIN_BYTES &&
                       redact_copies_mask(w->copies, text).at != text.at;
        return is_copy ? &masks[JSON_NUMBER] : value;
    }
    const struct json *outer = w->schema;
    unsigned masked_keys = w->masked_keys;
    w->schema = schema;
    w->masked_keys = 0;
    value = json_map(w->arena, value, walk_child, w);
    w->schema = outer;
    w->masked_keys = masked_keys;
    return value;
}

/* Of the content: all strings of a block that a reader sees; not its type, nor base64. */
static const struct json *walk_block(void *walking, const struct json *parent, uint32_t i, struct str *key)
{
    static const char *const shown[] = {"text", "uri", "name", "title", "description"};
    struct walk *w = walking;
    const struct json *child = json_child(parent, i);
    if (child->type == JSON_STRING && STR_IS_ONE_OF(*key, shown))
        return walk_string(w, child);
    bool holds_strings = parent->type == JSON_ARRAY || str_is(*key, "resource");
    return child->type == JSON_OBJECT && holds_strings ? json_map(w->arena, child, walk_block, w) : child;
}

/* True: it changed. */
static bool walk_result(struct walk *w, const struct result *given, struct result *now)
{
    *now = *given;
    now->structured = given->structured ? walk(w, given->structured, w->root) : NULL;
    now->value = given->value == given->structured ? now->structured
                 : given->value                    ? walk(w, given->value, w->root)
                                                   : NULL;
    now->content = json_is(given->content, JSON_ARRAY) ? json_map(w->arena, given->content, walk_block, w)
                                                       : given->content;
    now->metadata = given->metadata ? walk(w, given->metadata, NULL) : NULL;
    now->error_text = walk_text(w, given->error_text);
    return now->value != given->value || now->structured != given->structured ||
           now->content != given->content || now->metadata != given->metadata ||
           now->error_text.at != given->error_text.at;
}

/* Masked by type it is in `now`. If that does not fit: as the schema demands, then without copies that may be
 * words of an enum. */
static bool mask_to_fit(struct walk *w, const struct schema *output, const struct result *given,
                        struct result *now)
{
    for (int effort = 0; effort < 3; effort++) {
        if (effort == 1)
            w->root = schema_source(output);
        w->keeps_words = effort == 2;
        if (effort)
            walk_result(w, given, now);
        if (schema_validate(output, now->value) == SCHEMA_VALID)
            return true;
    }
    return false;
}

enum redact_status redact_result(struct arena *arena, const struct str *fields, size_t count,
                                 const struct schema *output, struct result *result,
                                 struct redact_found *found)
{
    if (!count)
        return REDACT_NOTHING;
    struct result given = *result, now;
    struct redact_copies copies = {.arena = arena};
    struct walk w = walk_for(arena, fields, count, &copies);
    w.found = found;
    walk_result(&w, &given, &now);
    w.collects = false;
    bool changed = !copies.overflow && walk_result(&w, &given, &now);
    bool was_valid = changed && output && given.value && schema_validate(output, given.value) == SCHEMA_VALID;
    bool fits = !was_valid || mask_to_fit(&w, output, &given, &now);
    if (copies.overflow)
        return REDACT_TOO_COMPLEX;
    if (!fits)
        return REDACT_UNFIT;
    if (changed)
        *result = now;
    return changed ? REDACT_DONE : REDACT_NOTHING;
}

struct str redact_text(struct arena *arena, const struct str *fields, size_t count, struct str text)
{
    if (!count || !text.len)
        return text;
    struct redact_copies copies = {.arena = arena};
    struct walk w = walk_for(arena, fields, count, &copies);
    walk_text(&w, text);
    w.collects = false;
    text = walk_text(&w, text);
    return copies.overflow ? STR_LIT(REDACTED) : text;
}

const struct json *redact_without(struct arena *arena, const struct str *fields, size_t count,
                                  const struct json *value)
{
    if (!count || !value)
        return value;
    struct walk w = walk_for(arena, fields, count, NULL);
    return walk(&w, value, NULL);
}
