/* What the answer says of itself, then the parameter of the tool that asks for the rest. */
#include "result/partial_result.h"

#include "base/arena.h"
#include "json/build.h"
#include "json/spelled.h"

#define NUMBER_MAX 1000000000

#define IS_ONE_OF(text, words) RESULT_NAME_IS(text, "_-", words)

/* Without case, "_" and "-": "hasMore" is "has_more". */
static bool is_same_name(struct str key, const char *name)
{
    return result_name_index(key, "_-", &name, 1) == 0;
}

/* What an answer says about the rest. */
struct rest {
    struct arena *arena;
    const struct json *input, *args; /* the tool's input schema, the call's arguments; NULL: none */
    const char *code;
    struct str cursor;       /* for the next page; empty: none */
    int64_t page, offset;    /* of the next page; -1: not said */
    int64_t from, to, total; /* "1-20 of 53"; -1: not said. `from` is 1 for "20 of 53" */
    int64_t items;           /* in its list; -1: none, or several lists */
    bool is_page;            /* `to` and `total` count pages */
    bool complete;           /* {"has_more": false} */
};

static const char *const more_names[] = {"hasmore",       "hasnext",        "hasnextpage",
                                         "moreavailable", "hasmoreresults", "moreresults"};
static const char *const cursor_names[] = {"nextcursor",     "nextpagetoken",     "nexttoken",
                                           "nextpagecursor", "continuationtoken", "nextmarker",
                                           "endcursor"};
static const char *const cut_names[] = {"truncated", "istruncated", "resultstruncated", "wastruncated"};

/* ---- in JSON ---- */

static void read_member(struct rest *rest, const struct json_member *member)
{
    const struct json *value = &member->value;
    int64_t n;
    switch (value->type) {
    case JSON_BOOL:
        if (IS_ONE_OF(member->key, more_names)) {
            rest->complete = !value->truth;
            rest->code = value->truth ? "has_more" : rest->code;
        } else if (value->truth && IS_ONE_OF(member->key, cut_names)) {
            rest->code = rest->code ? rest->code : "truncated";
        }
        return;
    case JSON_STRING:
        if (value->len && IS_ONE_OF(member->key, cursor_names)) {
            rest->cursor = json_str(value);
            /* GraphQL names the end of every page */
            if (!rest->code && !is_same_name(member->key, "endcursor"))
                rest->code = "next_cursor";
        }
        return;
    case JSON_NUMBER:
        if (!json_int(value, &n) || n <= 0 || n > NUMBER_MAX)
            return;
        if (is_same_name(member->key, "nextpage"))
            rest->page = n;
        else if (is_same_name(member->key, "nextoffset"))
            rest->offset = n;
        else
            return;
        rest->code = rest->code ? rest->code : "next_page";
        return;
    case JSON_ARRAY:
        rest->items = rest->items == -1 ? (int64_t)value->len : -2;
        return;
    default:
        return;
    }
}

static void read_object(struct rest *rest, const struct json *object)
{
    for (uint32_t i = 0; i < object->len && i < PARTIAL_MEMBERS_MAX; i++)
        read_member(rest, &object->members[i]);
}

/* ---- in text ---- */

/* "1,250" is 1250. */
static bool read_number(struct str text, size_t *at, int64_t *n)
{
    size_t i = *at;
    *n = 0;
    for (; i < text.len && (ascii_is_digit(text.at[i]) || (text.at[i] == ',' && i > *at && i + 1 < text.len &&
                                                           ascii_is_digit(text.at[i + 1])));
         i++)
        if (text.at[i] != ',' && (*n = *n * 10 + (text.at[i] - '0')) > NUMBER_MAX)
            return false;
    bool found = i > *at;
    *at = i;
    return found;
}

/* The number that ends before *end, which moves to where it begins. */
static bool read_number_before(struct str text, size_t *end, int64_t *n)
{
    size_t begin = *end;
    while (begin && (ascii_is_digit(text.at[begin - 1]) || (text.at[begin - 1] == ',' && begin < *end &&
                                                            begin > 1 && ascii_is_digit(text.at[begin - 2]))))
        begin--;
    size_t at = begin;
    bool found = begin < *end && read_number(text, &at, n);
    *end = begin;
    return found;
}

/* The word that ends before `end`, behind blanks and ":"; moves *end before it. */
static struct str word_before(struct str text, size_t *end)
{
    size_t to = *end;
    while (to && (text.at[to - 1] == ' ' || text.at[to - 1] == ':' || text.at[to - 1] == '#'))
        to--;
    size_t from = to;
    while (from && ascii_is_letter(text.at[from - 1]))
        from--;
    *end = from;
    return (struct str){text.at + from, to - from};
}

