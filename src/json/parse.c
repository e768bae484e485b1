/*
 * yajl calls back once a token; the callbacks push values on one stack. An open
 * container has a slot on it with its children above; when it closes they are
 * copied into the arena and it becomes a value. Until then its `len` is the
 * index of the enclosing container. A soft error removes the raw bytes of every
 * container around it, as those no longer match the value.
 */
#include "json/parse.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "json/build.h"
#include "json/string.h"

#include <stdarg.h>
#include <stdint.h>
#include <yajl/yajl_parse.h>

#define STACK_FIRST    48u        /* values on the C stack before the heap is asked */
#define NO_CONTAINER   UINT32_MAX /* the container of the root */
#define PATH_MAX_BYTES 120u       /* of the path to a duplicate key; its end is kept */

/* ---- messages: what was expected, what was found, and the fix ---- */

#define QUOTE_BYTES     48
#define FOUND_MAX_BYTES 16u /* of the text, quoted in a message */

/* Keeps the first hard error, or else the first soft one. */
static __attribute__((format(printf, 4, 5))) void
set_error(struct json_error *error, enum json_error_code code, size_t offset, const char *format, ...)
{
    bool soft = code == JSON_ERROR_DUPLICATE_KEY || code == JSON_ERROR_SURROGATE;
    if (error->code != JSON_ERROR_NONE && (soft || !error->soft))
        return;
    *error = (struct json_error){.code = code, .soft = soft, .offset = offset};
    va_list args;
    va_start(args, format);
    vsnprintf(error->text, sizeof(error->text), format, args);
    va_end(args);
    size_t len = strlen(error->text); /* truncated: remove half a character */
    if (len == sizeof(error->text) - 1)
        error->text[str_cut((struct str){error->text, len}, len - 1).len] = '\0';
    for (char *c = error->text; *c; c++) /* a key may contain control characters */
        *c = (unsigned char)*c < 0x20 || *c == 0x7f ? '?' : *c;
}

/* The index of the first byte from `at` on that is not white space. */
static size_t skip_space(struct str text, size_t at)
{
    return str_span(text, at, " \t\r\n");
}

enum error_place {
    AT_CONSUMED,     /* the byte that yajl rejects */
    BEFORE_CONSUMED, /* the byte before */
    NEXT,            /* the token after the last valid one */
    AFTER_SEPARATOR  /* the same, after a valid ',' or ':' */
};

/* The first row whose `yajl` is part of yajl's message. */
static const struct {
    const char *yajl;
    enum error_place place;
    const char *expected, *fix;
} messages[] = {
    {"unallowed token", AFTER_SEPARATOR, "a value", "put one there, or remove the separator before it"},
    {"invalid object key", AFTER_SEPARATOR, "a key in double quotes",
     "quote the key, and leave no comma before '}'"},
    {"must be separated by a colon", NEXT, "':' after the key", "put a colon between key and value"},
    {"inside map", NEXT, "',' or '}' after a member", "add the comma, or close the object"},
    {"after array element", NEXT, "',' or ']' after an item", "add the comma, or close the array"},
    {"premature EOF", NEXT, "the rest of the value", "close every string and bracket that was opened"},
    {"invalid char in json text", BEFORE_CONSUMED, "a JSON value",
     "strings and keys stand in double quotes; true, false and null are lower case"},
    {"invalid string in json text", AT_CONSUMED, "the rest of true, false or null",
     "spell it out in lower case, or put a string in double quotes"},
    {"occurs before a character", AT_CONSUMED, "one of \" \\ / b f n r t u after the backslash",
     "write \\\\ for a backslash itself"},
    {"invalid character inside string", AT_CONSUMED, "no raw control character in a string",
     "escape it: \\n for a newline, \\t for a tab, \\u00XX for any other"},
    {"non-hex", AT_CONSUMED, "four hex digits after \\u", "pad the code with zeros, as in \\u00e9"},
    {"after the exponent", AT_CONSUMED, "a digit in the exponent", "write a number as in 1.5e10"},
    {"after the decimal point", AT_CONSUMED, "a digit after the decimal point",
     "write 1.0 or 1 instead of 1."},
    {"after the minus sign", AT_CONSUMED, "a digit after the minus sign", "JSON has no -Infinity and no -.5"},
    {"probable comment", AT_CONSUMED, "a JSON value", "JSON has no comments: remove this one"},
    {"", AT_CONSUMED, "a JSON value", "send one JSON value"},
};

