/*
 * Texts of an HTTP endpoint with places in them: {name} is an argument,
 * ${NAME} a setting (upstream/secrets.h), $${ the
 * two signs themselves. What an argument says is data: it is
 * encoded where it stands and never read as a template itself.
 */
#ifndef TOOLGATE_UPSTREAM_TEMPLATE_H
#define TOOLGATE_UPSTREAM_TEMPLATE_H

#include "base/buf.h"

#include <stdbool.h>

enum template_kind {
    TEMPLATE_TEXT,
    TEMPLATE_ARGUMENT, /* `text`: its name */
    TEMPLATE_SETTING,  /* `text`: "${NAME}" as it stands there */
    TEMPLATE_BAD       /* `text`: from a brace that does not close, or closes around no name */
};

struct template_part {
    enum template_kind kind;
    struct str text;
};

/* The next part, taken from the front of *rest; false: there are no more. */
bool template_next(struct str *rest, struct template_part *part);

/* All but letters, digits and -._~ as %XX. */
void template_percent_encode(struct buf *out, struct str text);

#endif
