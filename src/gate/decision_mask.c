/*
 * A walk that only looks, and a second one that masks, if the first found a secret. The names of members
 * repeat from call to call: a small table remembers which are secret.
 */
#include "gate/decision_mask.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/hash.h"
#include "json/build.h"
#include "json/parse.h"
#include "json/path.h"
#include "json/write.h"
#include "catalog/tool.h"
#include "result/redact.h"
#include "result/secret_text.h"

#define NAMES_REMEMBERED          256u      /* a power of two */
#define NAME_REMEMBERED_MAX_BYTES 30u       /* longer names are compared each time */
#define NAME_COMPARED_MAX_BYTES   128u      /* of a member's name that count */
#define PAIR_MEMBERS_MAX          16u       /* of an object that may be a name and its value */
#define NESTED_MAX_LEVELS         4u        /* JSON in a string in JSON in a string */
#define NESTED_LEAST_BYTES        3u        /* [1] */
#define KEY_SCANNED_BYTES         14u       /* shorter names of members are no API keys */
#define QUOTED_PIECE_BYTES        8u        /* of a secret that no text may hold */
#define QUOTED_MAX_BYTES          4096u     /* of a secret whose pieces are looked for */
#define TAG_MASK                  0xffffffu /* 24 bits: they tell values apart and nothing more */
#define MASKED_PATHS_MAX          256u      /* listed */
#define MASKED_PATHS_MAX_BYTES    16384u    /* of all of them */
#define COMPARED_MAX_STEPS        400000u /* of 25 ns: texts compared with secrets; later texts are masked whole */

struct remembered_name {
    struct str_ends ends;
    uint8_t len; /* 0: empty */
    bool is_secret;
    char bytes[NAME_REMEMBERED_MAX_BYTES];
};

struct decision_mask {
    struct arena *arena; /* of it and of what follows */
    struct str *globs;   /* folded */
    size_t count;
    const uint8_t *key; /* of the tags */
    struct remembered_name names[NAMES_REMEMBERED];
};

struct decision_masking {
    struct decision_mask *mask;
    struct arena *arena;
    const struct tool *tool;
    struct redact_copies copies;
    struct str *secrets; /* all of them, also those that redact_copies leaves out */
    size_t secret_count;
    struct str *paths; /* JSON Pointers of the masked arguments */
    size_t path_count, path_bytes;
    uint32_t compared; /* of COMPARED_MAX_STEPS */
    struct buf path;   /* of the current value, as a JSON Pointer */
    struct buf dotted; /* the same as policies write it: "items[].pin" */
    bool declares;     /* the tool's policies or its schema name secret fields */
    bool keeps;        /* the paths are listed */
    bool again;        /* the walk that masks copies */
    unsigned nested;
};

/* ---- names ---- */

/* In lower case, without '_', '-', '.' and blanks. */
static struct str fold(struct str name, char folded[NAME_COMPARED_MAX_BYTES])
{
    size_t len = 0;
    for (size_t i = 0; i < name.len && len < NAME_COMPARED_MAX_BYTES; i++) {
        char c = name.at[i];
        if (c != '_' && c != '-' && c != '.' && c != ' ')
            folded[len++] = ascii_lower(c);
    }
    return (struct str){folded, len};
}

struct decision_mask *decision_mask_new(const struct str *names, size_t count, const uint8_t *key)
{
    struct arena *arena = arena_new();
    struct decision_mask *mask = ARENA_NEW(arena, struct decision_mask);
    mask->arena = arena;
    mask->key = key;
    mask->globs = ARENA_ARRAY(arena, struct str, count);
    while (mask->count < count) {
        mask->globs[mask->count] = fold(names[mask->count], arena_alloc(arena, NAME_COMPARED_MAX_BYTES));
        mask->count++;
    }
    return mask;
}

void decision_mask_free(struct decision_mask *mask)
{
    if (mask)
        arena_free(mask->arena);
}

/* The last glob that fits decides, as in .gitignore: "!" in front makes an exception of it. */
static bool compare_name(const struct decision_mask *mask, struct str name)
{
    char folded[NAME_COMPARED_MAX_BYTES];
    struct str short_name = fold(name, folded);
    for (size_t i = mask->count; i-- > 0;) {
        bool exempts = mask->globs[i].at[0] == '!';
        if (str_glob(str_from(mask->globs[i], exempts), short_name))
            return !exempts;
    }
    return false;
}