static size_t place_of(enum error_place place, struct str text, size_t consumed, size_t last_end)
{
    size_t next = skip_space(text, last_end);
    char last = last_end ? text.at[last_end - 1] : '[';
    bool opened = last == '[' || last == '{';
    switch (place) {
    case AT_CONSUMED:
        return consumed;
    case BEFORE_CONSUMED:
        return consumed ? consumed - 1 : 0;
    case NEXT:
        return next;
    case AFTER_SEPARATOR:
        break;
    }
    return opened || next == text.len ? next : skip_space(text, next + 1);
}

/* What is at `at`, for "found …": a word or one character in quotes, a control byte by its code, or the end.
 * Never a control character, which could forge a line in a log. */
static void quote(char out[QUOTE_BYTES], struct str text, size_t at)
{
    size_t len = 0;
    while (at + len < text.len && len < FOUND_MAX_BYTES &&
           (ascii_is_alnum(text.at[at + len]) || text.at[at + len] == '_' || text.at[at + len] == '.'))
        len++;
    if (!len && at < text.len)
        len = str_utf8_length(text.at + at, text.at + text.len);
    if (at >= text.len)
        snprintf(out, QUOTE_BYTES, "the end of the text");
    else if (str_starts(str_from(text, at), "\xEF\xBB\xBF"))
        snprintf(out, QUOTE_BYTES, "a byte order mark");
    else if (!len || (unsigned char)text.at[at] < 0x20 || text.at[at] == 0x7F)
        snprintf(out, QUOTE_BYTES, "byte 0x%02x", (unsigned char)text.at[at]);
    else
        snprintf(out, QUOTE_BYTES, "'%.*s'", (int)len, text.at + at);
}

/* Translates yajl's message. `consumed`: bytes that yajl read; `last_end`: the end of the last valid token;
 * `at_end`: yajl failed only at the end of the text; `open`: brackets that are still open. */
static void set_syntax_error(struct json_error *error, struct str text, const char *yajl_message,
                             size_t consumed, size_t last_end, bool at_end, uint32_t open)
{
    char found[QUOTE_BYTES], depth[48] = "";
    size_t row = 0;
    while (!strstr(yajl_message, messages[row].yajl))
        row++;
    size_t offset = at_end ? text.len : place_of(messages[row].place, text, consumed, last_end);
    if (offset > text.len)
        offset = text.len;
    quote(found, text, offset);
    if (offset == text.len && open)
        snprintf(depth, sizeof(depth), " (%u bracket%s still open)", open, open == 1 ? "" : "s");
    set_error(error, JSON_ERROR_SYNTAX, offset, "byte %zu: expected %s, found %s%s — %s", offset,
              messages[row].expected, found, depth, messages[row].fix);
}

/* ---- the parser ---- */

struct parser {
    struct arena *arena;
    struct str text;
    struct json_limits limits;
    struct json_error *error;
    yajl_handle yajl;
    size_t last_end; /* where the previous token ended */
    uint32_t depth, nodes;
    uint32_t container; /* index of the innermost open one */
    bool surrogates;    /* the text has a lone one */
    uint32_t in_object; /* 1: it is an object, whose values go to the slots of their keys */
    uint32_t count, room;
    struct json_member *stack, *first; /* first: on the C stack, used until it is full */
};

/* ---- the stack ---- */

static void stack_grow(struct parser *p)
{
    size_t bytes = p->room * sizeof(*p->stack);
    bool outgrown = p->stack == p->first;
    struct json_member *more = realloc(outgrown ? NULL : p->stack, bytes * 2);
    if (!more)
        alloc_failed("%zu bytes needed to parse", bytes * 2);
    if (outgrown && p->first)
        memcpy(more, p->first, bytes);
    p->stack = more;
    p->room *= 2;
}

static inline struct json_member *push(struct parser *p)
{
    if (p->count == p->room)
        stack_grow(p);
    return &p->stack[p->count++];
}

static __attribute__((cold, noinline)) struct json_member *too_many(struct parser *p)
{
    size_t at = p->last_end;
    set_error(p->error, JSON_ERROR_NODES, at, "byte %zu: more than %u values in one message — send fewer", at,
              p->limits.nodes);
    return NULL;
}
/* The slot for the next value: that of its key, or a new one; computed, as a branch would often be
 * mispredicted. NULL: over a limit. */