static struct str word_at(struct str text, size_t at)
{
    size_t from = str_span(text, at, " "), to = from;
    while (to < text.len && ascii_is_letter(text.at[to]))
        to++;
    return (struct str){text.at + from, to - from};
}

static const char *const things[] = {"results", "items",   "records",   "rows",    "entries", "matches",
                                     "lines",   "files",   "documents", "issues",  "events",  "messages",
                                     "commits", "orders",  "products",  "users",   "hits",    "total",
                                     "emails",  "objects", "contacts",  "tickets", "posts",   "comments"};

/* The numbers stand where an answer tells how much of it is shown: behind "Showing", before "results", or
 * alone on their line. */
static bool is_told(struct str text, size_t begin, size_t end, bool *is_page)
{
    static const char *const shows[] = {"showing",   "displaying", "shown",    "returned",
                                        "returning", "listing",    "displayed"};
    static const char *const links[] = {"first", "last",    "top",  "only",    "page",  "results",
                                        "items", "records", "rows", "entries", "lines", "matches"};
    bool starts =
        !begin || text.at[begin - 1] == '\n' || text.at[begin - 1] == '(' || text.at[begin - 1] == '[';
    size_t after = str_span(text, end, " ");
    bool ends = after == text.len || strchr("\n.)]", text.at[after]);
    size_t at = begin;
    struct str word = word_before(text, &at);
    *is_page = is_same_name(word, "page");
    for (int i = 0; i < 2 && IS_ONE_OF(word, links); i++)
        word = word_before(text, &at);
    if (IS_ONE_OF(word, shows) || IS_ONE_OF(word_at(text, end), things))
        return true;
    bool line_starts = !at || text.at[at - 1] == '\n' || text.at[at - 1] == '(' || text.at[at - 1] == '[';
    return ends && (starts || (*is_page && line_starts));
}

/* `of`: the place of " of ". Reads "20 of 53" or "1-20 of 53" around it. */
static bool read_n_of_m(struct rest *rest, struct str text, size_t of)
{
    int64_t from = 1, to, total;
    size_t begin = of, end = str_span(text, of + 4, " ");
    struct str about = word_at(text, end);
    bool is_page;
    if (!read_number_before(text, &begin, &to))
        return false;
    if (is_same_name(about, "about") || is_same_name(about, "approximately"))
        end = str_span(text, end + about.len, " ");
    if (!read_number(text, &end, &total) || (end < text.len && (text.at[end] == '.' || text.at[end] == '/') &&
                                             end + 1 < text.len && ascii_is_digit(text.at[end + 1])))
        return false;
    /* "1-20", "1 - 20", "1 to 20", "1–20" */
    size_t gap = begin;
    while (gap && text.at[gap - 1] == ' ')
        gap--;
    size_t dash = gap && text.at[gap - 1] == '-'                                       ? 1
                  : gap > 2 && memcmp(text.at + gap - 3, "\xe2\x80\x93", 3) == 0       ? 3
                  : gap > 2 && gap < begin && memcmp(text.at + gap - 3, " to", 3) == 0 ? 2
                                                                                       : 0;
    if (dash) {
        gap -= dash;
        while (gap && text.at[gap - 1] == ' ')
            gap--;
        begin = gap;
        if (!read_number_before(text, &begin, &from))
            return false;
    }
    if (to >= total || from > to || to < 1 || !is_told(text, begin, end, &is_page))
        return false;
    rest->code = "n_of_m";
    rest->cursor = STR_NONE;
    rest->page = rest->offset = -1;
    rest->from = from;
    rest->to = to;
    rest->total = total;
    rest->items = dash || is_page ? -1 : to;
    rest->is_page = is_page;
    rest->complete = false;
    return true;
}

static bool read_text(struct rest *rest, struct str text)
{
    for (size_t i = 0; i + 4 < text.len; i++) {
        const char *found = memchr(text.at + i, 'o', text.len - i - 1);
        if (!found)
            return false;
        i = (size_t)(found - text.at);
        if (i && text.at[i - 1] == ' ' && text.at[i + 1] == 'f' && i + 2 < text.len &&
            text.at[i + 2] == ' ' && read_n_of_m(rest, text, i - 1))
            return true;
    }
    return false;
}

