/* Two walks: one names the place of the first hit, the other masks secrets and shares what it does not
 * change. */
#include "result/pattern_sets.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/printable.h"
#include "json/build.h"
#include "result/order_text.h"
#include "result/secret_text.h"

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

static struct str mask_secrets(struct arena *arena, struct str text)
{
    struct buf out = buf_in(arena);
    size_t done = 0, at, len;
    struct str name;
    while (secret_text_find_key(text, done, &at, &len, &name)) {
        buf_add(&out, text.at + done, at - done);
        buf_printf(&out, "[redacted " STR_FMT "]", STR_ARG(name));
        done = at + len;
    }
    if (!done)
        return text;
    buf_str(&out, str_from(text, done));
    return buf_view(&out);
}

/* Hidden characters first: they could divide a secret. */
struct str pattern_sets_mask_text(struct arena *arena, unsigned sets, struct str text)
{
    struct buf visible = buf_in(arena);
    if ((sets & PATTERN_SET_HIDDEN) && find_hidden(text).len) {
        printable_strip_invisible(&visible, text);
        text = visible.len ? buf_view(&visible) : STR_LIT("");
    }
    return sets & PATTERN_SET_SECRETS ? mask_secrets(arena, text) : text;
}

struct masking {
    struct arena *arena;
    unsigned sets;
};

static const struct json *mask(const struct masking *m, const struct json *value);

static const struct json *mask_child(void *masking, const struct json *parent, uint32_t i, struct str *key)
{
    const struct masking *m = masking;
    if (parent->type == JSON_OBJECT) {
        struct str now = pattern_sets_mask_text(m->arena, m->sets, *key);
        if (now.at != key->at) /* two masked keys stay two */
            *key = arena_printf(m->arena, STR_FMT " %u", STR_ARG(now), i + 1);
    }
    return mask(m, json_child(parent, i));
}

static const struct json *mask(const struct masking *m, const struct json *value)
{
    if (value->type != JSON_STRING)
        return json_map(m->arena, value, mask_child, (void *)m);
    struct str text = json_str(value), masked = pattern_sets_mask_text(m->arena, m->sets, text);
    return masked.at == text.at ? value : json_keep(m->arena, json_string(masked));
}

const struct json *pattern_sets_mask(struct arena *arena, unsigned sets, const struct json *value)
{
    const struct masking m = {arena, sets};
    return value ? mask(&m, value) : NULL;
}