static __attribute__((noinline)) bool remember_name(struct decision_mask *mask, struct remembered_name *row,
                                                    struct str name, struct str_ends ends)
{
    *row = (struct remembered_name){ends, (uint8_t)name.len, compare_name(mask, name), {0}};
    memcpy(row->bytes, name.at, name.len);
    return row->is_secret;
}

static inline __attribute__((always_inline)) bool is_secret_name(struct decision_mask *mask, struct str name)
{
    if (!name.len || name.len > NAME_REMEMBERED_MAX_BYTES)
        return name.len && compare_name(mask, name);
    struct str_ends ends = str_ends(name);
    struct remembered_name *row = &mask->names[str_ends_slot(ends, name.len) % NAMES_REMEMBERED];
    bool known = row->len == name.len && row->ends.first == ends.first && row->ends.last == ends.last &&
                 (name.len <= STR_ENDS_BYTES || str_bytes_eq(row->bytes, name.at, name.len));
    return known ? row->is_secret : remember_name(mask, row, name, ends);
}

static bool is_name(void *mask, struct str name)
{
    return is_secret_name(mask, name);
}

/* A flag or an empty value is no secret, under any name. */
static bool can_be_secret(const struct json *value)
{
    return value->type != JSON_BOOL && value->type != JSON_NULL && value->len > 0;
}

/* ["--password", "x"], ["Authorization", "x"], ["mysql", "-phunter2"]: what stands before a text in a list
 * says that it is secret. */
static bool is_named_before(struct decision_mask *mask, const struct json *list, uint32_t i)
{
    if (!i || list->items[i].type != JSON_STRING || list->items[i - 1].type != JSON_STRING)
        return false;
    static const char *const commands[] = {"mysql", "mysqldump", "mysqladmin", "mariadb", "sshpass"};
    struct str name = json_str(&list->items[i - 1]), value = json_str(&list->items[i]);
    if (value.len > 2 && str_starts(value, "-p") && STR_IS_ONE_OF(json_str(&list->items[0]), commands))
        return true;
    bool is_flag = name.len && name.at[0] == '-';
    if (!value.len || !(is_flag ? value.at[0] != '-' : list->len == 2 && !is_secret_name(mask, value)))
        return false;
    while (name.len && name.at[0] == '-')
        name = str_from(name, 1);
    return is_secret_name(mask, name);
}

/* {"name": "API_KEY", "value": "x"}: of the member `value`, or one of that kind. */
static bool is_named_beside(struct decision_mask *mask, const struct json *pair, uint32_t i)
{
    static const char *const values[] = {"value", "Value", "val", "v"};
    static const char *const names[] = {"name",  "Name",      "key",      "Key",    "header",
                                        "param", "parameter", "variable", "option", "k"};
    struct str key = pair->members[i].key;
    if (!key.len || (key.at[0] | 32) != 'v' || pair->len > PAIR_MEMBERS_MAX || !STR_IS_ONE_OF(key, values))
        return false;
    for (uint32_t k = 0; k < pair->len; k++)
        if (pair->members[k].value.type == JSON_STRING && STR_IS_ONE_OF(pair->members[k].key, names) &&
            is_secret_name(mask, json_str(&pair->members[k].value)))
            return true;
    return false;
}

/* By its name, or by what its neighbour says. */
static bool is_secret_child(struct decision_mask *mask, const struct json *parent, uint32_t i)
{
    if (parent->type == JSON_ARRAY)
        return is_named_before(mask, parent, i);
    return can_be_secret(&parent->members[i].value) &&
           (is_secret_name(mask, parent->members[i].key) || is_named_beside(mask, parent, i));
}

static bool find_in_text(struct decision_mask *mask, struct str text, size_t from, size_t *at, size_t *len)
{
    struct secret_names names = {is_name, mask};
    return secret_text_find(text, from, &names, at, len);
}

/* ---- does it hold a secret? ---- */

static inline bool is_nested_json(struct str text)
{
    while (text.len && ascii_is_space(text.at[0]))
        text = str_from(text, 1);
    return text.len >= NESTED_LEAST_BYTES && (text.at[0] == '{' || text.at[0] == '[' || text.at[0] == '"');
}

static inline bool text_has_secret(struct decision_mask *mask, struct str text)
{
    size_t at, len;
    return find_in_text(mask, text, 0, &at, &len);
}

