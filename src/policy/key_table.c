/* Reads the configuration by rows (policy/field.h), and lists them for the manual and the sample
 * configuration, which tests/spec/docs compares with the list. */
#include "policy/config_internal.h"

#include "base/arena.h"
#include "base/hash.h"
#include "io/file.h"
#include "json/write.h"
#include "policy/policy.h"
#include "policy/source_location.h"

#include <stdarg.h>

#define QUOTE_MAX_BYTES        60u      /* of a wrong value */
#define CONFIG_PLACE_MAX_BYTES 1048576u /* of a file that is searched for a key's line */

/* Found by its words in their order, as Lua keeps no places: word =, ["word"] = or "word": */
unsigned key_table_line(struct config_reader *reader, struct str path)
{
    struct str text;
    size_t i = 0;
    if (!reader->tokens)
        reader->tokens = location_tokens(
            reader->arena, file_read(reader->arena, reader->file, CONFIG_PLACE_MAX_BYTES, &text, NULL) == OK
                               ? text
                               : STR_NONE);
    const struct token *t = reader->tokens;
    for (struct str rest = path; rest.len; i++) {
        size_t len = 0, skipped;
        while (len < rest.len && rest.at[len] != '.' && rest.at[len] != '[')
            len++;
        for (skipped = len; skipped < rest.len && rest.at[skipped] != '.';)
            skipped++;
        for (; len; i++) {
            size_t sign = i + 1 + token_is(t[i + 1], ']');
            if (t[i].kind == TOKEN_END)
                return 0;
            if (t[i].kind != TOKEN_CHARACTER && str_eq(t[i].text, (struct str){rest.at, len}) &&
                (token_is(t[sign], '=') || token_is(t[sign], ':')))
                break;
        }
        rest = str_from(rest, skipped + 1);
    }
    return path.len ? (unsigned)t[i - 1].line : 0;
}

/* `place`: the key that the sentence is about, if it does not begin with its name. */
static void add_error(struct config_reader *reader, struct str place, struct str path, struct str sentence)
{
    struct buf *out = &reader->errors;
    unsigned line = key_table_line(reader, place.len ? place : path);
    buf_printf(out, "%s%s:", out->len ? "\n" : "", reader->file);
    if (line)
        buf_printf(out, "%u:", line);
    buf_byte(out, ' ');
    if (path.len)
        buf_printf(out, STR_FMT ": ", STR_ARG(path));
    buf_str(out, sentence);
}

void key_table_error(struct config_reader *reader, struct str path, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct str sentence = arena_vprintf(reader->arena, format, args);
    va_end(args);
    add_error(reader, path, path, sentence);
}

static void expected(struct config_reader *reader, struct str path, const char *what, const struct json *json)
{
    struct buf text = buf_in(reader->arena);
    json_write(&text, json);
    bool is_secret = memmem(text.at, text.len, "://", 3); /* an address may hold a password */
    struct str got = is_secret ? str_of(json_type_name((enum json_type)json->type))
                               : arena_truncate(reader->arena, buf_view(&text), QUOTE_MAX_BYTES);
    key_table_error(reader, path, "expected %s, got " STR_FMT, what, STR_ARG(got));
}

void key_expected(const struct key_value *value, const char *what)
{
    expected(value->reader, value->path, what, value->json);
}

/* Lua has one empty table for lists and maps. */
static bool is_table(const struct json *json)
{
    return json->type == JSON_OBJECT || (json->type == JSON_ARRAY && json->len == 0);
}

bool key_is_list(const struct key_value *value, const char *what)
{
    if (value->json->type == JSON_ARRAY && value->json->len)
        return true;
    if (is_table(value->json) && value->json->len == 0)
        key_table_error(value->reader, value->path, "expected %s, got an empty table; omit the key instead",
                        what);
    else
        key_expected(value, what);
    return false;
}

void key_refuse_negation(const struct key_value *value, struct str glob)
{
    if (str_starts(glob, "!"))
        key_table_error(value->reader, value->path,
                        "'" STR_FMT "' excludes nothing, and what the other names allow stays allowed: name "
                        "only what is allowed",
                        STR_ARG(str_cut(glob, QUOTE_MAX_BYTES)));
}

static struct str join(struct arena *arena, struct str path, struct str name)
{
    return path.len ? ARENA_JOIN(arena, path, STR_LIT("."), name) : name;
}

struct key_value key_item(const struct key_value *value, const struct json *json, size_t index)
{
    struct key_value item = *value;
    item.path = arena_printf(value->reader->arena, STR_FMT "[%zu]", STR_ARG(value->path), index + 1);
    item.json = json;
    return item;
}