static inline struct json_member *next_slot(struct parser *p)
{
    if (++p->nodes > p->limits.nodes)
        return too_many(p);
    if (p->count == p->room)
        stack_grow(p);
    uint32_t at = p->count - p->in_object;
    p->count = at + 1;
    return &p->stack[at];
}

/* The containers around a value that differs from what was sent lose their raw bytes; until they close,
 * `truth` marks them. */
static void mark_changed(struct parser *p)
{
    for (uint32_t at = p->container; at != NO_CONTAINER && !p->stack[at].value.truth;
         at = p->stack[at].value.len)
        p->stack[at].value.truth = true;
}

/* ---- positions of tokens ---- */

static size_t consumed(const struct parser *p)
{
    return yajl_get_bytes_consumed(p->yajl);
}

/* The start of the token after the previous one: skips white space, ',' and ':'. */
static size_t token_start(const struct parser *p)
{
    return str_span(p->text, p->last_end, " \t\r\n,:");
}

static bool points_into_text(const struct parser *p, const void *bytes)
{
    uintptr_t at = (uintptr_t)bytes, start = (uintptr_t)p->text.at;
    return at >= start && at < start + p->text.len;
}

/* Field by field: copying a struct from the stack would stall on its just-written parts. */
static inline struct json *fill(struct parser *p, struct json *v, enum json_type type, size_t start,
                                size_t end)
{
    v->type = (uint8_t)type;
    v->truth = v->integral = false;
    v->len = 0;
    v->raw_len = (uint32_t)(end - start);
    v->text = NULL;
    v->raw = p->text.at + start;
    p->last_end = end;
    return v;
}

/* ---- callbacks: 1 continues, 0 stops ---- */

static int on_literal(struct parser *p, enum json_type type, bool truth, size_t len)
{
    struct json_member *m = next_slot(p);
    if (!m)
        return 0;
    size_t end = consumed(p);
    fill(p, &m->value, type, end - len, end)->truth = truth;
    return 1;
}

static int on_null(void *ctx)
{
    return on_literal(ctx, JSON_NULL, false, 4);
}

static int on_boolean(void *ctx, int truth)
{
    return on_literal(ctx, JSON_BOOL, truth, truth ? 4 : 5);
}

/* yajl passes a number at the end of the text from its own buffer. */
static int on_number(void *ctx, const char *bytes, size_t len)
{
    struct parser *p = ctx;
    struct json_member *m = next_slot(p);
    if (!m)
        return 0;
    size_t start = points_into_text(p, bytes) ? (size_t)(bytes - p->text.at) : token_start(p);
    struct json *v = fill(p, &m->value, JSON_NUMBER, start, start + len);
    v->text = v->raw;
    v->len = v->raw_len;
    size_t i = 0;
    bool is_whole = true;
    while (i < len && v->text[i] != '.' && (v->text[i] | 0x20) != 'e')
        i++;
    if (i < len && v->text[i] == '.')
        for (i++; i < len && (v->text[i] | 0x20) != 'e'; i++)
            is_whole &= v->text[i] == '0';
    v->integral = i == len ? is_whole : json_literal((struct str){v->text, len}).integral;
    return 1;
}

/* yajl passes a string with escapes from its own buffer, which is valid during the callback only. It decodes
 * lone surrogates wrongly, so a text with any is decoded here. *start: of the opening quote. */
static struct str escaped_token(struct parser *p, struct str decoded, size_t *start, bool *lone)
{
    *start = token_start(p);
    *lone = false;
    p->last_end = consumed(p);
    struct str literal = {p->text.at + *start + 1, p->last_end - *start - 2};
    char *copy = arena_alloc(p->arena, literal.len);
    if (!p->surrogates) {
        memcpy(copy, decoded.at, decoded.len);
        return (struct str){copy, decoded.len};
    }
    size_t len = json_string_decode(copy, literal, lone);
    if (*lone)
        mark_changed(p);
    return (struct str){copy, len};
}

/* These two are rarer, and separate so that their stack frames cost the common case nothing. */
static __attribute__((noinline)) int on_escaped_string(struct parser *p, struct json *v, struct str decoded)
{
    size_t start;
    bool lone;
    struct str text = escaped_token(p, decoded, &start, &lone);
    fill(p, v, JSON_STRING, start, p->last_end);
    v->text = text.at;
    v->len = (uint32_t)text.len;
    if (lone)
        v->raw_len = 0;
    return 1;
}

