/* The rules in their order. A template is compared without its variables' values: the server knows them. */
#include "passing/resource_owner.h"

#include "base/buf.h"

const struct upstream_spec *resource_upstream(const struct config *config, struct str name)
{
    for (size_t i = 0; i < config->upstream_count; i++)
        if (str_eq(config->upstreams[i]->name, name))
            return config->upstreams[i];
    return NULL;
}

static bool is_expression_of_paths(struct str expression)
{
    return expression.len && (strchr("+#/", expression.at[0]) || expression.at[expression.len - 1] == '*');
}

/* An expression with '?' or '&' may stand for nothing. */
static bool may_be_empty(struct str expression)
{
    return expression.len && strchr("?&#;", expression.at[0]);
}

/* Takes the text before the next expression off, and the expression. */
static struct str next_part(struct str *template, struct str *expression)
{
    const char *open = template->len ? memchr(template->at, '{', template->len) : NULL;
    size_t before = open ? (size_t)(open - template->at) : template->len;
    const char *close = open ? memchr(open, '}', template->len - before) : NULL;
    struct str text = {template->at, close ? before : template->len};
    *expression = close ? (struct str){open + 1, (size_t)(close - open) - 1} : STR_NONE;
    *template = close ? str_from(*template, before + expression->len + 2) : STR_NONE;
    return text;
}

static bool has_slash(struct str text)
{
    return text.len && memchr(text.at, '/', text.len);
}

/* The value of the expression before `text` ends at the first place where `text` stands: each place is looked
 * at once. The last text must stand at the end. */
static bool take_value(struct str *uri, struct str expression, struct str text, bool last)
{
    size_t at = 0;
    if (last && text.len <= uri->len && text.len)
        at = uri->len - text.len;
    else if (last)
        at = uri->len;
    else if (text.len) {
        const char *found = uri->len ? memmem(uri->at, uri->len, text.at, text.len) : NULL;
        if (!found)
            return false;
        at = (size_t)(found - uri->at);
    }
    struct str value = {uri->at, at}, rest = str_from(*uri, at);
    bool fits = (value.len || may_be_empty(expression)) &&
                (!has_slash(value) || is_expression_of_paths(expression)) && rest.len >= text.len &&
                (!text.len || memcmp(rest.at, text.at, text.len) == 0);
    *uri = str_from(rest, rest.len < text.len ? rest.len : text.len);
    return fits;
}

bool resource_template_fits(struct str template, struct str uri, size_t *literal)
{
    struct str expression, next, text = next_part(&template, &expression);
    *literal = text.len;
    if (uri.len < text.len || (text.len && memcmp(uri.at, text.at, text.len) != 0))
        return false;
    uri = str_from(uri, text.len);
    while (expression.len) {
        text = next_part(&template, &next);
        *literal += text.len;
        if (!take_value(&uri, expression, text, !next.len))
            return false;
        expression = next;
    }
    return !uri.len;
}

/* Most templates are told apart by what stands before their first expression. */
static bool begins_alike(struct str template, struct str uri)
{
    const char *open = template.len ? memchr(template.at, '{', template.len) : NULL;
    size_t len = open ? (size_t)(open - template.at) : template.len;
    return uri.len >= len && (!len || memcmp(uri.at, template.at, len) == 0);
}

/* The server with the most exact template; another one that has a fitting one is the rival. */
static struct str by_template(struct resource_search *s, struct str uri)
{
    struct str owner = STR_NONE;
    size_t literal, most = 0;
    for (size_t i = 0; i < served_count(s->served, SERVED_TEMPLATES); i++) {
        const struct served_item *item = served_at(s->served, SERVED_TEMPLATES, i);
        if (!begins_alike(item->name, uri) || s->steps > RESOURCE_STEPS_MAX)
            continue;
        s->steps += item->name.len + uri.len;
        if (!resource_template_fits(item->name, uri, &literal))
            continue;
        bool wins = !owner.len || literal > most;
        struct str other = wins ? owner : item->upstream;
        if (other.len && !str_eq(other, wins ? item->upstream : owner))
            s->rival = other;
        if (wins) {
            owner = item->upstream;
            most = literal;
        }
    }
    return owner;
}

/* Servers that list neither resources nor templates have none. */
static struct str only_one(const struct config *config, struct upstreams *upstreams)
{
    struct str only = STR_NONE;
    for (size_t i = 0; i < config->upstream_count; i++) {
        struct tool_list *list = upstreams_list(upstreams, config->upstreams[i]->name, UPSTREAM_RESOURCES);
        tool_list_unref(list);
        if (!list)
            continue;
        if (only.len)
            return STR_NONE;
        only = config->upstreams[i]->name;
    }
    return only;
}

const struct upstream_spec *resource_owner(struct resource_search *s, struct str uri)
{
    const struct served_item *listed = served_find(s->served, SERVED_RESOURCES, uri);
    s->rival = STR_NONE;
    struct str name = by_template(s, uri);
    if (listed) {
        s->rival = name.len && !str_eq(name, listed->upstream) ? name : STR_NONE;
        name = listed->upstream;
    }
    if (!name.len)
        name = resource_links_find(s->links, uri);
    if (!name.len)
        name = only_one(s->config, s->upstreams);
    const struct upstream_spec *spec = name.len ? resource_upstream(s->config, name) : NULL;
    return spec && served_may_read(s->config, s->peer, spec, uri) ? spec : NULL;
}