/* Without any allocation. JSON in a string may hold one: only the second walk reads it. */
static bool may_have_secret(struct decision_mask *mask, const struct json *value)
{
    if (value->type == JSON_STRING) {
        struct str text = json_str(value);
        if (text.len < NESTED_LEAST_BYTES || secret_text_is_date(text))
            return false;
        return is_nested_json(text) || (text.len >= SECRET_TEXT_MIN_BYTES && text_has_secret(mask, text));
    }
    for (uint32_t i = 0; value->type == JSON_ARRAY && i < value->len; i++)
        if (may_have_secret(mask, &value->items[i]) || is_secret_child(mask, value, i))
            return true;
    for (uint32_t i = 0; value->type == JSON_OBJECT && i < value->len; i++) {
        struct str key = value->members[i].key;
        const struct json *child = &value->members[i].value;
        if (is_secret_child(mask, value, i) || (key.len >= KEY_SCANNED_BYTES && text_has_secret(mask, key)) ||
            (child->type >= JSON_STRING && may_have_secret(mask, child)))
            return true;
    }
    return false;
}

/* ---- fields that a policy or a schema calls secret ---- */

static bool redacts(const struct policy *policy, struct str path, struct str key)
{
    return policy && redact_field_at(policy->redact, policy->redact_count, path, key) < policy->redact_count;
}

/* `redact` names fields of results; a field of the same name or path in the arguments is as secret. */
static bool is_declared(const struct decision_masking *m, struct str key)
{
    const struct tool *tool = m->tool;
    struct str path = buf_view(&m->dotted);
    if (!tool)
        return false;
    size_t count = tool->secret_field_count;
    bool found =
        redact_field_at(tool->secret_fields, count, path, path) < count || redacts(tool->policy, path, key);
    for (size_t i = 0; !found && i < tool->overlay_count; i++)
        found = redacts(tool->overlays[i].policy, path, key);
    return found;
}

/* ---- what was masked ---- */

static bool declares(const struct tool *tool)
{
    return tool && (tool->secret_field_count || tool->redacts);
}

bool decision_mask_is_clean(struct decision_mask *mask, const struct tool *tool, const struct json *value)
{
    return !declares(tool) && !may_have_secret(mask, value);
}

struct decision_masking *decision_masking_new(struct decision_mask *mask, struct arena *arena,
                                              const struct tool *tool)
{
    struct decision_masking *m = ARENA_NEW(arena, struct decision_masking);
    m->mask = mask;
    m->arena = m->copies.arena = arena;
    m->tool = tool;
    m->path = m->dotted = buf_in(arena);
    m->declares = declares(tool);
    return m;
}

/* Of JSON in a string, the path of the string. */
static void list_path(struct decision_masking *m)
{
    struct str path = buf_view(&m->path);
    if (!m->keeps || m->nested || m->path_count == MASKED_PATHS_MAX ||
        m->path_bytes + path.len > MASKED_PATHS_MAX_BYTES)
        return;
    for (size_t i = 0; i < m->path_count; i++)
        if (str_eq(m->paths[i], path))
            return;
    m->paths = arena_grow(m->arena, m->paths, m->path_count, sizeof(*m->paths));
    m->paths[m->path_count++] = arena_dup(m->arena, path);
    m->path_bytes += path.len;
}

static void remember(struct decision_masking *m, struct str secret)
{
    if (!secret.len)
        return;
    m->secrets = arena_grow(m->arena, m->secrets, m->secret_count, sizeof(*m->secrets));
    m->secrets[m->secret_count++] = secret;
}

/* Every string and number in a value that is hidden as a whole. */
static void remember_all(struct decision_masking *m, const struct json *value)
{
    if (value->type == JSON_STRING || value->type == JSON_NUMBER)
        remember(m, (struct str){value->text, value->len});
    for (uint32_t i = 0; i < json_child_count(value); i++)
        remember_all(m, json_child(value, i));
}

/* Equal values have equal tags, and a replay of the log sees which calls were the same. */
static struct str tagged_mask(struct decision_masking *m, const struct json *secret)
{
    struct hash128 hash = json_fingerprint(m->arena, secret, NULL, 0);
    struct str bytes = {(const char *)&hash, sizeof(hash)};
    return arena_printf(m->arena, REDACTED_TAGGED "%06x]",
                        (unsigned)(siphash(m->mask->key, bytes) & TAG_MASK));
}

