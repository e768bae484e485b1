/* One walk from the page's first entry. */
#include "passing/served_page.h"

#include "base/arena.h"
#include "base/buf.h"
#include "catalog/hidden_text.h"
#include "catalog/mcp_version.h"
#include "json/build.h"
#include "json/write.h"

const char *served_member(enum served_kind kind)
{
    static const char *const members[SERVED_KINDS] = {"prompts", "resources", "resourceTemplates"};
    return members[kind];
}

/* SDKs demand a `name` of resources and of templates, and take null for no member; then they drop the list.
 */
static const struct json *repaired(struct arena *arena, enum served_kind kind, const struct served_item *item,
                                   const struct json *definition)
{
    struct json now = *definition;
    bool named = json_is(json_get_text(definition, "name"), JSON_STRING), changed = false;
    for (uint32_t i = now.len; i-- > 0;)
        if (json_is(&now.members[i].value, JSON_NULL)) {
            now = json_without(arena, &now, now.members[i].key);
            changed = true;
        }
    if (!item->renamed && (named || kind == SERVED_PROMPTS))
        return changed ? json_keep(arena, now) : definition;
    return json_keep(arena, json_with(arena, &now, STR_LIT("name"), json_string(item->name)));
}

size_t served_write_page(struct arena *arena, const struct served *served, const struct config *config,
                         const struct peer *peer, enum served_kind kind, size_t from, struct str protocol,
                         struct buf *out)
{
    size_t count = served_count(served, kind), start = out->len, written = 0, i = from;
    struct json_out page = json_out(out);
    json_open(&page, '[');
    for (; i < count && written < SERVED_PAGE_MAX && out->len - start < SERVED_PAGE_MAX_BYTES; i++) {
        const struct served_item *item = served_at(served, kind, i);
        struct hidden_text hidden;
        if (!served_is_for(config, peer, kind, item))
            continue;
        const struct json *clean = hidden_text_strip(arena, item->definition, &hidden);
        json_put(&page, mcp_version_definition(arena, protocol, repaired(arena, kind, item, clean)));
        written++;
    }
    json_close(&page, ']');
    return i < count ? i : 0;
}
