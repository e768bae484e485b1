/*
 * Names of members that no schema declares, and what was meant by them: a declared name that is alike, or
 * that it abbreviates, and not used yet, or the same name one level deeper or higher. The guess must fit the
 * type of the value, and the field that was meant is then no problem of its own. An open object accepts such
 * members: they are advised about, or dropped. The keys of a map are data, and never looked at.
 */
#include "base/suggest.h"
#include "json/build.h"
#include "json/write.h"
#include "schema/explain.h"
#include "schema/shape.h"

#include <ctype.h>

/* ---- the collecting pass: what an undeclared name was meant for ---- */

#define NAMES_MAX          16u /* undeclared names of an object that are compared */
#define CANDIDATES_MAX     64u /* declared names that they are compared with */
#define DECLARED_NAMES_MAX 12u /* listed for a name that has no place; the rest is counted */

#define MATCHES_STEPS 100u /* to begin with an object's names */
#define COMPARE_STEPS 8u   /* to compare two names */

enum place { PLACE_UNKNOWN, PLACE_RENAMED, PLACE_DEEPER, PLACE_HIGHER };

struct name_match {
    const struct json_member *sent;
    enum place place;
    const struct prop *meant; /* PLACE_RENAMED: the declared field; PLACE_DEEPER: the one it belongs in */
    bool in_list;             /* PLACE_DEEPER: in an item of it */
};

struct candidate {
    const struct prop *prop;
    bool required, used;
};

struct name_matches {
    struct in_place_nodes declared; /* by every branch */
    struct name_match sent[NAMES_MAX];
    size_t sent_count;
    struct candidate candidates[CANDIDATES_MAX];
    size_t candidate_count;
    bool reported_others; /* the renames of optional fields are reported */
};

/* Whether a property, a pattern or the schema for additional properties declares the name, unless that schema
 * only allows or forbids them. */
static bool is_declared(struct pass *pass, const struct in_place_nodes *all, struct str name)
{
    if (in_place_prop(all, name))
        return true;
    for (uint32_t i = 0; i < all->count; i++) {
        const struct props *props = all->props[i];
        if (props && node_is_map_values(props->rest))
            return true;
        for (uint32_t k = 0; props && k < props->pattern_count; k++)
            if (pass_matches(pass, props->patterns[k].pattern, name))
                return true;
    }
    return false;
}

static void collect_candidates(struct name_matches *m, const struct json *v)
{
    for (uint32_t i = 0; i < m->declared.count; i++) {
        const struct props *props = m->declared.props[i];
        for (uint32_t k = 0; props && k < props->count && m->candidate_count < CANDIDATES_MAX; k++) {
            struct str name = props->list[k].key;
            bool known = json_get(v, name) != NULL;
            for (size_t n = 0; n < m->candidate_count && !known; n++)
                if (str_eq(m->candidates[n].prop->key, name)) {
                    known = true;
                    m->candidates[n].required |= props->list[k].required;
                    if (!m->candidates[n].prop->node)
                        m->candidates[n].prop = &props->list[k];
                }
            if (!known)
                m->candidates[m->candidate_count++] =
                    (struct candidate){&props->list[k], props->list[k].required, false};
        }
    }
}

/* ---- the same object ---- */

/* Whether the value may be meant for the field: its type fits, or would after coercion. */
static bool may_fit(const struct prop *prop, const struct json *v)
{
    unsigned types = prop->node ? prop->node->types : TYPES_ANY;
    struct str s = json_str(v);
    if (types & type_bit_of(v))
        return true;
    if (v->type == JSON_STRING && s.len && (types & TYPES_NUMBER))
        return ascii_is_digit(s.at[0]) || s.at[0] == '-';
    if (v->type == JSON_NUMBER && (types & TYPE_BIT(JSON_STRING)))
        return true;
    if (v->type == JSON_ARRAY && v->len && v->items[0].type == JSON_STRING && (types & TYPE_BIT(JSON_STRING)))
        return true; /* several texts for one, to be joined */
    return (types & TYPE_BIT(JSON_ARRAY)) && v->type != JSON_ARRAY && v->type != JSON_NULL;
}

