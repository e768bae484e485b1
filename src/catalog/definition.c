/* What a definition shows, hides and tells. */
#include "catalog/definition.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/printable.h"
#include "policy/known_tools.h"
#include "json/build.h"

#include <ctype.h>

/* ---- as tools/list shows it: built member by member, without those that official SDKs reject ---- */

#define DEFINITION_MEMBERS_MAX 8u

/* SDK v1 wants an object for each property: true becomes {}, false {"not":{}}. */
static const struct json *without_boolean(void *owner, const struct json *parent, uint32_t i, struct str *key)
{
    struct arena *arena = owner;
    const struct json *child = json_child(parent, i);
    struct json empty = json_object(arena, NULL, 0);
    struct json_member not_anything = json_member(STR_LIT("not"), empty);
    (void)key;
    if (!json_is(child, JSON_BOOL))
        return child;
    return json_keep(arena, child->truth ? empty : json_object(arena, &not_anything, 1));
}

/* False: it is no schema of an object, and cannot become one without a change of its meaning. */
static bool repair_schema(struct arena *arena, const struct json *schema, struct json *out)
{
    const struct json *type = json_get_text(schema, "type");
    const struct json *properties = json_get_text(schema, "properties");
    const struct json *required = json_get_text(schema, "required");
    bool is_object = !type || str_is(json_str(type), "object") || json_array_has(type, STR_LIT("object"));
    if (!json_is(schema, JSON_OBJECT) || !is_object)
        return false;
    *out = *schema;
    if (!json_is(type, JSON_STRING))
        *out = json_with(arena, out, STR_LIT("type"), json_string(STR_LIT("object")));
    if (properties && !json_is(properties, JSON_OBJECT))
        *out = json_without(arena, out, STR_LIT("properties"));
    bool names_fields = json_is(required, JSON_ARRAY);
    for (uint32_t i = 0; names_fields && i < required->len; i++)
        names_fields = json_is(&required->items[i], JSON_STRING);
    if (required && !names_fields)
        *out = json_without(arena, out, STR_LIT("required"));
    if (json_is(properties, JSON_OBJECT)) {
        const struct json *named = json_map(arena, properties, without_boolean, arena);
        if (named != properties)
            *out = json_with(arena, out, STR_LIT("properties"), *named);
    }
    return true;
}

/* A server's keys of toolgate would pass for its own words. `strict`: that of prepare_tools, or NULL. */
static struct json told_meta(struct arena *arena, const struct json *meta, const struct json *strict)
{
    uint32_t given = json_is(meta, JSON_OBJECT) ? meta->len : 0;
    struct json_member *members = ARENA_ARRAY(arena, struct json_member, given + 1);
    size_t count = 0;
    for (uint32_t i = 0; i < given; i++)
        if (!str_starts(meta->members[i].key, "dev.toolgate/"))
            members[count++] = meta->members[i];
    if (strict)
        members[count++] = json_member(STR_LIT(DEFINITION_STRICT_KEY), *strict);
    return json_object(arena, members, count);
}

struct fit_walk {
    struct arena *arena;
    const char *needs; /* of a list of objects: what each of them must have, a string */
};

/* Leaves out what is null or of another type than MCP's, for which SDKs reject a whole list. */
static const struct json *fit_child(void *owner, const struct json *parent, uint32_t i, struct str *key)
{
    static const struct {
        const char *key, *needs;
        enum json_type type;
        bool is_part; /* with members of this table */
    } members[] = {{"title", NULL, JSON_STRING, false},      {"description", NULL, JSON_STRING, false},
                   {"mimeType", NULL, JSON_STRING, false},   {"lastModified", NULL, JSON_STRING, false},
                   {"size", NULL, JSON_NUMBER, false},       {"priority", NULL, JSON_NUMBER, false},
                   {"sizes", NULL, JSON_ARRAY, false},       {"audience", NULL, JSON_ARRAY, false},
                   {"required", NULL, JSON_BOOL, false},     {"_meta", NULL, JSON_OBJECT, false},
                   {"annotations", NULL, JSON_OBJECT, true}, {"icons", "src", JSON_ARRAY, true},
                   {"arguments", "name", JSON_ARRAY, true}};
    const struct fit_walk *walk = owner;
    const struct json *child = json_child(parent, i);
    double n;
    if (parent->type == JSON_ARRAY)
        return json_is(json_get_text(child, walk->needs), JSON_STRING)
                   ? json_map(walk->arena, child, fit_child, owner)
                   : NULL;
    if (child->type == JSON_NULL || (str_is(*key, "priority") && json_double(child, &n) && (n < 0 || n > 1)))
        return NULL;
    for (size_t k = 0; k < sizeof(members) / sizeof(members[0]); k++) {
        if (!str_is(*key, members[k].key))
            continue;
        if (child->type != members[k].type)
            return NULL;
        struct fit_walk inner = {walk->arena, members[k].needs};
        const struct json *fits =
            members[k].is_part ? json_map(walk->arena, child, fit_child, &inner) : child;
        return fits == child || fits->len ? fits : NULL;
    }
    return child;
}