/* The beginning and the end of a long text; not its inside, which is data. */
static bool read_ends(struct rest *rest, struct str text)
{
    text = str_trim(text);
    return read_text(rest, str_cut(text, PARTIAL_SCAN_BYTES)) ||
           (text.len > PARTIAL_SCAN_BYTES && read_text(rest, str_from(text, text.len - PARTIAL_SCAN_BYTES)));
}

/* ---- the arguments of the rest ---- */

/* The declared parameter that is named first in `names`, and its schema. */
static const struct json_member *parameter(const struct json *input, const char *const *names, size_t count)
{
    const struct json *properties = json_get_text(input, "properties");
    for (size_t k = 0; k < count; k++)
        for (uint32_t i = 0; json_is(properties, JSON_OBJECT) && i < properties->len; i++)
            if (is_same_name(properties->members[i].key, names[k]))
                return &properties->members[i];
    return NULL;
}
#define PARAMETER(input, names) parameter(input, names, RESULT_COUNT(names))

/* The argument of this call, else the schema's default, else `otherwise`. */
static int64_t argument(const struct json *args, const struct json_member *parameter, int64_t otherwise)
{
    int64_t n;
    if (json_int(json_get(args, parameter->key), &n) ||
        json_int(json_get_text(&parameter->value, "default"), &n))
        return n >= 0 && n <= NUMBER_MAX ? n : otherwise;
    return otherwise;
}

static const struct json *change(const struct rest *rest, const struct json_member *parameter,
                                 struct json value)
{
    struct json_member member = json_member(parameter->key, value);
    return json_keep(rest->arena, json_object(rest->arena, &member, 1));
}

static const struct json *next_offset(const struct rest *rest)
{
    static const char *const names[] = {"offset", "skip", "startindex", "start", "from", "startline"};
    const struct json_member *p = PARAMETER(rest->input, names);
    int64_t least, next = rest->offset;
    if (!p || str_is(json_str(json_get_text(&p->value, "type")), "string"))
        return NULL;
    bool from_one = json_int(json_get_text(&p->value, "minimum"), &least) && least == 1;
    if (next < 0 && rest->total > 0 && rest->items < 0 && !rest->is_page)
        next = rest->to + from_one;
    else if (next < 0 && rest->items > 0)
        next = argument(rest->args, p, from_one) + rest->items;
    return next > 0 ? change(rest, p, json_integer(rest->arena, next)) : NULL;
}

static const char *const page_parameters[] = {"page", "pagenumber", "pagenum", "pageno", "pageindex"};

static const struct json *next_page(const struct rest *rest)
{
    const struct json_member *p = PARAMETER(rest->input, page_parameters);
    int64_t least;
    if (!p || str_is(json_str(json_get_text(&p->value, "type")), "string"))
        return NULL;
    bool from_zero = json_int(json_get_text(&p->value, "minimum"), &least) && least == 0;
    int64_t next = rest->page > 0  ? rest->page
                   : rest->is_page ? rest->to + 1
                                   : argument(rest->args, p, !from_zero) + 1;
    return change(rest, p, json_integer(rest->arena, next));
}

/* More in one answer, as far as the schema allows. */
static const struct json *higher_limit(const struct rest *rest)
{
    static const char *const names[] = {"limit",    "maxresults", "pagesize", "perpage",  "numresults",
                                        "maxitems", "count",      "top",      "headlimit"};
    const struct json_member *p = PARAMETER(rest->input, names);
    int64_t most, next = rest->total;
    if (!p || next <= 0 || rest->is_page || rest->from > 1)
        return NULL;
    if (json_int(json_get_text(&p->value, "maximum"), &most) && most < next)
        next = most;
    return next > rest->to ? change(rest, p, json_integer(rest->arena, next)) : NULL;
}

static const struct json *next_arguments(const struct rest *rest)
{
    static const char *const cursors[] = {"cursor",     "nextcursor",  "pagetoken", "nextpagetoken",
                                          "nexttoken",  "startcursor", "after",     "continuationtoken",
                                          "pagecursor", "marker",      "token"};
    const struct json_member *p = PARAMETER(rest->input, cursors);
    const struct json *next = NULL;
    if (rest->cursor.len && p && rest->cursor.len <= PARTIAL_CURSOR_BYTES)
        return change(rest, p, json_string(rest->cursor));
    if (p && !rest->cursor.len && rest->code && strcmp(rest->code, "has_more") == 0 &&
        json_get(rest->args, p->key))
        return NULL; /* it goes on by a cursor that the answer does not name */
    if (rest->page > 0 || rest->is_page)
        next = next_page(rest);
    if (!next)
        next = next_offset(rest);
    if (!next)
        next = next_page(rest);
    return next ? next : higher_limit(rest);
}

