/*
 * Strings of an HTTP endpoint with placeholders: {name} is an argument,
 * ${NAME} a setting (secrets.h), $${ a literal ${. The value of an argument is
 * data: it is encoded and never read as a template itself.
 */
#ifndef TOOLGATE_UPSTREAM_HTTP_HTTP_TEMPLATE_H
#define TOOLGATE_UPSTREAM_HTTP_HTTP_TEMPLATE_H

#include "base/buf.h"

#include <stdbool.h>

enum http_template_kind {
    HTTP_TEMPLATE_TEXT,
    HTTP_TEMPLATE_ARGUMENT, /* `text`: its name */
    HTTP_TEMPLATE_SETTING,  /* `text`: "${NAME}" as written */
    HTTP_TEMPLATE_BAD       /* `text`: from a brace that does not close, or encloses no name */
};

struct http_template_part {
    enum http_template_kind kind;
    struct str text;
};

/* Takes the next part from the front of *rest; false: the end. */
bool http_template_next(struct str *rest, struct http_template_part *part);

/* Percent-encodes everything but letters, digits and -._~ */
void http_template_encode(struct buf *out, struct str text);

#endif
