/* Keys and values against their table; what is wrong is said with the full name of the key. */
#include "config/key_table.h"

#include "base/arena.h"
#include "json/write.h"
#include "base/suggest.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define SETTINGS_QUOTE_MAX_BYTES 60u /* of a wrong value */
#define SETTINGS_KEYS_MAX        32u /* in one table */

void key_table_error(struct settings *settings, struct str path, const char *format, ...)
{
    struct buf *out = &settings->faults;
    va_list args;
    va_start(args, format);
    struct str sentence = arena_vprintf(settings->arena, format, args);
    va_end(args);
    buf_printf(out, "%s%s: ", out->len ? "\n" : "", settings->file);
    if (path.len)
        buf_printf(out, STR_FMT ": ", STR_ARG(path));
    buf_str(out, sentence);
}

void key_table_expected(struct settings *settings, struct str path, const char *what,
                        const struct json *value)
{
    struct buf text = buf_in(settings->arena);
    json_write(&text, value);
    struct str got = str_cut(buf_view(&text), SETTINGS_QUOTE_MAX_BYTES);
    key_table_error(settings, path, "expected %s, got " STR_FMT "%s", what, STR_ARG(got),
                    got.len < text.len ? "…" : "");
}

/* Lua has one empty table for both. */
static bool is_table(const struct json *value)
{
    return value->type == JSON_OBJECT || (value->type == JSON_ARRAY && value->len == 0);
}

bool key_table_list(struct settings *settings, struct str path, const char *what, const struct json *value)
{
    if (value->type == JSON_ARRAY && value->len)
        return true;
    if (is_table(value) && value->len == 0)
        key_table_error(settings, path, "expected %s, got an empty table; leave the key out instead", what);
    else
        key_table_expected(settings, path, what, value);
    return false;
}

static const struct setting *find(const struct setting *keys, struct str name)
{
    for (; keys->name.len; keys++)
        if (str_eq(keys->name, name))
            return keys;
    return NULL;
}

static struct str join(struct arena *arena, struct str path, struct str name)
{
    return path.len ? arena_printf(arena, STR_FMT "." STR_FMT, STR_ARG(path), STR_ARG(name)) : name;
}

static void unknown_key(struct settings *settings, const struct setting *keys, struct str path,
                        struct str name)
{
    struct str names[SETTINGS_KEYS_MAX];
    size_t count = 0;
    for (; keys->name.len && count < SETTINGS_KEYS_MAX; keys++)
        names[count++] = keys->name;
    struct str full = join(settings->arena, path, name), near = suggest_closest(name, names, count);
    if (near.len) {
        near = join(settings->arena, path, near);
        key_table_error(settings, STR_NONE, "unknown key '" STR_FMT "' (did you mean '" STR_FMT "'?)",
                        STR_ARG(full), STR_ARG(near));
        return;
    }
    struct buf all = buf_in(settings->arena);
    for (size_t i = 0; i < count; i++)
        buf_printf(&all, "%s" STR_FMT, i ? " " : "", STR_ARG(names[i]));
    key_table_error(settings, STR_NONE, "unknown key '" STR_FMT "'; known here: " STR_FMT, STR_ARG(full),
                    STR_ARG(buf_view(&all)));
}

void key_table_read(struct settings *settings, const struct setting *keys, struct str path,
                    const struct json *table, void *into)
{
    if (!is_table(table)) {
        key_table_expected(settings, path, "a table of keys", table);
        return;
    }
    for (size_t i = 0; i < table->len; i++) {
        const struct json_member *member = &table->members[i];
        const struct setting *setting = find(keys, member->key);
        if (setting)
            setting->read(settings, setting, join(settings->arena, path, member->key), &member->value, into);
        else
            unknown_key(settings, keys, path, member->key);
    }
}

/* ---- readers, one a type ---- */

void key_bool(struct settings *settings, const struct setting *setting, struct str path,
              const struct json *value, void *into)
{
    if (value->type != JSON_BOOL)
        key_table_expected(settings, path, "true or false", value);
    else
        *(bool *)((char *)into + setting->offset) = value->truth;
}

static bool read_number(struct settings *settings, const struct setting *setting, struct str path,
                        const struct json *value, int64_t *out)
{
    if (json_int(value, out) && *out >= setting->min && *out <= setting->max)
        return true;
    char what[96];
    snprintf(what, sizeof(what), "a whole number from %lld to %lld", (long long)setting->min,
             (long long)setting->max);
    key_table_expected(settings, path, what, value);
    return false;
}