static __attribute__((noinline)) int on_escaped_key(struct parser *p, struct json_member *m,
                                                    struct str decoded)
{
    size_t start;
    bool lone;
    m->key = escaped_token(p, decoded, &start, &lone);
    return 1;
}

static int on_string(void *ctx, const unsigned char *bytes, size_t len)
{
    struct parser *p = ctx;
    struct json_member *m = next_slot(p);
    if (!m)
        return 0;
    if (!points_into_text(p, bytes))
        return on_escaped_string(p, &m->value, (struct str){(const char *)bytes, len});
    size_t start = (size_t)((const char *)bytes - p->text.at) - 1;
    struct json *v = fill(p, &m->value, JSON_STRING, start, start + len + 2);
    v->text = (const char *)bytes;
    v->len = (uint32_t)len;
    return 1;
}

static int on_key(void *ctx, const unsigned char *bytes, size_t len)
{
    struct parser *p = ctx;
    struct json_member *m = push(p);
    if (!points_into_text(p, bytes))
        return on_escaped_key(p, m, (struct str){(const char *)bytes, len});
    m->key = (struct str){(const char *)bytes, len};
    p->last_end = (size_t)((const char *)bytes - p->text.at) + len + 1;
    return 1;
}

static int on_open(struct parser *p, enum json_type type)
{
    struct json_member *m = next_slot(p);
    if (!m)
        return 0;
    size_t end = consumed(p);
    fill(p, &m->value, type, end - 1, end);
    if (++p->depth > p->limits.depth) {
        set_error(p->error, JSON_ERROR_DEPTH, end - 1,
                  "byte %zu: nested deeper than %u levels — send it flatter", end - 1, p->limits.depth);
        return 0;
    }
    m->value.len = p->container;
    p->container = (uint32_t)(m - p->stack);
    p->in_object = type == JSON_OBJECT;
    return 1;
}

static int on_open_object(void *ctx)
{
    return on_open(ctx, JSON_OBJECT);
}

static int on_open_array(void *ctx)
{
    return on_open(ctx, JSON_ARRAY);
}

/* Turns the innermost open container into a value. `row`: its items or members. */
static void close_container(struct parser *p, const void *row, uint32_t count)
{
    struct json *v = &p->stack[p->container].value;
    size_t end = consumed(p);
    bool changed = v->truth;
    p->last_end = end;
    p->count = p->container + 1;
    p->container = v->len;
    p->in_object = p->container != NO_CONTAINER && p->stack[p->container].value.type == JSON_OBJECT;
    p->depth--;
    v->truth = false;
    v->len = count;
    v->raw_len = changed ? 0 : (uint32_t)(end - (size_t)(v->raw - p->text.at));
    v->items = row;
}

static int on_close_array(void *ctx)
{
    struct parser *p = ctx;
    struct json_member *open = &p->stack[p->container];
    uint32_t count = p->count - p->container - 1;
    struct json *items = arena_alloc(p->arena, count * sizeof(*items));
    for (uint32_t i = 0; i < count; i++)
        items[i] = open[1 + i].value;
    close_container(p, items, count);
    return 1;
}

/* The path of an open container, as in "params.arguments.items[2]"; of the root "". */
static struct str path_of(struct parser *p, uint32_t at)
{
    const struct json_member *m = &p->stack[at];
    if (m->value.len == NO_CONTAINER)
        return STR_NONE;
    uint32_t parent = m->value.len;
    struct str above = path_of(p, parent);
    if (p->stack[parent].value.type == JSON_ARRAY)
        return arena_printf(p->arena, STR_FMT "[%u]", STR_ARG(above), at - parent - 1);
    return arena_printf(p->arena, STR_FMT "%s" STR_FMT, STR_ARG(above), above.len ? "." : "",
                        STR_ARG(str_cut(m->key, PATH_MAX_BYTES)));
}

static void report_twice(struct parser *p, const struct json_member *open,
                         const struct json_member *duplicate)
{
    mark_changed(p);
    if (p->error->code != JSON_ERROR_NONE)
        return; /* many of them cost no more than one */
    bool known = points_into_text(p, duplicate->key.at);
    const char *at = known                  ? duplicate->key.at - 1
                     : duplicate->value.raw ? duplicate->value.raw
                                            : open->value.raw;
    struct str whole = path_of(p, p->container), path = str_cut_front(whole, PATH_MAX_BYTES);
    set_error(p->error, JSON_ERROR_DUPLICATE_KEY, (size_t)(at - p->text.at),
              "duplicate key '" STR_FMT "' %s%s" STR_FMT " — send each key once",
              STR_ARG(str_cut(duplicate->key, 64)), path.len ? "in " : "at the top level",
              path.len < whole.len ? "…" : "", STR_ARG(path));
}