const struct json *definition_fit(struct arena *arena, const struct json *definition)
{
    struct fit_walk walk = {arena, NULL};
    return json_map(arena, definition, fit_child, &walk);
}

/* `extras`: the definition whose icons and _meta are kept; NULL: none. */
static enum err write_definition(struct arena *arena, const struct str texts[3], const struct json *input,
                                 const struct json *output, const struct json *annotations,
                                 const struct json *extras, const struct json *strict, struct json *out,
                                 struct why *why)
{
    static const char *const keys[3] = {"name", "title", "description"};
    static const struct {
        const char *name;
        enum json_type type;
    } hints[] = {{"readOnlyHint", JSON_BOOL},
                 {"destructiveHint", JSON_BOOL},
                 {"idempotentHint", JSON_BOOL},
                 {"openWorldHint", JSON_BOOL},
                 {"title", JSON_STRING}};
    const struct json *icons = json_get_text(extras, "icons"), *meta = json_get_text(extras, "_meta");
    struct json_member members[DEFINITION_MEMBERS_MAX];
    size_t count = 0;
    struct json empty = json_object(arena, NULL, 0), repaired;
    for (size_t i = 0; i < 3; i++)
        if (texts[i].len)
            members[count++] = json_member(str_of(keys[i]), json_string(texts[i]));
    if (!repair_schema(arena, input ? input : &empty, &repaired))
        return err_set(why, ERR_SCHEMA, "inputSchema: expected a schema of type \"object\"");
    members[count++] = json_member(STR_LIT("inputSchema"), repaired);
    if (output && repair_schema(arena, output, &repaired))
        members[count++] = json_member(STR_LIT("outputSchema"), repaired);
    struct json kept = json_is(annotations, JSON_OBJECT) ? *annotations : json_null();
    for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++) {
        const struct json *hint = json_get_text(&kept, hints[i].name);
        if (hint && !json_is(hint, hints[i].type))
            kept = json_without(arena, &kept, str_of(hints[i].name));
    }
    if (json_is(&kept, JSON_OBJECT))
        members[count++] = json_member(STR_LIT("annotations"), kept);
    const struct json_member only_icons = json_member(STR_LIT("icons"), icons ? *icons : json_null());
    struct json fitting = json_object(arena, &only_icons, 1);
    if ((icons = json_get_text(definition_fit(arena, &fitting), "icons")))
        members[count++] = json_member(STR_LIT("icons"), *icons);
    if (json_is(meta, JSON_OBJECT) || strict)
        members[count++] = json_member(STR_LIT("_meta"), told_meta(arena, meta, strict));
    *out = json_object(arena, members, count);
    return OK;
}

static void add_sentence(struct buf *text, const char *prefix, struct str sentence)
{
    sentence = str_trim(sentence);
    if (!sentence.len)
        return;
    if (text->len)
        buf_byte(text, '\n');
    buf_text(text, prefix);
    buf_str(text, sentence);
    if (!strchr(".!?", sentence.at[sentence.len - 1]))
        buf_byte(text, '.');
}