struct key_value key_member(const struct key_value *value, const struct json_member *member)
{
    struct key_value item = *value;
    item.path = join(value->reader->arena, value->path, member->key);
    item.json = &member->value;
    return item;
}

void key_table_read(struct config_reader *reader, const struct field_table *keys, struct str path,
                    const struct json *table, void *base)
{
    if (!is_table(table)) {
        expected(reader, path, "a table of keys", table);
        return;
    }
    for (size_t i = 0; i < table->len; i++) {
        const struct json_member *member = &table->members[i];
        struct str meant;
        const struct field *key = field_find(keys, member->key, &meant);
        struct key_value value = {reader, key, join(reader->arena, path, member->key), &member->value, base};
        if (key) {
            key_read(&value);
            continue;
        }
        struct buf sentence = buf_in(reader->arena);
        buf_printf(&sentence, "unknown key '" STR_FMT "'", STR_ARG(value.path));
        if (meant.len)
            buf_text(&sentence, field_hint(reader->arena, join(reader->arena, path, meant)));
        else
            buf_text(&sentence, "; known here:");
        for (size_t at = 0; !meant.len && (key = field_next(keys, &at));)
            buf_printf(&sentence, " %s", key->name);
        add_error(reader, value.path, STR_NONE, buf_view(&sentence));
    }
}

/* What the row expects of a value, in words. */
static const char *expected_by(struct config_reader *reader, const struct field *key)
{
    struct buf out = buf_in(reader->arena);
    long long most = key->kind == FIELD_COUNT ? FIELD_COUNT_MAX_DEFAULT : key->most;
    switch (key->kind) {
    case FIELD_BOOL:
        return "true or false";
    case FIELD_DATE:
        return "a date such as \"2026-12-01\"";
    case FIELD_STRINGS:
        return "a list of fields, e.g. { \"events[].raw\" }";
    case FIELD_COST:
        return "a number from 0.000001 to 100000000";
    case FIELD_CHOICE:
        field_quote_choices(&out, key, " or ");
        if (key->most)
            buf_printf(&out, " or a whole number from %lld to %lld", (long long)key->least, most);
        break;
    case FIELD_DURATION:
        buf_printf(&out, "seconds or \"30s\", from %g to %g", (double)key->least / 1000, (double)most / 1000);
        break;
    default:
        buf_printf(&out, "a whole number from %lld to %lld", (long long)key->least, most);
    }
    buf_byte(&out, '\0');
    return out.at;
}

void key_read_plain(const struct key_value *value)
{
    const struct field *key = value->key;
    int64_t n;
    if (key->kind == FIELD_STRINGS && !key_is_list(value, expected_by(value->reader, key)))
        return;
    const struct json *wrong = field_store(key, value->json, value->reader->arena, key_target(value));
    for (uint32_t i = 0; key->kind == FIELD_STRINGS && i < value->json->len; i++) {
        const struct json *item = &value->json->items[i];
        if (!json_str(item).len)
            expected(value->reader, value->path, "the name or path of a field", item);
    }
    bool too_much = key->kind == FIELD_COUNT && json_int(value->json, &n) && n > FIELD_COUNT_MAX_DEFAULT;
    bool lifted = key->or_false && value->json->type == JSON_BOOL; /* there is no limit here to lift */
    if ((wrong || too_much || lifted) && key->kind != FIELD_STRINGS)
        key_expected(value, expected_by(value->reader, key));
}

const char *key_table_path(struct config_reader *reader, struct str path)
{
    const char *slash = strrchr(reader->file, '/');
    if (path.at[0] == '/' || !slash)
        return arena_dup(reader->arena, path).at;
    int folder = (int)(slash - reader->file);
    return arena_printf(reader->arena, "%.*s/" STR_FMT, folder, reader->file, STR_ARG(path)).at;
}

void key_path(const struct key_value *value)
{
    key_path_of(value, json_str(value->json));
}

void key_path_of(const struct key_value *value, struct str text)
{
    if (!text.len || memchr(text.at, '\0', text.len))
        key_expected(value, "a path");
    else
        *(const char **)key_target(value) = key_table_path(value->reader, text);
}

/* "file.json" or { "a.json", "b.json" } */
static void read_paths(const struct key_value *value)
{
    bool one = value->json->type == JSON_STRING;
    if (!one && !key_is_list(value, "a file name or a list of them"))
        return;
    const struct json *items = one ? value->json : value->json->items;
    size_t count = one ? 1 : value->json->len;
    const char **files = ARENA_ARRAY(value->reader->arena, const char *, count);
    for (size_t i = 0; i < count; i++) {
        if (!json_str(&items[i]).len) {
            expected(value->reader, value->path, value->key->expected, &items[i]);
            return;
        }
        files[i] = key_table_path(value->reader, json_str(&items[i]));
    }
    *(struct path_list *)key_target(value) = (struct path_list){files, count};
}

