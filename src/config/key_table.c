/* Tables of keys, and the readers that several of them use. */
#include "config/key_table.h"

#include "base/arena.h"
#include "base/hash.h"
#include "base/suggest.h"
#include "io/file.h"
#include "json/canonical.h"
#include "json/write.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>

#define QUOTE_MAX_BYTES        60u      /* of a wrong value */
#define KEYS_MAX               32u      /* in one table */
#define CONFIG_PLACE_MAX_BYTES 1048576u /* of a file that is searched for a key's line */

/* Whether text[at…] is the whole word, and is given a value there: word =, ["word"] = or "word": */
static bool is_key_at(struct str text, size_t at, struct str word)
{
    size_t end = at + word.len;
    bool begins = !at || !(isalnum((unsigned char)text.at[at - 1]) || text.at[at - 1] == '_');
    if (!begins || memcmp(text.at + at, word.at, word.len) != 0)
        return false;
    while (end < text.len && strchr("\"'] \t", text.at[end]))
        end++;
    return end < text.len && (text.at[end] == '=' || text.at[end] == ':');
}

static bool is_commented(struct str text, size_t at)
{
    size_t line = at;
    while (line > 0 && text.at[line - 1] != '\n')
        line--;
    return memmem(text.at + line, at - line, "--", 2) != NULL;
}

/* From *at on; false: the text has no such key. */
static bool find_key(struct str text, struct str word, size_t *at)
{
    for (size_t i = *at; word.len && i + word.len < text.len; i++)
        if (text.at[i] == word.at[0] && is_key_at(text, i, word) && !is_commented(text, i)) {
            *at = i;
            return true;
        }
    return false;
}