#define INITIALS_LEAST 3u /* fewer letters are the beginnings of too many names */

/* "dob" of date_of_birth and dateOfBirth. */
static bool is_initials(struct str word, struct str name)
{
    size_t count = 0;
    for (size_t i = 0; i < name.len; i++) {
        unsigned char c = (unsigned char)name.at[i], before = i ? (unsigned char)name.at[i - 1] : '_';
        bool begins = isalpha(c) && (!isalnum(before) || (isupper(c) && islower(before)));
        if (begins && (count == word.len || tolower((unsigned char)word.at[count++]) != tolower(c)))
            return false;
    }
    return count == word.len && count >= INITIALS_LEAST;
}

/* A required field is meant rather than an optional one that is as much alike. */
static unsigned score(const struct name_match *sent, const struct candidate *c)
{
    if (c->used || !may_fit(c->prop, &sent->sent->value))
        return 0;
    unsigned alike = suggest_score(sent->sent->key, c->prop->key);
    if (alike < SUGGEST_CLOSE && is_initials(sent->sent->key, c->prop->key))
        alike = SUGGEST_CLOSE;
    return alike < SUGGEST_CLOSE ? 0 : alike + (c->required ? SUGGEST_CLOSE / 10 : 0);
}

/* The pair that is most alike first; none if another field is as much alike. */
static bool match_closest(struct name_matches *m, unsigned scores[NAMES_MAX][CANDIDATES_MAX])
{
    unsigned best = 0;
    size_t from = 0, to = 0;
    bool tied = false;
    for (size_t i = 0; i < m->sent_count; i++)
        for (size_t k = 0; k < m->candidate_count && m->sent[i].place == PLACE_UNKNOWN; k++) {
            unsigned here = m->candidates[k].used ? 0 : scores[i][k];
            if (here > best) {
                best = here;
                from = i;
                to = k;
                tied = false;
            } else if (here && here == best && i == from) {
                tied = true;
            }
        }
    if (!best)
        return false;
    if (tied) {
        memset(scores[from], 0, sizeof(scores[from]));
        return true;
    }
    m->sent[from].place = PLACE_RENAMED;
    m->sent[from].meant = m->candidates[to].prop;
    m->candidates[to].used = true;
    return true;
}

/* ---- other objects ---- */

/* Whether objects of the node, or items of its lists (then *in_list), declare the name. */
static bool declares(struct pass *pass, const struct node *node, struct str name, bool *in_list)
{
    struct in_place_nodes all __attribute__((uninitialized));
    in_place_collect(&all, node, NULL, NULL);
    *in_list = false;
    if (!pass_spend(pass, all.count))
        return false;
    if (in_place_prop(&all, name))
        return true;
    for (uint32_t i = 0; i < all.count; i++) {
        const struct node *item = all.items[i] ? all.items[i]->items.rest : NULL;
        struct in_place_nodes inner __attribute__((uninitialized));
        if (!item)
            continue;
        in_place_collect(&inner, item, NULL, NULL);
        pass_spend(pass, inner.count);
        *in_list |= in_place_prop(&inner, name) != NULL;
        if (*in_list)
            return true;
    }
    return false;
}

/* Two or more undeclared names that objects of one field declare are such an object, one level too high: that
 * is likelier than that each was mistyped. */
static void match_whole_object(struct pass *pass, struct name_matches *m, const struct prop *field)
{
    bool here[NAMES_MAX] = {false}, in_list[NAMES_MAX] = {false};
    size_t count = 0;
    for (size_t i = 0; field->node && i < m->sent_count; i++) {
        here[i] = m->sent[i].place == PLACE_UNKNOWN &&
                  declares(pass, field->node, m->sent[i].sent->key, &in_list[i]);
        count += here[i];
    }
    for (size_t i = 0; count > 1 && i < m->sent_count; i++)
        if (here[i]) {
            m->sent[i].place = PLACE_DEEPER;
            m->sent[i].meant = field;
            m->sent[i].in_list = in_list[i];
        }
}

