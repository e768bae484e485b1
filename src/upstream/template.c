/* Found by their braces; a name is what a JSON Schema's property in code would be called. */
#include "upstream/template.h"

#include <ctype.h>

static bool is_name(struct str s)
{
    bool good = s.len > 0;
    for (size_t i = 0; good && i < s.len; i++)
        good = isalnum((unsigned char)s.at[i]) || memchr("_-.", s.at[i], 3);
    return good;
}

static struct template_part place(struct str rest, bool setting)
{
    const char *close = memchr(rest.at, '}', rest.len);
    size_t len = close ? (size_t)(close - rest.at) + 1 : rest.len;
    struct str inside = {rest.at + 1, close ? len - 2 : 0};
    if (close && setting)
        return (struct template_part){TEMPLATE_SETTING, {rest.at, len}};
    if (close && is_name(inside))
        return (struct template_part){TEMPLATE_ARGUMENT, inside};
    return (struct template_part){TEMPLATE_BAD, {rest.at, len}};
}

static bool begins_place(struct str s)
{
    return str_starts(s, "{") || str_starts(s, "${") || str_starts(s, "$${");
}

bool template_next(struct str *rest, struct template_part *part)
{
    if (!rest->len)
        return false;
    bool setting = str_starts(*rest, "${");
    size_t n = 0;
    if (str_starts(*rest, "$${")) {
        *part = (struct template_part){TEMPLATE_TEXT, {rest->at + 1, 2}};
        n = 3;
    } else if (setting || str_starts(*rest, "{")) {
        *part = place(*rest, setting);
        n = part->kind == TEMPLATE_ARGUMENT ? part->text.len + 2 : part->text.len;
    } else {
        while (n < rest->len && !begins_place(str_from(*rest, n)))
            n++;
        *part = (struct template_part){TEMPLATE_TEXT, {rest->at, n}};
    }
    *rest = str_from(*rest, n);
    return true;
}

void template_percent_encode(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i];
        if (isalnum(c) || memchr("-._~", c, 4))
            buf_byte(out, (char)c);
        else
            buf_printf(out, "%%%02X", c);
    }
}
