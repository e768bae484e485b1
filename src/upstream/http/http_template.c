/* Splitting a template at its braces. */
#include "upstream/http/http_template.h"

#include <ctype.h>

static bool is_name(struct str s)
{
    bool valid = s.len > 0;
    for (size_t i = 0; valid && i < s.len; i++)
        valid = isalnum((unsigned char)s.at[i]) || memchr("_-.", s.at[i], 3);
    return valid;
}

bool http_template_next(struct str *rest, struct http_template_part *part)
{
    if (!rest->len)
        return false;
    bool setting = str_starts(*rest, "${");
    const char *close = memchr(rest->at, '}', rest->len);
    size_t n = close ? (size_t)(close - rest->at) + 1 : rest->len;
    struct str inside = {rest->at + 1, close ? n - 2 : 0};
    if (str_starts(*rest, "$${")) {
        *part = (struct http_template_part){HTTP_TEMPLATE_TEXT, {rest->at + 1, 2}};
        n = 3;
    } else if (setting && close) {
        *part = (struct http_template_part){HTTP_TEMPLATE_SETTING, {rest->at, n}};
    } else if (rest->at[0] == '{' && close && is_name(inside)) {
        *part = (struct http_template_part){HTTP_TEMPLATE_ARGUMENT, inside};
    } else if (setting || rest->at[0] == '{') {
        *part = (struct http_template_part){HTTP_TEMPLATE_BAD, {rest->at, n}};
    } else {
        for (n = 1; n < rest->len && rest->at[n] != '{'; n++)
            if (str_starts(str_from(*rest, n), "${") || str_starts(str_from(*rest, n), "$${"))
                break;
        *part = (struct http_template_part){HTTP_TEMPLATE_TEXT, {rest->at, n}};
    }
    *rest = str_from(*rest, n);
    return true;
}

void http_template_encode(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i];
        if (isalnum(c) || memchr("-._~", c, 4))
            buf_byte(out, (char)c);
        else
            buf_printf(out, "%%%02X", c);
    }
}