/* In exactly one declared field. */
static void match_deeper(struct pass *pass, struct name_matches *m, struct name_match *sent)
{
    const struct prop *found = NULL;
    bool in_list = false;
    for (uint32_t i = 0; i < m->declared.count; i++) {
        const struct props *props = m->declared.props[i];
        for (uint32_t k = 0; props && k < props->declared; k++) {
            bool here;
            const struct prop *p = &props->list[k];
            if (!p->node || (found && str_eq(found->key, p->key)) ||
                !declares(pass, p->node, sent->sent->key, &here))
                continue;
            if (found)
                return;
            found = p;
            in_list = here;
        }
    }
    if (!found)
        return;
    sent->place = PLACE_DEEPER;
    sent->meant = found;
    sent->in_list = in_list;
}

/* ---- once for each object ---- */

static struct name_matches *matches_of(struct explain_ctx *e)
{
    struct object_scope *object = e->object;
    struct name_matches *m = object->matches;
    if (m)
        return m;
    m = object->matches = arena_alloc(e->arena, sizeof(*m)); /* of which the counts say how much is written */
    m->declared.count = 0;
    m->sent_count = m->candidate_count = 0;
    m->reported_others = false;
    if (!pass_spend(&e->pass, MATCHES_STEPS + object->v->len))
        return m;
    in_place_collect(&m->declared, object->node, NULL, NULL);
    for (uint32_t i = 0; i < object->v->len && m->sent_count < NAMES_MAX; i++) {
        const struct json_member *member = &object->v->members[i];
        if (!is_declared(&e->pass, &m->declared, member->key))
            m->sent[m->sent_count++] = (struct name_match){.sent = member};
    }
    if (!m->sent_count)
        return m;
    collect_candidates(m, object->v);
    if (!pass_spend(&e->pass, m->sent_count * m->candidate_count * COMPARE_STEPS)) {
        m->sent_count = 0;
        return m;
    }
    for (size_t i = 0; m->sent_count > 1 && i < m->candidate_count; i++)
        match_whole_object(&e->pass, m, m->candidates[i].prop);
    unsigned(*scores)[CANDIDATES_MAX] = arena_alloc(e->arena, m->sent_count * sizeof(*scores));
    for (size_t i = 0; i < m->sent_count; i++)
        for (size_t k = 0; k < m->candidate_count; k++)
            scores[i][k] = score(&m->sent[i], &m->candidates[k]);
    while (match_closest(m, scores))
        ;
    for (size_t i = 0; i < m->sent_count; i++) {
        struct name_match *sent = &m->sent[i];
        if (sent->place != PLACE_UNKNOWN)
            continue;
        match_deeper(&e->pass, m, sent);
        const struct object_scope *up = object->up;
        if (sent->place != PLACE_UNKNOWN || !up || json_get(up->v, sent->sent->key))
            continue;
        struct in_place_nodes above __attribute__((uninitialized));
        in_place_collect(&above, up->node, NULL, NULL);
        if (in_place_prop(&above, sent->sent->key))
            sent->place = PLACE_HIGHER;
    }
    return m;
}

/* ---- the problems ---- */

/* "; 'oldText', 'newText' belong in edits[0]" */
static struct str clause_of_deeper(struct explain_ctx *e, const struct name_matches *m, struct str field,
                                   const struct location *location)
{
    struct buf out = buf_in(e->arena);
    struct location at = {location, field, 0};
    size_t count = 0;
    bool in_list = false;
    for (size_t i = 0; i < m->sent_count; i++) {
        const struct name_match *sent = &m->sent[i];
        if (sent->place != PLACE_DEEPER || !str_eq(sent->meant->key, field))
            continue;
        buf_text(&out, count++ ? ", '" : "; '");
        buf_str(&out, sent->sent->key);
        buf_byte(&out, '\'');
        in_list = sent->in_list;
    }
    if (count)
        buf_printf(&out, " %s in " STR_FMT "%s", count > 1 ? "belong" : "belongs",
                   STR_ARG(message_path(e->arena, &at)), in_list ? "[0]" : "");
    return buf_view(&out);
}