static struct str description(struct arena *arena, const struct tool *tool)
{
    const struct policy *policy;
    struct buf text = buf_in(arena);
    bool says = false, rules = false;
    for (size_t i = 0; (policy = tool_enforced_policy(tool, &i));)
        says |= policy->use_when.len || policy->avoid_when.len || policy->rule_count;
    if (!says)
        return tool->description;
    buf_str(&text, str_trim(tool->description));
    for (size_t i = 0; (policy = tool_enforced_policy(tool, &i));) {
        add_sentence(&text, "Use it when ", policy->use_when);
        add_sentence(&text, "Avoid it when ", policy->avoid_when);
    }
    for (size_t i = 0; (policy = tool_enforced_policy(tool, &i));)
        for (size_t n = 0; n < policy->rule_count; n++, rules = true)
            add_sentence(&text, rules ? "- " : "Rules:\n- ", policy_rule_words(policy, n));
    return buf_view(&text);
}

/* ---- what a member of a schema is, by its key ---- */

enum member_kind {
    MEMBER_SCHEMA, /* or anything else that has members of these kinds */
    MEMBER_NAMES,  /* an object whose keys are names, and whose values are schemas */
    MEMBER_VALUES, /* that arguments are compared with */
    MEMBER_OPAQUE, /* no model reads it, or as in a pattern the character is meant */
};

static enum member_kind kind_of(struct str key)
{
    static const struct {
        const char *key;
        enum member_kind kind;
    } members[] = {{"properties", MEMBER_NAMES},
                   {"$defs", MEMBER_NAMES},
                   {"definitions", MEMBER_NAMES},
                   {"dependentSchemas", MEMBER_NAMES},
                   {"enum", MEMBER_VALUES},
                   {"const", MEMBER_VALUES},
                   {"required", MEMBER_VALUES},
                   {"name", MEMBER_VALUES},
                   {"dependentRequired", MEMBER_VALUES},
                   {"pattern", MEMBER_OPAQUE},
                   {"patternProperties", MEMBER_OPAQUE},
                   {"_meta", MEMBER_OPAQUE},
                   {"icons", MEMBER_OPAQUE}};
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
        if (str_is(key, members[i].key))
            return members[i].kind;
    return MEMBER_SCHEMA;
}

struct schema_walk {
    struct arena *arena;
    enum member_kind kind;     /* of the container */
    struct hidden_text *found; /* of a search for hidden text */
};

/* ---- a server's own output schema: clients check results by it again, and throw away one that does not fit.
 * It is listed without what a new release of the server breaks: values, formats, bounds, closedness. ---- */

static const struct json *loosen_child(void *owner, const struct json *parent, uint32_t i, struct str *key)
{
    static const char left_out[] = " enum const format pattern minimum maximum exclusiveMinimum "
                                   "exclusiveMaximum multipleOf minLength maxLength "
                                   "minItems maxItems uniqueItems minProperties maxProperties contains "
                                   "minContains maxContains propertyNames "
                                   "patternProperties unevaluatedProperties unevaluatedItems "
                                   "dependentRequired dependentSchemas dependencies "
                                   "not if then else ";
    const struct schema_walk *walk = owner;
    const struct json *child = json_child(parent, i);
    bool is_member = parent->type == JSON_OBJECT && walk->kind == MEMBER_SCHEMA;
    enum member_kind kind = is_member ? kind_of(*key) : MEMBER_SCHEMA;
    struct str word = arena_printf(walk->arena, " " STR_FMT " ", STR_ARG(*key));
    if (is_member && (strstr(left_out, word.at) || (child->type == JSON_BOOL && !child->truth)))
        return NULL;
    if (is_member && str_is(*key, "oneOf")) { /* more than one may fit now */
        *key = STR_LIT("anyOf");
        child = json_get_text(parent, "anyOf") ? NULL : child;
    }
    struct schema_walk inner = {walk->arena, kind, NULL};
    return !child || kind == MEMBER_VALUES || kind == MEMBER_OPAQUE
               ? child
               : json_map(walk->arena, child, loosen_child, &inner);
}

enum err definition_from_tool(struct arena *arena, const struct tool *tool, struct json *out, struct why *why)
{
    struct schema_walk walk = {arena, MEMBER_SCHEMA, NULL};
    const struct json *output = tool->output && tool->output_misfits
                                    ? json_map(arena, tool->output, loosen_child, &walk)
                                    : tool->output;
    const struct str texts[3] = {tool->name, tool->title, description(arena, tool)};
    return write_definition(arena, texts, tool->input, output, tool->annotations, tool->definition, NULL, out,
                            why);
}