void key_u32(struct settings *settings, const struct setting *setting, struct str path,
             const struct json *value, void *into)
{
    int64_t n;
    if (read_number(settings, setting, path, value, &n))
        *(uint32_t *)((char *)into + setting->offset) = (uint32_t)n;
}

void key_size(struct settings *settings, const struct setting *setting, struct str path,
              const struct json *value, void *into)
{
    int64_t n;
    if (read_number(settings, setting, path, value, &n))
        *(size_t *)((char *)into + setting->offset) = (size_t)n;
}

static const struct {
    const char *suffix;
    double ms;
} units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};

/* "30s", "1.5m": a number and what it counts. */
static bool read_duration(struct str text, double *ms)
{
    size_t digits = 0;
    while (digits < text.len && digits < 12 && strchr("0123456789.", text.at[digits]))
        digits++;
    char number[16] = {0};
    memcpy(number, text.at ? text.at : "", digits);
    char *end;
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

void key_duration(struct settings *settings, const struct setting *setting, struct str path,
                  const struct json *value, void *into)
{
    double ms;
    bool told = json_double(value, &ms);
    if (told)
        ms *= 1000;
    else
        told = read_duration(json_str(value), &ms);
    if (told && ms >= (double)setting->min && ms <= (double)setting->max) {
        *(uint32_t *)((char *)into + setting->offset) = (uint32_t)ms;
        return;
    }
    char what[96];
    snprintf(what, sizeof(what), "seconds or \"30s\", from %g to %g", (double)setting->min / 1000,
             (double)setting->max / 1000);
    key_table_expected(settings, path, what, value);
}

void key_one_of(struct settings *settings, const struct setting *setting, struct str path,
                const struct json *value, void *into)
{
    struct buf what = buf_in(settings->arena);
    for (const struct key_choice *choice = setting->choices; choice->name; choice++) {
        if (str_is(json_str(value), choice->name)) {
            memcpy((char *)into + setting->offset, &choice->value, sizeof(choice->value));
            return;
        }
        buf_printf(&what, "%s\"%s\"", choice == setting->choices ? "" : " or ", choice->name);
    }
    buf_byte(&what, '\0');
    key_table_expected(settings, path, what.at, value);
}

const char *key_table_path(struct settings *settings, struct str path)
{
    const char *slash = strrchr(settings->file, '/');
    if (path.at[0] == '/' || !slash)
        return arena_dup(settings->arena, path).at;
    int folder = (int)(slash - settings->file);
    return arena_printf(settings->arena, "%.*s/" STR_FMT, folder, settings->file, STR_ARG(path)).at;
}

void key_path(struct settings *settings, const struct setting *setting, struct str path,
              const struct json *value, void *into)
{
    struct str text = json_str(value);
    if (!text.len || memchr(text.at, '\0', text.len))
        key_table_expected(settings, path, "a path", value);
    else
        *(const char **)((char *)into + setting->offset) = key_table_path(settings, text);
}

/* "file.json" or { "a.json", "b.json" } */
void key_files(struct settings *settings, const struct setting *setting, struct str path,
               const struct json *value, void *into)
{
    const struct json *items = value;
    size_t count = 1;
    if (value->type != JSON_STRING) {
        if (!key_table_list(settings, path, "a file name or a list of them", value))
            return;
        items = value->items;
        count = value->len;
    }
    const char **files = ARENA_ARRAY(settings->arena, const char *, count);
    for (size_t i = 0; i < count; i++) {
        if (!json_str(&items[i]).len) {
            key_table_expected(settings, path, setting->words, &items[i]);
            return;
        }
        files[i] = key_table_path(settings, json_str(&items[i]));
    }
    *(struct files *)((char *)into + setting->offset) = (struct files){files, count};
}

void key_subtable(struct settings *settings, const struct setting *setting, struct str path,
                  const struct json *value, void *into)
{
    key_table_read(settings, setting->keys, path, value, into);
}

void key_absent(struct settings *settings, const struct setting *setting, struct str path,
                const struct json *value, void *into)
{
    (void)value;
    (void)into;
    key_table_error(settings, path, "%s", setting->words);
}
