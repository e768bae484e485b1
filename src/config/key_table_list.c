/*
 * The keys of a table as lines, for the manual and the sample configuration:
 * tests/spec/docs compares both with it.
 */
#include "base/arena.h"
#include "config/key_table.h"

#define KEY_UNSET UINT32_MAX /* of a number whose default is elsewhere, as POLICY_UNSET */

static const void *value_of(const struct config_key *key, const void *base)
{
    return (const char *)base + key->offset;
}

static uint32_t u32_of(const struct config_key *key, const void *base)
{
    uint32_t n;
    memcpy(&n, value_of(key, base), sizeof(n));
    return n;
}

static void list_bool(struct buf *out, const struct config_key *key, const void *base)
{
    buf_text(out, "true or false\t");
    if (base)
        buf_text(out, *(const bool *)value_of(key, base) ? "true" : "false");
}

static void list_u32(struct buf *out, const struct config_key *key, const void *base)
{
    buf_printf(out, "whole number, %lld to %lld\t", (long long)key->min, (long long)key->max);
    if (base && u32_of(key, base) != KEY_UNSET && u32_of(key, base) >= key->min)
        buf_printf(out, "%u", u32_of(key, base));
}

static void list_size(struct buf *out, const struct config_key *key, const void *base)
{
    size_t n = 0;
    if (base)
        memcpy(&n, value_of(key, base), sizeof(n));
    buf_printf(out, "whole number, at least %lld\t", (long long)key->min);
    if (n)
        buf_printf(out, "%zu", n);
}

static void list_duration(struct buf *out, const struct config_key *key, const void *base)
{
    buf_printf(out, "seconds, or \"30s\", %g to %g\t", (double)key->min / 1000, (double)key->max / 1000);
    if (base && u32_of(key, base) && u32_of(key, base) != KEY_UNSET)
        buf_printf(out, "%g", u32_of(key, base) / 1000.0);
}

static void list_choice(struct buf *out, const struct config_key *key, const void *base)
{
    for (const struct key_choice *choice = key->choices; choice->name; choice++)
        buf_printf(out, "%s\"%s\"", choice == key->choices ? "" : " or ", choice->name);
    buf_byte(out, '\t');
    for (const struct key_choice *choice = key->choices; base && choice->name; choice++)
        if (choice->value == u32_of(key, base))
            buf_printf(out, "\"%s\"", choice->name);
}

static void list_path(struct buf *out, const struct config_key *key, const void *base)
{
    (void)key;
    (void)base;
    buf_text(out, "path\t");
}

static const struct {
    key_reader *read;
    void (*list)(struct buf *out, const struct config_key *key, const void *base);
} types[] = {
    {key_bool, list_bool},         {key_u32, list_u32},       {key_size, list_size},
    {key_duration, list_duration}, {key_one_of, list_choice}, {key_path, list_path},
};

static void list_key(struct buf *out, const struct config_key *key, struct str path, const void *base)
{
    buf_printf(out, STR_FMT "\t", STR_ARG(path));
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (types[i].read == key->read) {
            types[i].list(out, key, base);
            buf_byte(out, '\n');
            return;
        }
    buf_printf(out, "%s\t\n",
               key->keys                ? "table"
               : key->read == key_files ? "path, or a list of paths"
                                        : "see the manual");
}

void key_table_list(struct buf *out, const struct config_key *keys, struct str path, const void *base)
{
    for (; keys->name.len; keys++) {
        if (keys->read == key_absent)
            continue;
        struct buf full = {0};
        buf_printf(&full, STR_FMT "%s" STR_FMT, STR_ARG(path), path.len ? "." : "", STR_ARG(keys->name));
        list_key(out, keys, buf_view(&full), base);
        if (keys->item)
            buf_text(&full, keys->item);
        if (keys->keys) /* an item of a list has no defaults here */
            key_table_list(out, keys->keys, buf_view(&full),
                           keys->item || !base ? NULL : value_of(keys, base));
        buf_clear(&full);
    }
}