static int on_close_object(void *ctx)
{
    struct parser *p = ctx;
    struct json_member *open = &p->stack[p->container];
    uint32_t count = p->count - p->container - 1;
    const struct json_member *duplicate, *row = object_row(p->arena, open + 1, &count, &duplicate);
    if (duplicate)
        report_twice(p, open, duplicate);
    close_container(p, row, count);
    return 1;
}

static const yajl_callbacks callbacks = {
    .yajl_null = on_null,
    .yajl_boolean = on_boolean,
    .yajl_number = on_number,
    .yajl_string = on_string,
    .yajl_start_map = on_open_object,
    .yajl_map_key = on_key,
    .yajl_end_map = on_close_object,
    .yajl_start_array = on_open_array,
    .yajl_end_array = on_close_array,
};

/* ---- yajl's allocator: the arena, with each block's size before it for realloc ---- */

#define SIZE_PREFIX_BYTES 16u

static void *yajl_alloc_in_arena(void *ctx, size_t size)
{
    char *head = arena_alloc(ctx, size + SIZE_PREFIX_BYTES);
    memcpy(head, &size, sizeof(size));
    return head + SIZE_PREFIX_BYTES;
}

static void *yajl_realloc_in_arena(void *ctx, void *old, size_t size)
{
    void *block = yajl_alloc_in_arena(ctx, size);
    size_t had;
    if (old) {
        memcpy(&had, (char *)old - SIZE_PREFIX_BYTES, sizeof(had));
        memcpy(block, old, had < size ? had : size);
    }
    return block;
}

static void yajl_free_in_arena(void *ctx, void *block)
{
    (void)ctx, (void)block; /* freed with the arena */
}

/* ---- one text ---- */

static void check_strings(struct parser *p)
{
    size_t at = 0;
    switch (json_string_check(p->text, &at)) {
    case JSON_STRING_OK:
        break;
    case JSON_STRING_BAD_UTF8:
        set_error(p->error, JSON_ERROR_UTF8, at,
                  "byte %zu: expected UTF-8, found byte 0x%02x — encode the text as UTF-8", at,
                  (unsigned char)p->text.at[at]);
        break;
    case JSON_STRING_BAD_SPACE:
        set_error(p->error, JSON_ERROR_SYNTAX, at,
                  "byte %zu: expected no control character but tab and newline, found byte 0x%02x — remove "
                  "or escape it",
                  at, (unsigned char)p->text.at[at]);
        break;
    case JSON_STRING_LONE_SURROGATE:
        p->surrogates = true;
        set_error(p->error, JSON_ERROR_SURROGATE, at,
                  "byte %zu: lone surrogate '%.6s' — escape a character beyond U+FFFF as a pair like "
                  "\\ud83d\\ude00, "
                  "or send it as UTF-8",
                  at, p->text.at + at);
        break;
    }
}

static bool is_hard(const struct json_error *error)
{
    return error->code != JSON_ERROR_NONE && !error->soft;
}

/* yajl gets the whole text at once, so that no token is split. */
static void run_yajl(struct parser *p)
{
    const yajl_alloc_funcs memory = {yajl_alloc_in_arena, yajl_realloc_in_arena, yajl_free_in_arena,
                                     p->arena};
    p->yajl = yajl_alloc(&callbacks, (yajl_alloc_funcs *)&memory, p);
    yajl_config(p->yajl, yajl_dont_validate_strings, 1);  /* checked already, and more strictly */
    yajl_config(p->yajl, yajl_allow_trailing_garbage, 1); /* checked below: yajl misses {}"abc */
    yajl_status status = yajl_parse(p->yajl, (const unsigned char *)p->text.at, p->text.len);
    size_t got = consumed(p);
    bool at_end = status == yajl_status_ok;
    if (at_end && (p->count == 0 || p->container != NO_CONTAINER))
        status = yajl_complete_parse(p->yajl);
    if (status == yajl_status_ok || is_hard(p->error))
        return;
    const char *message =
        (const char *)yajl_get_error(p->yajl, 0, (const unsigned char *)p->text.at, p->text.len);
    set_syntax_error(p->error, p->text, message, got, p->last_end, at_end, p->depth);
}

