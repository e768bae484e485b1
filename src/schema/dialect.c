/* Which keywords a schema may use: the drafts by name, and metaschemas that choose vocabularies. */
#include "schema/compile.h"

#include "schema/uri.h"

#include <stdlib.h>

/* Older drafts are read by the rules of draft-07, which keeps nearly all of theirs. */
static const struct {
    const char *uri;
    enum draft draft;
} drafts[] = {
    {"://json-schema.org/draft/2020-12/schema", DRAFT_2020},
    {"://json-schema.org/draft/2019-09/schema", DRAFT_2019},
    {"://json-schema.org/draft-07/schema", DRAFT_7},
    {"://json-schema.org/draft-06/schema", DRAFT_7},
    {"://json-schema.org/draft-04/schema", DRAFT_7},
    {"://json-schema.org/schema", DRAFT_2020},
};

static const struct {
    const char *name;
    unsigned keywords;
} vocabularies[] = {
    {"core", VOCABULARY_CORE},
    {"applicator", VOCABULARY_APPLICATOR},
    {"unevaluated", VOCABULARY_UNEVALUATED},
    {"validation", VOCABULARY_VALIDATION},
    {"format-annotation", VOCABULARY_FORMAT},
    {"format-assertion", VOCABULARY_FORMAT},
    {"format", VOCABULARY_FORMAT},
    {"content", 0},
    {"meta-data", 0},
};

static enum draft known_draft(struct str uri)
{
    struct str rest = str_starts(uri, "https")  ? str_from(uri, 5)
                      : str_starts(uri, "http") ? str_from(uri, 4)
                                                : uri;
    for (size_t i = 0; i < sizeof(drafts) / sizeof(*drafts); i++)
        if (str_is(rest, drafts[i].uri))
            return drafts[i].draft;
    return 0;
}

static enum err choose_vocabularies(struct compiler *c, struct str metaschema, const struct json *chosen,
                                    struct dialect *out)
{
    out->vocabularies = VOCABULARY_CORE;
    for (uint32_t i = 0; i < chosen->len; i++) {
        struct str uri = chosen->members[i].key;
        const char *slash = uri.len ? memrchr(uri.at, '/', uri.len) : NULL;
        struct str name = slash ? str_from(uri, (size_t)(slash - uri.at) + 1) : uri;
        size_t count = sizeof(vocabularies) / sizeof(*vocabularies), at = 0;
        while (at < count && !str_is(name, vocabularies[at].name))
            at++;
        bool known = at < count && str_starts(uri, "https://json-schema.org/draft/");
        if (!known && json_is_true(&chosen->members[i].value))
            return err_set(c->why, ERR_SCHEMA,
                           "the metaschema '" STR_FMT "' requires the vocabulary '" STR_FMT
                           "', which toolgate does not know",
                           STR_ARG(metaschema), STR_ARG(uri));
        if (!known)
            continue;
        out->vocabularies |= vocabularies[at].keywords;
        out->asserts_format |= str_is(str_of(vocabularies[at].name), "format-assertion");
    }
    if (out->draft == DRAFT_2019 && (out->vocabularies & VOCABULARY_APPLICATOR))
        out->vocabularies |= VOCABULARY_UNEVALUATED; /* one vocabulary in that draft */
    return OK;
}

enum err dialect_find(struct compiler *c, struct str uri, struct dialect *out)
{
    struct str fragment, name = uri_split(uri, &fragment);
    *out = (struct dialect){.draft = known_draft(name), .vocabularies = VOCABULARIES_ALL};
    if (out->draft)
        return OK;
    const struct json *metaschema =
        schema_registry_find(c->arena, c->options ? c->options->registry : NULL, name);
    struct str base = uri_split(json_str(json_get_text(metaschema, "$schema")), &fragment);
    out->draft = metaschema ? known_draft(base) : 0;
    if (!out->draft)
        return err_set(c->why, ERR_SCHEMA,
                       "expected \"$schema\" to name draft-07, 2019-09 or 2020-12 of "
                       "https://json-schema.org, found '" STR_FMT "'; name one of these, or leave it out",
                       STR_ARG(str_cut(uri, 200)));
    const struct json *chosen = json_get_text(metaschema, "$vocabulary");
    return json_is(chosen, JSON_OBJECT) ? choose_vocabularies(c, name, chosen, out) : OK;
}

static int compare_name(const void *name, const void *keyword)
{
    return str_cmp(*(const struct str *)name, str_of(((const struct keyword *)keyword)->name));
}

const struct keyword *keyword_find(const struct compiler *c, const struct dialect *dialect, struct str name)
{
    const struct keyword *k = bsearch(&name, c->keyword_table->at, c->keyword_table->count,
                                      sizeof(*c->keyword_table->at), compare_name);
    return k && (k->drafts & dialect->draft) && (k->vocabulary & dialect->vocabularies) ? k : NULL;
}