/* ---- the whole ---- */

struct str partial_result_cut(struct arena *arena, const struct result *result)
{
    struct str text = str_trim(result->error_text);
    struct json value;
    struct json_cut cut;
    if (!result->as_text || !text.len || !strchr("{[", text.at[0]) ||
        json_read_spelled(arena, text, &value, &cut) != JSON_CUT_OFF)
        return STR_NONE;
    return arena_printf(arena, "the answer was cut off after %zu bytes%s" STR_FMT, text.len,
                        cut.path.len ? " inside " : "", STR_ARG(cut.path));
}

/* What a command itself has cut, `cat orders.json | head -5`, is what was asked for. */
static bool is_cut_by_command(const struct json *args)
{
    static const char *const names[] = {"command", "cmd", "script", "code"};
    static const char *const cutters[] = {"head", "tail", "sed",  "cut",  "awk",
                                          "dd",   "grep", "less", "more", "rg"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        const struct json *command = json_get_text(args, names[i]);
        struct str text = json_is(command, JSON_ARRAY) && command->len
                              ? json_str(&command->items[command->len - 1])
                              : json_str(command);
        for (size_t k = 0; k < sizeof(cutters) / sizeof(*cutters); k++)
            if (str_contains_word(text, str_of(cutters[k])))
                return true;
    }
    return false;
}

static bool may_be_cut_off(const struct result *result, const struct json *args)
{
    struct str text = str_trim(result->error_text);
    size_t least = text.len && text.at[0] == '{' ? PARTIAL_CUT_OBJECT_BYTES : PARTIAL_CUT_LIST_BYTES;
    return result->as_text && text.len >= least && !is_cut_by_command(args);
}

struct partial_result partial_result_detect(struct arena *arena, const struct result *result,
                                            const struct json *input, const struct json *args)
{
    struct partial_result partial = {NULL};
    struct rest rest = {.arena = arena, .input = input, .args = args};
    rest.page = rest.offset = rest.from = rest.to = rest.total = rest.items = -1;
    if (may_be_cut_off(result, args) && (partial.detail = partial_result_cut(arena, result)).len) {
        partial.code = "truncated_response";
        return partial;
    }
    if (result->as_text || json_is(result->value, JSON_STRING)) {
        read_ends(&rest, result->as_text ? result->error_text : json_str(result->value));
    } else if (json_is(result->value, JSON_OBJECT)) {
        /* {"data": […], "pagination": {"has_more": true}}, {"message": "Showing 10 of 250 results"} */
        static const char *const inner[] = {"pagination", "pageinfo", "paging",           "meta",
                                            "metadata",   "result",   "responsemetadata", "data"};
        read_object(&rest, result->value);
        static const char *const names[] = {"message", "summary", "note", "info", "showing", "msg"};
        for (uint32_t i = 0; i < result->value->len && i < PARTIAL_MEMBERS_MAX; i++) {
            const struct json_member *member = &result->value->members[i];
            if (member->value.type == JSON_OBJECT && IS_ONE_OF(member->key, inner))
                read_object(&rest, &member->value);
        }
        for (uint32_t i = 0; i < result->value->len && i < PARTIAL_MEMBERS_MAX && !rest.code; i++) {
            const struct json_member *member = &result->value->members[i];
            if (member->value.type == JSON_STRING && IS_ONE_OF(member->key, names))
                read_ends(&rest, json_str(&member->value));
        }
    }
    /* "Page 1 of 12" is the foot of a document, unless the tool has pages. */
    if (!rest.code || rest.complete || (rest.is_page && !PARAMETER(input, page_parameters)))
        return partial;
    partial.code = rest.code;
    if (rest.total <= 0)
        partial.detail = strcmp(rest.code, "truncated") == 0
                             ? STR_LIT("the answer says that it was truncated")
                             : STR_LIT("the answer says that more follows");
    else if (rest.from > 1 || (rest.items < 0 && !rest.is_page))
        partial.detail = arena_printf(arena, "the answer shows %lld-%lld of %lld", (long long)rest.from,
                                      (long long)rest.to, (long long)rest.total);
    else
        partial.detail = arena_printf(arena, "the answer shows %s%lld of %lld", rest.is_page ? "page " : "",
                                      (long long)rest.to, (long long)rest.total);
    partial.next = next_arguments(&rest);
    return partial;
}