/* ---- text ---- */

/* The text with its own secrets masked, which are remembered. `tags`: it is a value, not a text about one. */
static struct str mask_own(struct decision_masking *m, struct str text, bool tags)
{
    struct buf out = buf_in(m->arena);
    size_t done = 0, at, len;
    while (find_in_text(m->mask, text, done, &at, &len)) {
        struct str secret = {text.at + at, len};
        struct json value = json_string(secret);
        redact_copies_add(&m->copies, &value);
        remember(m, secret);
        buf_add(&out, text.at + done, at - done);
        buf_str(&out, tags ? tagged_mask(m, &value) : STR_LIT(REDACTED));
        done = at + len;
    }
    if (!done)
        return text;
    buf_str(&out, str_from(text, done));
    return buf_view(&out);
}

static bool holds(struct str text, struct str piece)
{
    return text.len >= piece.len && memmem(text.at, text.len, piece.at, piece.len);
}

/* False: comparing the text with this many pieces of secrets would block the event loop (twenty thousand
 * secrets in twenty thousand texts take minutes): the caller masks it whole. */
static bool may_compare(struct decision_masking *m, struct str text, size_t pieces)
{
    uint64_t steps = pieces * (1 + (uint64_t)text.len / 64);
    if (steps > COMPARED_MAX_STEPS - m->compared)
        return false;
    m->compared += (uint32_t)steps;
    return true;
}

/* Copies inside of longer words, too. */
static struct str mask_copies(struct decision_masking *m, struct str text)
{
    if (!may_compare(m, text, m->secret_count))
        return STR_LIT(REDACTED);
    text = redact_copies_mask(&m->copies, text);
    for (size_t i = 0; i < m->secret_count; i++)
        if (m->secrets[i].len >= REDACT_COPY_MIN_BYTES && holds(text, m->secrets[i]))
            return STR_LIT(REDACTED);
    return text;
}

/* A text may also quote a part of a secret, or one too short to be masked by itself: then nothing of it is
 * shown. */
struct str decision_masking_text(struct decision_masking *m, struct str text)
{
    text = mask_copies(m, mask_own(m, text, false));
    for (size_t i = 0; i < m->secret_count; i++) {
        struct str secret = m->secrets[i];
        size_t piece = secret.len < 2 * QUOTED_PIECE_BYTES ? secret.len : QUOTED_PIECE_BYTES;
        size_t compared = secret.len < QUOTED_MAX_BYTES ? secret.len : QUOTED_MAX_BYTES;
        if (!may_compare(m, text, 1 + compared / QUOTED_PIECE_BYTES))
            return STR_LIT(REDACTED);
        for (size_t at = 0; at + piece <= secret.len && at < QUOTED_MAX_BYTES; at += piece)
            if (holds(text, (struct str){secret.at + at, piece}))
                return STR_LIT(REDACTED);
    }
    return text;
}

/* ---- values ---- */

static const struct json *mask(struct decision_masking *m, const struct json *value);

static struct str mask_nested(struct decision_masking *m, struct str text)
{
    struct json inner;
    struct json_error fault;
    if (m->nested == NESTED_MAX_LEVELS ||
        (json_parse(m->arena, str_trim(text), NULL, &inner, &fault) != OK && !fault.soft) ||
        inner.type == JSON_NUMBER)
        return text;
    struct buf path = m->path, dotted = m->dotted;
    m->dotted = buf_in(m->arena);
    m->path = buf_in(m->arena);
    m->nested++;
    const struct json *now = mask(m, &inner);
    m->nested--;
    m->path = path;
    m->dotted = dotted;
    return now == &inner ? text : json_to_str(m->arena, now);
}

