/* Walks both values at once. json/diff.h cuts long values, and a definition may hide its point at its end. */
#include "cli/pin_diff.h"

#include "base/arena.h"
#include "base/printable.h"
#include "cli/term.h"
#include "json/write.h"

#include <stdio.h>

static void print_line(char sign, struct str path, struct str text)
{
    struct buf line = {0};
    printable_write(&line, path);
    buf_text(&line, ": ");
    printable_write(&line, text);
    printf("  %s%c " STR_FMT "%s\n", term_colour(sign == '-' ? TERM_RED : TERM_GREEN), sign,
           STR_ARG(buf_view(&line)), term_colour(TERM_PLAIN));
    buf_clear(&line);
}

static struct str first_line(struct str text)
{
    const char *end = text.len ? memchr(text.at, '\n', text.len) : NULL;
    return end ? (struct str){text.at, (size_t)(end - text.at)} : text;
}

static struct str last_line(struct str text)
{
    const char *before = text.len ? memrchr(text.at, '\n', text.len) : NULL;
    return before ? str_from(text, (size_t)(before - text.at) + 1) : text;
}

static struct str without_last(struct str text, struct str line)
{
    return str_cut(text, text.len > line.len ? text.len - line.len - 1 : 0);
}

static void print_lines(char sign, struct str path, struct str text)
{
    do {
        struct str line = first_line(text);
        print_line(sign, path, line);
        text = str_from(text, line.len + 1);
    } while (text.len);
}

/* A long description that changes in one line is that line: equal ones before and after are left out. */
static void print_strings(struct str path, struct str was, struct str now)
{
    unsigned equal = 0;
    while (was.len && now.len && str_eq(first_line(was), first_line(now))) {
        size_t len = first_line(was).len + 1;
        if (len > was.len || len > now.len)
            break;
        was = str_from(was, len);
        now = str_from(now, len);
        equal++;
    }
    while (was.len && now.len && memchr(was.at, '\n', was.len) && memchr(now.at, '\n', now.len) &&
           str_eq(last_line(was), last_line(now))) {
        struct str line = last_line(was);
        was = without_last(was, line);
        now = without_last(now, line);
        equal++;
    }
    print_lines('-', path, was);
    print_lines('+', path, now);
    if (equal)
        printf("    (%u equal line%s)\n", equal, equal == 1 ? "" : "s");
}

static void print_value(char sign, struct arena *arena, struct str path, const struct json *value)
{
    if (value->type == JSON_STRING)
        print_lines(sign, path, json_str(value));
    else
        print_line(sign, path, json_to_str(arena, value));
}

static struct str member_path(struct arena *arena, struct str path, struct str key)
{
    return path.len ? arena_printf(arena, STR_FMT "." STR_FMT, STR_ARG(path), STR_ARG(key)) : key;
}

static void walk(struct arena *arena, struct str path, const struct json *was, const struct json *now);

static void walk_members(struct arena *arena, struct str path, const struct json *was, const struct json *now)
{
    for (uint32_t i = 0; was && i < was->len; i++)
        walk(arena, member_path(arena, path, was->members[i].key), &was->members[i].value,
             json_get(now, was->members[i].key));
    for (uint32_t i = 0; now && i < now->len; i++)
        if (!json_get(was, now->members[i].key))
            walk(arena, member_path(arena, path, now->members[i].key), NULL, &now->members[i].value);
}

/* One of the two may be NULL. */
static void walk(struct arena *arena, struct str path, const struct json *was, const struct json *now)
{
    const struct json *either = was ? was : now;
    bool objects = json_is(either, JSON_OBJECT) && either->len && (!was || !now || json_is(now, JSON_OBJECT));
    if (was && now && json_equal(was, now))
        return;
    if (objects) {
        walk_members(arena, path, was, now);
    } else if (json_is(was, JSON_STRING) && json_is(now, JSON_STRING)) {
        print_strings(path, json_str(was), json_str(now));
    } else {
        if (was)
            print_value('-', arena, path, was);
        if (now)
            print_value('+', arena, path, now);
    }
}

void pin_diff_print(const struct json *was, const struct json *now)
{
    struct arena *arena = arena_new();
    walk(arena, STR_NONE, was, now);
    arena_free(arena);
}
