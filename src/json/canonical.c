/* Writes canonical JSON. Its form must not change: keys of a shared ledger are hashes of it. */
#include "json/canonical.h"

#include "base/arena.h"
#include "json/decimal.h"
#include "json/write.h"

#include <stdio.h>
#include <stdlib.h>

#define SORT_LOCAL 32u /* members sorted on the C stack */

static bool is_canonical(struct str literal)
{
    size_t i = literal.at[0] == '-';
    if (literal.len - i > DECIMAL_PLAIN_DIGITS || (i && literal.at[i] == '0'))
        return false;
    for (; i < literal.len; i++)
        if (literal.at[i] < '0' || literal.at[i] > '9')
            return false;
    return true;
}

static int by_key(const void *a, const void *b)
{
    const struct json_member *const *x = a, *const *y = b;
    return str_cmp((*x)->key, (*y)->key);
}

static void sort_members(const struct json_member **row, size_t count)
{
    if (count > SORT_LOCAL) {
        qsort(row, count, sizeof(*row), by_key);
        return;
    }
    for (size_t i = 1; i < count; i++) {
        const struct json_member *m = row[i];
        size_t k = i;
        for (; k > 0 && str_cmp(row[k - 1]->key, m->key) > 0; k--)
            row[k] = row[k - 1];
        row[k] = m;
    }
}

static void put_object(struct buf *out, const struct json *object, const struct str *without,
                       size_t without_count)
{
    const struct json_member *local[SORT_LOCAL] __attribute__((uninitialized)), **row = local;
    size_t count = 0;
    if (object->len > SORT_LOCAL && !(row = malloc(object->len * sizeof(*row)))) {
        fprintf(stderr, "toolgate: out of memory (%u keys to sort)\n", object->len);
        abort();
    }
    for (uint32_t i = 0; i < object->len; i++) {
        size_t k = 0;
        while (k < without_count && !str_eq(object->members[i].key, without[k]))
            k++;
        if (k == without_count)
            row[count++] = &object->members[i];
    }
    sort_members(row, count);
    buf_byte(out, '{');
    for (size_t i = 0; i < count; i++) {
        if (i)
            buf_byte(out, ',');
        json_write_string(out, row[i]->key);
        buf_byte(out, ':');
        json_canonical(out, &row[i]->value);
    }
    buf_byte(out, '}');
    if (row != local)
        free(row);
}

void json_canonical(struct buf *out, const struct json *value)
{
    switch ((enum json_type)value->type) {
    case JSON_NULL:
        buf_text(out, "null");
        break;
    case JSON_BOOL:
        buf_text(out, value->truth ? "true" : "false");
        break;
    case JSON_NUMBER:
        if (is_canonical((struct str){value->text, value->len}))
            buf_add(out, value->text, value->len);
        else
            decimal_canonical(out, (struct str){value->text, value->len});
        break;
    case JSON_STRING:
        json_write_string(out, json_str(value));
        break;
    case JSON_ARRAY:
        buf_byte(out, '[');
        for (uint32_t i = 0; i < value->len; i++) {
            if (i)
                buf_byte(out, ',');
            json_canonical(out, &value->items[i]);
        }
        buf_byte(out, ']');
        break;
    case JSON_OBJECT:
        put_object(out, value, NULL, 0);
        break;
    }
}

struct hash128 json_fingerprint(struct arena *scratch, const struct json *value, const struct str *without,
                                size_t without_count)
{
    struct buf text = buf_in(scratch);
    if (!value)
        buf_text(&text, "{}");
    else if (value->type == JSON_OBJECT)
        put_object(&text, value, without, without_count);
    else
        json_canonical(&text, value);
    return hash_stable(buf_view(&text));
}