enum err definition_repair(struct arena *arena, struct str name, const struct json *definition,
                           struct json *out, struct why *why)
{
    if (!json_is(definition, JSON_OBJECT))
        return err_set(why, ERR_SCHEMA, "expected a tool definition, got %s",
                       definition ? json_type_name((enum json_type)definition->type) : "nothing");
    const struct json *strict = json_get_text(definition, "strict");
    if (strict && !json_is(strict, JSON_BOOL))
        return err_set(why, ERR_SCHEMA, "strict: expected true or false, got %s",
                       json_type_name((enum json_type)strict->type));
    const struct str texts[3] = {name, json_str(json_get_text(definition, "title")),
                                 json_str(json_get_text(definition, "description"))};
    return write_definition(arena, texts, json_get_text(definition, "inputSchema"),
                            json_get_text(definition, "outputSchema"),
                            json_get_text(definition, "annotations"), definition, strict, out, why);
}

/* ---- hidden text: what a string is follows from the member that it is in ---- */

static bool has_hidden(const struct json *value)
{
    bool hides = printable_count_hidden(json_str(value)) > 0;
    for (uint32_t i = 0; i < json_child_count(value) && !hides; i++)
        hides = has_hidden(json_child(value, i)) ||
                (value->type == JSON_OBJECT && printable_count_hidden(value->members[i].key));
    return hides;
}

static const struct json *strip_child(void *owner, const struct json *parent, uint32_t i, struct str *key);

/* As deep as the parser allows. */
static const struct json *strip(struct arena *arena, struct hidden_text *found, const struct json *value,
                                enum member_kind kind)
{
    struct schema_walk walk = {arena, kind, found};
    size_t count = printable_count_hidden(json_str(value));
    if (kind == MEMBER_OPAQUE)
        return value;
    if (kind == MEMBER_VALUES && value->type != JSON_OBJECT) {
        if (has_hidden(value))
            found->refused = "a name or an allowed value";
        return value;
    }
    if (!count)
        return json_map(arena, value, strip_child, &walk);
    struct buf stripped = buf_in(arena);
    found->removed += count;
    printable_strip(&stripped, json_str(value));
    return json_keep(arena, json_string(buf_view(&stripped)));
}

static const struct json *strip_child(void *owner, const struct json *parent, uint32_t i, struct str *key)
{
    const struct schema_walk *walk = owner;
    bool is_named = parent->type == JSON_OBJECT && walk->kind != MEMBER_NAMES;
    if (printable_count_hidden(*key))
        walk->found->refused = "a parameter's name";
    return strip(walk->arena, walk->found, json_child(parent, i), is_named ? kind_of(*key) : MEMBER_SCHEMA);
}

const struct json *hidden_text_strip(struct arena *arena, const struct json *definition,
                                     struct hidden_text *found)
{
    *found = (struct hidden_text){0};
    return strip(arena, found, definition, MEMBER_SCHEMA);
}

/* ---- secrets: a walk over the schema's properties, items, alternatives and local references ---- */

struct walk {
    struct arena *arena;
    const struct json *root;
    struct buf path;
    struct str *list; /* SECRET_FIELDS_MAX */
    size_t count;
    unsigned depth, steps;
};

static void walk(struct walk *w, const struct json *schema);

static void walk_items(struct walk *w, const struct json *items)
{
    size_t length = w->path.len;
    buf_text(&w->path, "[]");
    if (json_is(items, JSON_OBJECT))
        walk(w, items);
    for (uint32_t i = 0; json_is(items, JSON_ARRAY) && i < items->len; i++)
        walk(w, &items->items[i]);
    w->path.len = length;
}