void key_read(const struct key_value *value)
{
    const struct field *key = value->key;
    if (key->elsewhere) {
        key_table_error(value->reader, value->path, "%s", key->elsewhere);
    } else if (key->read_key) {
        key->read_key(value);
    } else if (key->kind == FIELD_TABLE) {
        const struct json *json = value->json;
        bool is_switch = key->switches == SWITCHES && json->type == JSON_BOOL; /* in place of the table */
        void *into = key_target(value);
        if (!is_switch)
            key_table_read(value->reader, key->table, value->path, json, into);
        if (key->done)
            key->done(into, !is_switch ? FORM_TABLE : json->truth ? FORM_TRUE : FORM_FALSE);
    } else if (key->kind == FIELD_PATH) {
        key_path(value);
    } else if (key->kind == FIELD_PATHS) {
        read_paths(value);
    } else {
        key_read_plain(value);
    }
}

uint64_t key_table_hash(uint64_t before, const struct json *table)
{
    struct buf text = {0};
    buf_add(&text, &before, sizeof(before));
    json_canonical(&text, table);
    uint64_t hash = hash_stable(buf_view(&text)).low;
    buf_clear(&text);
    return hash;
}

/* ---- the list of keys ---- */

static void list_key(struct buf *out, const struct field *key, const void *base)
{
    struct str choices[CHOICES_MAX];
    long long least = key->least, most = key->kind == FIELD_COUNT ? FIELD_COUNT_MAX_DEFAULT : key->most;
    uint64_t n = 0;
    bool numeric = key->kind >= FIELD_COUNT && key->kind <= FIELD_CHOICE && !key->read_key;
    const char *at = numeric && base ? (const char *)base + key->offset : NULL;
    if (at)
        n = key->kind == FIELD_SIZE ? *(const size_t *)at : *(const uint32_t *)at;
    /* A default that depends on something else is not there yet. */
    bool given = at && (key->kind == FIELD_SIZE ? n != 0 : n != POLICY_UNSET && (int64_t)n >= least);
    switch (key->read_key ? FIELD_CUSTOM : key->kind) {
    case FIELD_BOOL:
        buf_text(out, "true or false\t");
        if (base)
            buf_text(out, *((const bool *)base + key->offset) ? "true" : "false");
        break;
    case FIELD_COUNT:
    case FIELD_WHOLE:
        buf_printf(out, "whole number, %lld to %lld\t", least, most);
        if (given)
            buf_printf(out, "%llu", (unsigned long long)n);
        break;
    case FIELD_SIZE:
        buf_printf(out, "whole number, at least %lld\t", least);
        if (given)
            buf_printf(out, "%llu", (unsigned long long)n);
        break;
    case FIELD_DURATION:
        buf_printf(out, "seconds, or \"30s\", %g to %g\t", (double)least / 1000, (double)most / 1000);
        if (given)
            buf_printf(out, "%g", (double)n / 1000.0);
        break;
    case FIELD_CHOICE:
        field_quote_choices(out, key, " or ");
        if (key->most)
            buf_printf(out, " or a whole number, %lld to %lld", least, most);
        buf_byte(out, '\t');
        for (size_t i = 0, count = field_choices(key, choices); given && i < count; i++)
            if ((uint64_t)key->first + i == n)
                buf_printf(out, "\"" STR_FMT "\"", STR_ARG(choices[i]));
        break;
    case FIELD_PATH:
        buf_text(out, "path\t");
        break;
    default:
        buf_printf(out, "%s\t",
                   key->table                 ? "table"
                   : key->kind == FIELD_PATHS ? "path, or a list of paths"
                                              : "see the manual");
    }
    buf_byte(out, '\n');
}

void key_table_list(struct buf *out, const struct field_table *keys, struct str path, const void *base)
{
    const struct field *key;
    for (size_t at = 0; (key = field_next(keys, &at));) {
        if (key->elsewhere)
            continue;
        struct buf full = {0};
        buf_printf(&full, STR_FMT "%s%s", STR_ARG(path), path.len ? "." : "", key->name);
        buf_printf(out, STR_FMT "\t", STR_ARG(buf_view(&full)));
        list_key(out, key, base);
        if (key->item)
            buf_text(&full, key->item);
        if (key->table) /* an item of a list has no defaults here */
            key_table_list(out, key->table, buf_view(&full),
                           key->item || !base ? NULL : (const char *)base + key->offset);
        buf_clear(&full);
    }
}