static bool is_required(const struct name_matches *m, const struct prop *field)
{
    for (size_t i = 0; i < m->candidate_count; i++)
        if (str_eq(m->candidates[i].prop->key, field->key))
            return m->candidates[i].required;
    return false;
}

/* `declared`: the names that the object may have; empty: it is not said. */
static void add_unknown_field(struct explain_ctx *e, struct str declared, bool warning,
                              const struct location *location)
{
    struct str message = STR_LIT("unknown field — remove it");
    if (declared.len)
        message = ARENA_JOIN(e->arena, STR_LIT("is not declared here; the declared names are "), declared);
    message_add(e, location,
                (struct problem){.code = "unknown_field", .message = message, .warning = warning});
}

/* The field is to be called as the one that was meant. */
static void add_rename(struct explain_ctx *e, const struct name_match *sent, bool warning,
                       const struct location *location)
{
    struct buf suggestion = buf_in(e->arena), out = buf_in(e->arena);
    const struct node *node = sent->meant->node;
    const struct json *v = &sent->sent->value;
    bool fits = !node || node_accepts(&e->pass, node, v);
    json_write_string(&suggestion, sent->meant->key);
    buf_text(&out, warning ? "is not declared: did you mean '" : "unknown field — did you mean '");
    buf_str(&out, sent->meant->key);
    buf_text(&out, "'?");
    if (!fits) {
        buf_text(&out, " It takes ");
        shape_put(&out, node);
    }
    message_add(e, location,
                (struct problem){.code = "unknown_field",
                                 .message = buf_view(&out),
                                 .shape = node,
                                 .got = message_got(e->arena, v),
                                 .suggestion = buf_view(&suggestion),
                                 .renames = !warning && fits,
                                 .warning = warning});
}

void names_explain_missing(struct explain_ctx *e, struct str name, const struct node *node,
                           const struct location *location)
{
    if (!e->object || problems_full(e->problems)) {
        message_missing(e, name, node, STR_NONE, STR_NONE, location);
        return;
    }
    struct name_matches *m = matches_of(e);
    for (size_t i = 0; i < m->sent_count; i++) {
        if (m->sent[i].place != PLACE_RENAMED || !str_eq(m->sent[i].meant->key, name))
            continue;
        struct location at = location_of_member(location, m->sent[i].sent->key);
        add_rename(e, &m->sent[i], false, &at);
        /* An open object accepts the other misspelled names as they are, and its optional fields would go
         * without their values: with the first correction, all are reported. */
        for (size_t k = 0; k < m->sent_count && !m->reported_others; k++)
            if (m->sent[k].place == PLACE_RENAMED && !is_required(m, m->sent[k].meant)) {
                at = location_of_member(location, m->sent[k].sent->key);
                add_rename(e, &m->sent[k], false, &at);
            }
        m->reported_others = true;
        return;
    }
    const struct prop *declared = node ? NULL : in_place_prop(&m->declared, name);
    message_missing(e, name, declared ? declared->node : node, STR_NONE,
                    clause_of_deeper(e, m, name, location), location);
}

/* "a, b, c" */
static struct str declared_names(struct explain_ctx *e, const struct name_matches *m)
{
    struct buf out = buf_in(e->arena);
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->declared.count; i++) {
        const struct props *props = m->declared.props[i];
        for (uint32_t k = 0; props && k < props->declared; k++)
            if (++count <= DECLARED_NAMES_MAX) {
                buf_text(&out, count > 1 ? ", " : "");
                buf_str(&out, props->list[k].key);
            }
    }
    if (count > DECLARED_NAMES_MAX)
        buf_printf(&out, " and %u more", count - DECLARED_NAMES_MAX);
    return buf_view(&out);
}