/* Found by its words in their order: Lua keeps no places. */
unsigned key_table_line(struct config_reader *reader, struct str path)
{
    struct str text;
    size_t at = 0, from = 0;
    unsigned line = 1;
    if (!path.len || file_read(reader->arena, reader->file, CONFIG_PLACE_MAX_BYTES, &text, NULL) != OK)
        return 0;
    while (from < path.len) {
        size_t len = 0, skipped;
        while (from + len < path.len && path.at[from + len] != '.' && path.at[from + len] != '[')
            len++;
        if (len && !find_key(text, (struct str){path.at + from, len}, &at))
            return 0;
        for (skipped = len; from + skipped < path.len && path.at[from + skipped] != '.';)
            skipped++;
        from += skipped + 1;
    }
    for (size_t i = 0; i < at; i++)
        line += text.at[i] == '\n';
    return line;
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
    key_table_error(reader, path, "expected %s, got " STR_FMT, what,
                    STR_ARG(arena_truncate(reader->arena, buf_view(&text), QUOTE_MAX_BYTES)));
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

static void report_unknown(struct config_reader *reader, const struct config_key *keys, struct str path,
                           struct str name)
{
    struct str names[KEYS_MAX], full = join(reader->arena, path, name);
    struct buf all = buf_in(reader->arena);
    size_t count = 0;
    for (; keys->name.len && count < KEYS_MAX; keys++) {
        buf_printf(&all, "%s" STR_FMT, count ? " " : "", STR_ARG(keys->name));
        names[count++] = keys->name;
    }
    struct str near = suggest_closest(name, names, count);
    if (near.len)
        add_error(reader, full, STR_NONE,
                  arena_printf(reader->arena, "unknown key '" STR_FMT "' (did you mean '" STR_FMT "'?)",
                               STR_ARG(full), STR_ARG(join(reader->arena, path, near))));
    else
        add_error(reader, full, STR_NONE,
                  arena_printf(reader->arena, "unknown key '" STR_FMT "'; known here: " STR_FMT,
                               STR_ARG(full), STR_ARG(buf_view(&all))));
}

void key_table_read(struct config_reader *reader, const struct config_key *keys, struct str path,
                    const struct json *table, void *base)
{
    if (!is_table(table)) {
        expected(reader, path, "a table of keys", table);
        return;
    }
    for (size_t i = 0; i < table->len; i++) {
        const struct json_member *member = &table->members[i];
        const struct config_key *key = keys;
        while (key->name.len && !str_eq(key->name, member->key))
            key++;
        struct key_value value = {reader, key, join(reader->arena, path, member->key), &member->value, base};
        if (key->name.len)
            key->read(&value);
        else
            report_unknown(reader, keys, path, member->key);
    }
}

void key_bool(const struct key_value *value)
{
    if (value->json->type != JSON_BOOL)
        key_expected(value, "true or false");
    else
        *(bool *)key_target(value) = value->json->truth;
}

static bool read_number(const struct key_value *value, int64_t *out)
{
    const struct config_key *key = value->key;
    if (json_int(value->json, out) && *out >= key->min && *out <= key->max)
        return true;
    key_expected(value, arena_printf(value->reader->arena, "a whole number from %lld to %lld",
                                     (long long)key->min, (long long)key->max)
                            .at);
    return false;
}

void key_u32(const struct key_value *value)
{
    int64_t n;
    if (read_number(value, &n))
        *(uint32_t *)key_target(value) = (uint32_t)n;
}

void key_size(const struct key_value *value)
{
    int64_t n;
    if (read_number(value, &n))
        *(size_t *)key_target(value) = (size_t)n;
}

/* "30s", "1.5m" */
static bool read_duration(struct str text, double *ms)
{
    static const struct {
        const char *suffix;
        double ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
    size_t digits = 0;
    while (digits < text.len && digits < 12 && strchr("0123456789.", text.at[digits]))
        digits++;
    char number[16] = {0}, *end;
    memcpy(number, text.at ? text.at : "", digits);
    *ms = strtod(number, &end);
    if (!digits || *end)
        return false;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (str_is(str_from(text, digits), units[i].suffix)) {
            *ms *= units[i].ms;
            return true;
        }
    return false;
}

void key_duration(const struct key_value *value)
{
    double min = (double)value->key->min, max = (double)value->key->max, ms;
    bool valid = json_double(value->json, &ms);
    if (valid)
        ms *= 1000;
    else
        valid = read_duration(json_str(value->json), &ms);
    if (valid && ms >= min && ms <= max)
        *(uint32_t *)key_target(value) = (uint32_t)ms;
    else
        key_expected(value, arena_printf(value->reader->arena, "seconds or \"30s\", from %g to %g",
                                         min / 1000, max / 1000)
                                .at);
}

void key_one_of(const struct key_value *value)
{
    struct buf what = buf_in(value->reader->arena);
    for (const struct key_choice *choice = value->key->choices; choice->name; choice++) {
        if (str_is(json_str(value->json), choice->name)) {
            memcpy(key_target(value), &choice->value, sizeof(choice->value));
            return;
        }
        buf_printf(&what, "%s\"%s\"", what.len ? " or " : "", choice->name);
    }
    buf_byte(&what, '\0');
    key_expected(value, what.at);
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
    struct str text = json_str(value->json);
    if (!text.len || memchr(text.at, '\0', text.len))
        key_expected(value, "a path");
    else
        *(const char **)key_target(value) = key_table_path(value->reader, text);
}

/* "file.json" or { "a.json", "b.json" } */
void key_files(const struct key_value *value)
{
    bool one = value->json->type == JSON_STRING;
    if (!one && !key_is_list(value, "a file name or a list of them"))
        return;
    const struct json *items = one ? value->json : value->json->items;
    size_t count = one ? 1 : value->json->len;
    const char **files = ARENA_ARRAY(value->reader->arena, const char *, count);
    for (size_t i = 0; i < count; i++) {
        if (!json_str(&items[i]).len) {
            expected(value->reader, value->path, value->key->text, &items[i]);
            return;
        }
        files[i] = key_table_path(value->reader, json_str(&items[i]));
    }
    *(struct path_list *)key_target(value) = (struct path_list){files, count};
}

void key_subtable(const struct key_value *value)
{
    key_table_read(value->reader, value->key->keys, value->path, value->json, value->base);
}

void key_absent(const struct key_value *value)
{
    key_table_error(value->reader, value->path, "%s", value->key->text);
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
