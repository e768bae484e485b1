/* One table of block types and the members of each. */
#include "policy/content.h"

#include "base/arena.h"
#include "base/buf.h"
#include "json/write.h"

#define GOT_MAX_BYTES 40u

enum form { TEXT, BASE64, LOOSE, MIME, URI, SIZE, OBJECT, AUDIENCE, PRIORITY };

struct member {
    const char *name;
    enum form form;
    bool required;
};

struct block {
    const char *type;
    struct member members[7];
};

static const struct block blocks[] = {
    {"text", {{"text", TEXT, true}}},
    {"image", {{"data", BASE64, true}, {"mimeType", MIME, true}}},
    {"audio", {{"data", BASE64, true}, {"mimeType", MIME, true}}},
    {"resource_link",
     {{"uri", URI, true},
      {"name", TEXT, true},
      {"title", TEXT, false},
      {"description", TEXT, false},
      {"mimeType", MIME, false},
      {"size", SIZE, false}}},
    {"resource", {{"resource", OBJECT, true}}},
};
static const struct member resource[] = {
    {"uri", URI, true}, {"mimeType", MIME, false}, {"text", TEXT, false}, {"blob", BASE64, false}, {0}};
static const struct member annotations[] = {
    {"audience", AUDIENCE, false}, {"priority", PRIORITY, false}, {"lastModified", TEXT, false}, {0}};
static const struct member common[] = {{"annotations", OBJECT, false}, {"_meta", OBJECT, false}, {0}};

static const char *const expected_form[] = {
    [TEXT] = "a string",
    [BASE64] = "base64 (A-Z a-z 0-9 + /, padded with =)",
    [LOOSE] = "base64",
    [MIME] = "a MIME type (\"image/png\")",
    [URI] = "a URI (\"file:///report.pdf\")",
    [SIZE] = "a whole number of bytes",
    [OBJECT] = "a table with names",
    [AUDIENCE] = "a list of \"user\" and \"assistant\"",
    [PRIORITY] = "a number from 0 to 1",
};

/* A letter, a digit, or one of the others. */
static bool is_one_of(char c, const char *others)
{
    return ((c | 32) >= 'a' && (c | 32) <= 'z') || ascii_is_digit(c) || (c && strchr(others, c));
}

/* `loose`: as browsers decode it: white space is skipped, and padding is optional. */
static bool is_base64(struct str text, bool loose)
{
    size_t letters = 0, fill = 0;
    for (size_t i = 0; i < text.len; i++) {
        char ch = text.at[i];
        if (loose && (ch == ' ' || (ch >= '\t' && ch <= '\r')))
            continue;
        if (ch != '=' && (fill || !is_one_of(ch, "+/")))
            return false;
        fill += ch == '=';
        letters += ch != '=';
    }
    return fill <= 2 && ((letters + fill) % 4 == 0 || (loose && !fill && letters % 4 != 1));
}

/* type "/" subtype, and anything behind a ";". */
static bool is_mime(struct str text)
{
    size_t slashes = 0, part = 0, i = 0;
    for (; i < text.len && text.at[i] != ';'; i++) {
        bool slash = text.at[i] == '/';
        if (slash ? part == 0 : !is_one_of(text.at[i], "!#$&^_.+-"))
            return false;
        slashes += slash;
        part = slash ? 0 : part + 1;
    }
    return slashes == 1 && part > 0;
}

static bool is_uri(struct str text)
{
    size_t scheme = 0;
    while (scheme < text.len && is_one_of(text.at[scheme], "+-."))
        scheme++;
    bool begins = scheme > 0 && scheme + 1 < text.len && text.at[scheme] == ':';
    for (size_t i = 0; begins && i < text.len; i++)
        begins = (unsigned char)text.at[i] > ' ';
    return begins;
}

static bool is_audience(const struct json *value)
{
    for (uint32_t i = 0; value->type == JSON_ARRAY && i < value->len; i++) {
        struct str who = json_str(&value->items[i]);
        if (!str_is(who, "user") && !str_is(who, "assistant"))
            return false;
    }
    return value->type == JSON_ARRAY;
}

