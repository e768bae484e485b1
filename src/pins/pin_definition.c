/* The members are those that catalog/definition.c passes on, and the name. */
#include "pins/pin_definition.h"

#include "base/arena.h"
#include "base/sha256.h"
#include "json/build.h"
#include "json/canonical.h"

#include <stdio.h>

struct str pin_definition_text(struct arena *arena, const struct json *definition)
{
    static const char *const names[] = {"name",         "title",       "description", "inputSchema",
                                        "outputSchema", "annotations", "icons",       "_meta"};
    struct json_member members[sizeof(names) / sizeof(names[0])];
    struct buf text = buf_in(arena);
    size_t count = 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct json *value = json_get_text(definition, names[i]);
        if (value)
            members[count++] = json_member(str_of(names[i]), *value);
    }
    struct json pinned = json_object(arena, members, count);
    json_canonical(&text, &pinned);
    return buf_view(&text);
}

struct pin_digest pin_digest_of(struct str text)
{
    uint8_t bytes[SHA256_BYTES];
    struct pin_digest digest;
    sha256(text, bytes);
    for (unsigned i = 0; i < PIN_DIGEST_DIGITS / 2; i++)
        snprintf(digest.hex + 2 * i, 3, "%02x", bytes[i]);
    return digest;
}