static const struct json *mask_child(void *masking, const struct json *parent, uint32_t i, struct str *key)
{
    struct decision_masking *m = masking;
    const struct json *child = json_child(parent, i);
    struct str sent = *key;
    size_t length = m->path.len, dotted = m->dotted.len;
    if (parent->type == JSON_ARRAY) {
        buf_byte(&m->path, '/');
        buf_int(&m->path, i);
        buf_text(&m->dotted, "[]");
    } else {
        *key = m->again ? mask_copies(m, sent) : mask_own(m, sent, true);
        json_pointer_put(&m->path, *key); /* as it is shown; below as it was sent, for the policies */
        buf_text(&m->dotted, dotted ? "." : "");
        buf_str(&m->dotted, sent);
    }
    bool secret = !m->again && (is_secret_child(m->mask, parent, i) ||
                                (m->declares && can_be_secret(child) && is_declared(m, sent)));
    const struct json *now;
    if (secret) {
        redact_copies_add(&m->copies, child);
        remember_all(m, child);
        list_path(m);
        now = json_keep(m->arena, json_string(tagged_mask(m, child)));
    } else {
        now = mask(m, child);
    }
    if (key->at != sent.at)
        list_path(m);
    m->path.len = length;
    m->dotted.len = dotted;
    return now;
}

/* Returns the value itself if nothing in it is secret. */
static const struct json *mask(struct decision_masking *m, const struct json *value)
{
    if (value->type != JSON_STRING && value->type != JSON_NUMBER)
        return json_map(m->arena, value, mask_child, m);
    struct str text = {value->text, value->len},
               now = text; /* a number: a copy of a hidden one, or of digits */
    if (value->type == JSON_NUMBER) {
        if (m->again && text.len >= REDACT_NUMBER_MIN_BYTES && mask_copies(m, text).at != text.at)
            now = STR_LIT(REDACTED);
    } else {
        if (is_nested_json(text))
            now = mask_nested(m, text);
        if (now.at == text.at)
            now = m->again ? mask_copies(m, text) : mask_own(m, text, true);
    }
    if (now.at == text.at)
        return value;
    list_path(m);
    return json_keep(m->arena, json_string(now));
}

/* First the secrets, then the copies of them in what came before. */
const struct json *decision_masking_value(struct decision_masking *m, const struct json *value, bool keeps)
{
    if (!m->declares && !m->secret_count && !may_have_secret(m->mask, value))
        return value;
    m->keeps = keeps;
    m->again = false;
    value = mask(m, value);
    if (m->secret_count) {
        m->again = true;
        value = mask(m, value);
        m->again = false;
    }
    m->keeps = false;
    return value;
}

/* ---- paths ---- */

static char step_char(char c)
{
    return c == '.' || c == '[' ? '/' : c;
}

/* Whether "items[0].password" is the pointer "/items/0/password" or leads through it. */
static bool leads_through(struct str path, struct str pointer)
{
    size_t at = 0;
    pointer = str_from(pointer, 1);
    for (size_t i = 0; i < pointer.len; i++, at++) {
        char wanted = pointer.at[i];
        if (wanted == '~' && i + 1 < pointer.len)
            wanted = pointer.at[++i] == '0' ? '~' : '/';
        while (at < path.len && path.at[at] == ']')
            at++;
        if (at == path.len || step_char(path.at[at]) != step_char(wanted))
            return false;
    }
    while (at < path.len && path.at[at] == ']')
        at++;
    return at >= path.len || path.at[at] == '.' || path.at[at] == '[' || path.at[at] == '/';
}

bool decision_masking_hides(const struct decision_masking *m, struct str path)
{
    for (size_t i = 0; i < m->path_count; i++)
        if (m->paths[i].len <= 1 || leads_through(path, m->paths[i]))
            return true;
    return false;
}

/* An operation below a masked path loses its value, any other only what is secret in it. */
static const struct json *mask_operation(void *masking, const struct json *patch, uint32_t i, struct str *key)
{
    static const struct json hidden = {.type = JSON_STRING, .len = sizeof(REDACTED) - 1, .text = REDACTED};
    struct decision_masking *m = masking;
    const struct json *op = &patch->items[i], *value = json_get_text(op, "value");
    struct str path = str_from(json_str(json_get_text(op, "path")), 1);
    (void)key;
    if (!value)
        return op;
    bool hides = decision_masking_hides(m, path) && m->path_count && path.len;
    const struct json *masked = hides ? &hidden : decision_masking_value(m, value, false);
    return masked == value ? op : json_keep(m->arena, json_with(m->arena, op, STR_LIT("value"), *masked));
}

const struct json *decision_masking_patch(struct decision_masking *m, const struct json *patch)
{
    return json_map(m->arena, patch, mask_operation, m);
}

size_t decision_masking_paths(const struct decision_masking *m, const struct str **paths)
{
    *paths = m->paths;
    return m->path_count;
}