static bool has_form(const struct json *value, enum form form)
{
    int64_t n;
    double d;
    bool is_text = value->type == JSON_STRING;
    switch (form) {
    case TEXT:
        return is_text;
    case BASE64:
        return is_text && is_base64(json_str(value), false);
    case LOOSE:
        return is_text && is_base64(json_str(value), true);
    case MIME:
        return is_text && is_mime(json_str(value));
    case URI:
        return is_text && is_uri(json_str(value));
    case SIZE:
        return json_int(value, &n) && n >= 0;
    case OBJECT:
        return value->type == JSON_OBJECT;
    case AUDIENCE:
        return is_audience(value);
    case PRIORITY:
        return json_double(value, &d) && d >= 0 && d <= 1;
    }
    return false;
}

struct check {
    struct arena *arena;
    struct str place; /* "content[2]", "content[2].resource" */
    struct str fault;
    bool lenient; /* as official clients check it; without error texts */
};

static bool mismatch(struct check *c, const char *name, const char *expected, const struct json *got)
{
    if (c->lenient)
        return false;
    struct buf text = buf_in(c->arena);
    if (got)
        json_write(&text, got);
    struct str cut = str_cut(buf_view(&text), GOT_MAX_BYTES);
    c->fault = arena_printf(c->arena, STR_FMT "%s%s: expected %s, got " STR_FMT "%s", STR_ARG(c->place),
                            name ? "." : "", name ? name : "", expected,
                            STR_ARG(got ? cut : STR_LIT("nothing")), cut.len < text.len ? "…" : "");
    return false;
}

static bool check_members(struct check *c, const struct json *object, const struct member *members)
{
    for (; members->name; members++) {
        const struct json *value = json_get_text(object, members->name);
        enum form form = members->form;
        if (c->lenient) /* official clients only check that these are strings */
            form = form == MIME || form == URI ? TEXT : form == BASE64 ? LOOSE : form;
        if (value ? !has_form(value, form) : members->required)
            return mismatch(c, members->name, expected_form[members->form], value);
    }
    return true;
}

static bool check_inner(struct check *c, const struct json *block, const char *name,
                        const struct member *members)
{
    const struct json *inner = json_get_text(block, name);
    struct str outer = c->place;
    if (!inner)
        return true;
    if (!c->lenient)
        c->place = arena_printf(c->arena, STR_FMT ".%s", STR_ARG(outer), name);
    bool is_right = check_members(c, inner, members);
    c->place = is_right ? outer : c->place;
    return is_right;
}

static const struct block *block_of(const struct json *block)
{
    struct str type = json_str(json_get_text(block, "type"));
    for (size_t i = 0; i < sizeof(blocks) / sizeof(*blocks); i++)
        if (str_is(type, blocks[i].type))
            return &blocks[i];
    return NULL;
}

static bool check_block(struct check *c, const struct json *block)
{
    const struct block *known = block_of(block);
    if (block->type != JSON_OBJECT)
        return mismatch(c, NULL, "a block like { type = \"text\", text = \"…\" }", block);
    if (!known)
        return mismatch(c, "type", "one of text, image, audio, resource_link, resource",
                        json_get_text(block, "type"));
    if (!check_members(c, block, known->members) || !check_members(c, block, common) ||
        !check_inner(c, block, "annotations", annotations))
        return false;
    if (!str_is(str_of(known->type), "resource"))
        return true;
    /* Either text or blob; clients accept both together. */
    const struct json *inner = json_get_text(block, "resource");
    bool text = json_get_text(inner, "text"), blob = json_get_text(inner, "blob");
    return check_inner(c, block, "resource", resource) &&
           (text != blob || (c->lenient && text) ||
            mismatch(c, "resource", "either 'text' or 'blob' in it", inner));
}

struct str content_error(struct arena *arena, const struct json *content)
{
    struct check c = {.arena = arena, .place = STR_LIT("content")};
    if (!json_is(content, JSON_ARRAY)) {
        mismatch(&c, NULL, "a list of blocks like { type = \"text\", text = \"…\" }", content);
        return c.fault;
    }
    for (uint32_t i = 0; i < content->len; i++) {
        c.place = arena_printf(arena, "content[%u]", i + 1);
        if (!check_block(&c, &content->items[i]))
            return c.fault;
    }
    return STR_NONE;
}

bool content_block_is_valid(const struct json *block)
{
    struct check c = {.lenient = true};
    return check_block(&c, block);
}

bool content_is_block_list(const struct json *value)
{
    for (uint32_t i = 0; json_is(value, JSON_ARRAY) && i < value->len; i++)
        if (!json_is(&value->items[i], JSON_OBJECT) || !block_of(&value->items[i]))
            return false;
    return json_is(value, JSON_ARRAY) && value->len > 0;
}