void names_explain_undeclared(struct explain_ctx *e, struct str name, bool warning,
                              const struct location *location)
{
    if (!warning && (!e->object || problems_full(e->problems))) {
        add_unknown_field(e, STR_NONE, false, location);
        return;
    }
    const struct name_match *sent = NULL;
    const struct name_matches *m = matches_of(e);
    const struct location *up = e->object->up ? e->object->up->location : NULL;
    struct location at;
    struct str place, path;
    for (size_t i = 0; i < m->sent_count && !sent; i++)
        if (str_eq(m->sent[i].sent->key, name))
            sent = &m->sent[i];
    switch (sent ? sent->place : PLACE_UNKNOWN) {
    case PLACE_RENAMED:
        add_rename(e, sent, warning, location);
        return;
    case PLACE_DEEPER:
        if (!warning && is_required(m, sent->meant))
            return; /* the problem of the missing field says where this one belongs */
        at = location_of_member(location->up, sent->meant->key);
        place = message_path(e->arena, &at);
        if (sent->in_list)
            place = ARENA_JOIN(e->arena, place, STR_LIT("[0]"));
        path = ARENA_JOIN(e->arena, place, STR_LIT("."), sent->sent->key);
        place = ARENA_JOIN(e->arena, STR_LIT("in "), place);
        break;
    case PLACE_HIGHER:
        at = location_of_member(up, sent->sent->key);
        place = up ? ARENA_JOIN(e->arena, STR_LIT("in "), message_path(e->arena, up))
                   : STR_LIT("at the top level of the arguments");
        path = message_path(e->arena, &at);
        break;
    default: /* a nested field that holds data is not to be removed */
        add_unknown_field(e, location->up ? declared_names(e, m) : STR_NONE, warning, location);
        return;
    }
    struct buf suggestion = buf_in(e->arena);
    json_write_string(&suggestion, path);
    message_add(
        e, location,
        (struct problem){.code = "unknown_field",
                         .message = ARENA_JOIN(e->arena, STR_LIT("is not declared here: it belongs "), place),
                         .suggestion = buf_view(&suggestion),
                         .warning = warning});
}

/* ---- members that an open schema accepts without declaring them ---- */

/* The nodes of the root; false if they declare no property at all, so that none is unknown. */
static bool collect_declarations(const struct schema *schema, const struct json *instance,
                                 struct in_place_nodes *all)
{
    bool found = false;
    in_place_collect(all, schema->root, NULL, NULL);
    for (uint32_t i = 0; i < all->count && !found; i++)
        found = all->props[i] && (all->props[i]->has_properties || all->props[i]->pattern_count);
    return found && instance->type == JSON_OBJECT;
}

void schema_unknown_properties(const struct schema *schema, const struct json *instance,
                               struct problems *problems, struct schema_work *work)
{
    struct explain_ctx e = {.pass = pass_begin(schema, work), .problems = problems, .arena = problems->arena};
    struct in_place_nodes all __attribute__((uninitialized));
    struct object_scope object = {NULL, schema->root, instance, NULL, NULL};
    if (!collect_declarations(schema, instance, &all))
        return;
    e.object = &object;
    for (uint32_t i = 0; i < instance->len; i++) {
        const struct json_member *m = &instance->members[i];
        /* If the pass gives up, the member counts as declared: nothing is reported without a full check. */
        if (is_declared(&e.pass, &all, m->key) || e.pass.too_complex)
            continue;
        if (problems_full(problems)) {
            problems->more++;
            continue;
        }
        struct location at = location_of_member(NULL, m->key);
        names_explain_undeclared(&e, m->key, true, &at);
    }
}

const struct json *schema_drop_unknown_properties(struct arena *arena, const struct schema *schema,
                                                  const struct json *instance, struct schema_work *work)
{
    struct pass pass = pass_begin(schema, work);
    struct in_place_nodes all __attribute__((uninitialized));
    uint32_t count = 0;
    if (!collect_declarations(schema, instance, &all))
        return instance;
    struct json_member *known = ARENA_ARRAY(arena, struct json_member, instance->len);
    for (uint32_t i = 0; i < instance->len; i++)
        if (is_declared(&pass, &all, instance->members[i].key) || pass.too_complex)
            known[count++] = instance->members[i];
    if (count == instance->len)
        return instance;
    return json_keep(arena, json_object(arena, known, count));
}