static void walk(struct walk *w, const struct json *schema)
{
    static const char *const lists[] = {"allOf", "anyOf", "oneOf"};
    static const char *const others[] = {"if", "then", "else"};
    const struct json *properties = json_get_text(schema, "properties");
    size_t length = w->path.len;
    struct str rest = json_str(json_get_text(schema, "$ref"));
    if (!schema || w->depth == SECRET_FIELDS_DEPTH_MAX || w->count == SECRET_FIELDS_MAX ||
        w->steps >= SECRET_FIELDS_STEPS_MAX)
        return;
    w->steps += 1 + (w->path.len + rest.len) / SECRET_FIELDS_STEP_BYTES; /* of `true`, too */
    if (!json_is(schema, JSON_OBJECT))
        return;
    w->depth++;
    struct str path = buf_view(&w->path);
    bool is_new = path.len && (json_is_true(json_get_text(schema, "writeOnly")) ||
                               str_is(json_str(json_get_text(schema, "format")), "password"));
    for (size_t i = 0; is_new && i < w->count; i++)
        is_new = !str_eq(w->list[i], path);
    if (is_new && !w->list)
        w->list = ARENA_ARRAY(w->arena, struct str, SECRET_FIELDS_MAX);
    if (is_new)
        w->list[w->count++] = arena_dup(w->arena, path);
    for (uint32_t i = 0; json_is(properties, JSON_OBJECT) && i < properties->len; i++) {
        if (length)
            buf_byte(&w->path, '.');
        buf_str(&w->path, properties->members[i].key);
        walk(w, &properties->members[i].value);
        w->path.len = length;
    }
    if (json_get_text(schema, "items"))
        walk_items(w, json_get_text(schema, "items"));
    if (json_get_text(schema, "prefixItems"))
        walk_items(w, json_get_text(schema, "prefixItems"));
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
        const struct json *list = json_get_text(schema, lists[i]);
        for (uint32_t k = 0; json_is(list, JSON_ARRAY) && k < list->len; k++)
            walk(w, &list->items[k]);
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        walk(w, json_get_text(schema, others[i]));
    /* "#/$defs/key"; names with an escape are not looked up. */
    const struct json *at = str_starts(rest, "#/") ? w->root : NULL;
    for (rest = str_from(rest, 2); rest.len && at;)
        at = json_get(at, str_split(&rest, '/'));
    walk(w, at);
    w->depth--;
}

size_t secret_fields_find(struct arena *arena, const struct json *schema, const struct str **paths)
{
    struct walk w = {.arena = arena, .root = schema};
    *paths = NULL;
    /* Most schemas name neither keyword: their text tells without a walk. */
    if (!schema ||
        (schema->raw_len && !memmem(schema->raw, schema->raw_len, "writeOnly", 9) &&
         !memmem(schema->raw, schema->raw_len, "password", 8) && !memchr(schema->raw, '\\', schema->raw_len)))
        return 0;
    w.path = buf_in(arena_new());
    walk(&w, schema);
    arena_free(w.path.arena);
    *paths = w.list;
    return w.count;
}

/* ---- effects, by a table of verbs. A word that is as often a noun (order, place, record, schedule) is not
 * in it, nor is one whose effect depends on the tool (run, open, click, start): a tool guessed to read that
 * writes is the worse error. ---- */

#define EFFECTS_GUESS_WORD_MAX_BYTES 16u /* no verb of the table is longer */

static const struct {
    enum policy_effects effects;
    const char *verbs; /* a space before and behind each */
} verbs_by_effects[] = {
    {EFFECTS_READ,
     " get list search read find fetch query describe check count status wait poll view show lookup "
     "look inspect browse preview retrieve peek ping grep cat ls stat tail head diff is has exists "
     "calculate compute estimate compare summarize explain recommend suggest "
     "whoami "},
    {EFFECTS_WRITE,
     " create add insert send post book pay transfer update set write patch move put upsert edit modify "
     "change "
     "append prepend replace save upload publish submit reply share invite assign unassign rename copy "
     "duplicate clone merge commit push register unregister enroll enable disable approve reject cancel "
     "reschedule reserve buy purchase refund deposit withdraw donate grant revoke subscribe unsubscribe "
     "follow "
     "unfollow mark attach detach archive unarchive restore import install deploy provision trigger notify "
     "apply "
     "revert rollback clear reset discard increment decrement lock unlock ban unban disconnect mkdir mv cp "
     "refill refuel recharge resume suspend pause redeem confirm "},
    {EFFECTS_DESTRUCTIVE, " delete remove drop destroy purge wipe erase truncate uninstall unlink rm rmdir "
                          "overwrite terminate kill shred "},
};