static void parse_text(struct parser *p)
{
    if (p->text.len > UINT32_MAX) {
        set_error(p->error, JSON_ERROR_SIZE, 0, "a text of 4 GiB or more — send less");
        return;
    }
    if (skip_space(p->text, 0) == p->text.len) {
        set_error(p->error, JSON_ERROR_EMPTY, p->text.len, "expected a JSON value, found nothing — send one");
        return;
    }
    check_strings(p);
    if (!is_hard(p->error))
        run_yajl(p);
    size_t at = skip_space(p->text, p->last_end);
    char found[QUOTE_BYTES];
    if (is_hard(p->error) || at == p->text.len)
        return;
    quote(found, p->text, at);
    set_error(p->error, JSON_ERROR_TRAILING, at,
              "byte %zu: expected the end of the text, found %s after the value — send one value a message",
              at, found);
}

enum err json_parse(struct arena *arena, struct str text, const struct json_limits *limits, struct json *out,
                    struct json_error *error)
{
    struct json_member first[STACK_FIRST]
        __attribute__((uninitialized)); /* 3 KB, always written before read */
    struct json_error ignored __attribute__((uninitialized));
    error = error ? error : &ignored;
    struct parser p = {.arena = arena,
                       .text = text,
                       .limits = {.depth = limits && limits->depth ? limits->depth : JSON_MAX_DEPTH,
                                  .nodes = limits && limits->nodes ? limits->nodes : JSON_MAX_NODES},
                       .error = error,
                       .container = NO_CONTAINER,
                       .room = STACK_FIRST,
                       .stack = first,
                       .first = first};
    *out = (struct json){0};
    error->code = JSON_ERROR_NONE;
    error->soft = false;
    error->offset = 0;
    error->text[0] = '\0';
    parse_text(&p);
    if (!is_hard(error))
        *out = p.stack[0].value;
    if (p.stack != p.first)
        free(p.stack);
    if (error->code == JSON_ERROR_NONE)
        return OK;
    bool limit =
        error->code == JSON_ERROR_DEPTH || error->code == JSON_ERROR_NODES || error->code == JSON_ERROR_SIZE;
    return limit ? ERR_LIMIT : ERR_PARSE;
}

/* ---- a text that has one reading ---- */

/* The length of a number of Python and JavaScript that JSON does not have; 0: there is none. */
static size_t no_number(struct str at)
{
    static const char *const names[] = {"NaN", "Infinity", "-Infinity", "-NaN"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (str_starts(at, names[i]))
            return strlen(names[i]);
    return 0;
}

/* JSON whose strings hold bytes that are no UTF-8 or raw control characters, or whose numbers are NaN or
 * Infinity, as it can be read: with U+FFFD, an escape, and null. */
static struct str repair_text(struct arena *arena, struct str text, const char **what)
{
    struct buf out = buf_in(arena);
    bool in_string = false;
    const char *end = text.at + text.len;
    *what = NULL;
    for (const char *p = text.at; p < end;) {
        unsigned char c = (unsigned char)*p;
        size_t len = c < 0x80 ? 1 : str_utf8_length(p, end);
        size_t number = in_string ? 0 : no_number((struct str){p, (size_t)(end - p)});
        if (in_string && !len) {
            *what = "bytes that are no UTF-8 became U+FFFD";
            buf_text(&out, REPLACEMENT_CHARACTER);
            p++;
            continue;
        }
        if (in_string && c < 0x20) {
            *what = *what ? *what : "raw control characters in strings became escapes";
            buf_printf(&out, "\\u%04x", c);
            p++;
            continue;
        }
        if (number) {
            *what = *what ? *what : "NaN or Infinity became null";
            buf_text(&out, "null");
            p += number;
            continue;
        }
        if (c == '\\' && in_string && p + 1 < end && (unsigned char)p[1] < 0x80)
            len = 2;
        else if (c == '"')
            in_string = !in_string;
        len = len ? len : 1;
        buf_add(&out, p, len);
        p += len;
    }
    return *what ? buf_view(&out) : text;
}

enum err json_parse_repaired(struct arena *arena, struct str text, const struct json_limits *limits,
                             struct json *value, struct json_error *error, const char **what)
{
    *what = NULL;
    enum err err = json_parse(arena, text, limits, value, error);
    if (err == ERR_PARSE && !error->soft) {
        text = repair_text(arena, text, what);
        if (*what)
            err = json_parse(arena, text, limits, value, error);
    }
    return err && error->soft ? OK : err;
}