static enum policy_effects effects_of_word(struct str word)
{
    char padded[EFFECTS_GUESS_WORD_MAX_BYTES + 3] = " ";
    if (!word.len || word.len > EFFECTS_GUESS_WORD_MAX_BYTES)
        return EFFECTS_UNDECLARED;
    for (size_t i = 0; i < word.len; i++)
        padded[i + 1] = (char)tolower((unsigned char)word.at[i]);
    padded[word.len + 1] = ' ';
    for (size_t i = 0; i < sizeof(verbs_by_effects) / sizeof(verbs_by_effects[0]); i++)
        if (strstr(verbs_by_effects[i].verbs, padded))
            return verbs_by_effects[i].effects;
    return EFFECTS_UNDECLARED;
}

/* Takes the next word off `text`: "get_user", "get-user", "getUser" and "HTTPGet" are two words each. */
static struct str next_word(struct str *text)
{
    size_t start = 0, end;
    if (!text->len) /* nothing may be added to NULL, not even 0 */
        return STR_NONE;
    while (start < text->len && !isalnum((unsigned char)text->at[start]))
        start++;
    for (end = start; end < text->len && isalnum((unsigned char)text->at[end]); end++) {
        bool upper = isupper((unsigned char)text->at[end]);
        bool after_lower = end > start && !isupper((unsigned char)text->at[end - 1]);
        bool before_lower = end + 1 < text->len && islower((unsigned char)text->at[end + 1]);
        if (end > start && upper && (after_lower || before_lower))
            break;
    }
    struct str word = {text->at + start, end - start};
    *text = str_from(*text, end);
    return word;
}

/* "get_or_create" does what the stricter verb does. In "get_post" the later word may be a noun or a verb. */
static enum policy_effects effects_of_words(struct str words)
{
    struct str first = next_word(&words), before = first, word;
    enum policy_effects effects = effects_of_word(first);
    bool unsure = false;
    if (effects == EFFECTS_UNDECLARED)
        return effects;
    for (; (word = next_word(&words)).len; before = word) {
        enum policy_effects later = effects_of_word(word);
        bool joined =
            str_is(before, "and") || str_is(before, "or") || str_is(before, "And") || str_is(before, "Or");
        bool checks_in_or_out = str_is(before, "check") && (str_is(word, "in") || str_is(word, "out"));
        if (joined && later > effects)
            effects = later;
        unsure = unsure || later > EFFECTS_READ || checks_in_or_out;
    }
    return effects == EFFECTS_READ && unsure ? EFFECTS_UNDECLARED : effects;
}

/* Where the part behind the last "__", '.', '/' or ':' begins. */
static size_t last_part(struct str name)
{
    size_t at = name.len;
    while (at > 0 && !strchr("./:", name.at[at - 1]) &&
           !(at > 1 && name.at[at - 1] == '_' && name.at[at - 2] == '_'))
        at--;
    return at;
}

/* The parts before the last one name a server or a group, unless only they begin with a verb:
 * "read_file__v2". */
enum policy_effects effects_guess(struct str name)
{
    enum policy_effects effects = EFFECTS_UNDECLARED;
    while (name.len && !effects) {
        size_t at = last_part(name);
        effects = effects_of_words(str_from(name, at));
        while (at > 0 && !isalnum((unsigned char)name.at[at - 1]))
            at--;
        name.len = at;
    }
    return effects;
}

bool steps_guess(struct str name)
{
    char lower[EFFECTS_GUESS_WORD_MAX_BYTES];
    struct str words = str_from(name, last_part(name)), word;
    bool ends = false;
    if (effects_guess(name) != EFFECTS_UNDECLARED)
        return false;
    for (int at = 0; (word = next_word(&words)).len; at++) {
        struct str low = {lower, word.len < sizeof(lower) ? word.len : 0};
        for (size_t i = 0; i < low.len; i++)
            lower[i] = ascii_lower(word.at[i]);
        if (at < 2 && known_tools_lists(KNOWN_STEP_VERBS, low)) /* the first may be a server's name */
            return true;
        ends = known_tools_lists(KNOWN_STEP_ENDS, low);
    }
    return ends;
}
