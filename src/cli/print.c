/* Results of the daemon for people. */
#include "cli/print.h"

#include "base/buf.h"
#include "base/printable.h"
#include "cli/command.h"
#include "cli/term.h"
#include "json/write.h"

#include <stdio.h>

void print_json_text(struct str json)
{
    struct buf plain = {0};
    printable_write_json(&plain, json);
    fwrite(plain.at, 1, plain.len, stdout);
    buf_clear(&plain);
}

static void put_json(const struct json *value)
{
    struct buf text = {0};
    json_write(&text, value);
    print_json_text(buf_view(&text));
    buf_clear(&text);
}

void print_json_line(const struct json *value)
{
    put_json(value);
    putchar('\n');
}

int64_t print_number(const struct json *object, const char *key)
{
    int64_t n = 0;
    json_int(json_get_text(object, key), &n);
    return n;
}

/* "pass 4, refuse 3", without zeros. False: not an object of numbers. */
static bool print_counters(const struct json *value)
{
    const char *before = " ";
    for (size_t i = 0; i < value->len; i++)
        if (value->type != JSON_OBJECT || value->members[i].value.type != JSON_NUMBER)
            return false;
    for (size_t i = 0; i < value->len; i++) {
        const struct json_member *member = &value->members[i];
        int64_t n;
        if (json_int(&member->value, &n) && n == 0)
            continue;
        printf("%s" STR_FMT " ", before, STR_ARG(member->key));
        put_json(&member->value);
        before = ", ";
    }
    printf("%s\n", *before == ',' ? "" : " none");
    return true;
}

static void put_value(const struct json *value, int indent)
{
    bool nested = (value->type == JSON_OBJECT || value->type == JSON_ARRAY) && value->len;
    if (value->type == JSON_STRING && memchr(value->text, '\n', value->len)) {
        putchar('\n');
        term_print_indented(str_trim(json_str(value)), indent + 2);
    } else if (value->type == JSON_STRING) {
        printf(" " STR_FMT "\n", STR_ARG(json_str(value)));
    } else if (!nested) {
        putchar(' ');
        print_json_line(value);
    } else if (!print_counters(value)) {
        putchar('\n');
        print_tree(value, indent + 2);
    }
}

static void put_member(const struct json_member *member, int indent)
{
    printf("%s" STR_FMT ":%s", term_colour(TERM_BOLD), STR_ARG(member->key), term_colour(TERM_PLAIN));
    put_value(&member->value, indent);
}

void print_member(const struct json_member *member, int indent)
{
    printf("%*s", indent, "");
    put_member(member, indent);
}

void print_tree(const struct json *value, int indent)
{
    for (size_t i = 0; value->type == JSON_OBJECT && i < value->len; i++)
        print_member(&value->members[i], indent);
    for (size_t i = 0; value->type == JSON_ARRAY && i < value->len; i++) {
        const struct json *item = &value->items[i];
        bool members = item->type == JSON_OBJECT && item->len;
        printf("%*s-%s", indent, "", members ? " " : "");
        if (!members)
            put_value(item, indent);
        else
            put_member(&item->members[0], indent + 2);
        for (size_t k = 1; members && k < item->len; k++)
            print_member(&item->members[k], indent + 2);
    }
}

static void print_block(const struct json *block)
{
    struct str type = json_str(json_get_text(block, "type")), text = json_str(json_get_text(block, "text"));
    if (str_is(type, "text")) {
        fwrite(text.at, 1, text.len, stdout);
        putchar('\n');
        return;
    }
    printf("[" STR_FMT, STR_ARG(type));
    struct str mime = json_str(json_get_text(block, "mimeType"));
    if (mime.len)
        printf(", " STR_FMT, STR_ARG(mime));
    printf("]\n");
}

void print_content(const struct json *content)
{
    for (size_t i = 0; json_is(content, JSON_ARRAY) && i < content->len; i++)
        print_block(&content->items[i]);
}

static void print_trace(const struct json *trace)
{
    for (size_t i = 0; json_is(trace, JSON_ARRAY) && i < trace->len; i++) {
        const struct json *stage = &trace->items[i];
        double us = 0;
        json_double(json_get_text(stage, "us"), &us);
        struct str name = json_str(json_get_text(stage, "stage")),
                   said = json_str(json_get_text(stage, "decision"));
        printf("  %-8.*s %9.1f µs  " STR_FMT "\n", (int)name.len, name.at, us, STR_ARG(said));
    }
}

static void print_section(const char *title, struct str text)
{
    if (!text.len)
        return;
    printf("%s%s%s\n", term_colour(TERM_BOLD), title, term_colour(TERM_PLAIN));
    term_print_indented(text, 2);
}

void print_check(struct str tool, const struct json *answer, bool trace)
{
    const struct json *rewrites = json_get_text(answer, "rewrites"),
                      *arguments = json_get_text(answer, "arguments");
    struct str verdict = json_str(json_get_text(answer, "verdict")),
               class = json_str(json_get_text(answer, "error_class")),
               code = json_str(json_get_text(answer, "code")),
               would = json_str(json_get_text(answer, "would"));
    printf("%s%s" STR_FMT "%s  ", term_colour(TERM_BOLD), term_verdict_colour(verdict), STR_ARG(verdict),
           term_colour(TERM_PLAIN));
    term_print_lines(stdout, tool);
    if (class.len && !str_is(class, "ok"))
        printf("  " STR_FMT, STR_ARG(class));
    if (code.len && !str_eq(code, class))
        printf(" " STR_FMT, STR_ARG(code));
    if (would.len) /* shadow mode, or no session */
        printf("  would: " STR_FMT, STR_ARG(would));
    putchar('\n');
    if (trace)
        print_trace(json_get_text(answer, "trace"));
    bool repaired = json_is(rewrites, JSON_ARRAY) && rewrites->len;
    if (repaired)
        printf("%srepaired%s\n", term_colour(TERM_BOLD), term_colour(TERM_PLAIN));
    for (size_t i = 0; repaired && i < rewrites->len; i++) {
        printf("  ");
        print_json_line(&rewrites->items[i]);
    }
    if (arguments && repaired) {
        printf("%sarguments%s\n  ", term_colour(TERM_BOLD), term_colour(TERM_PLAIN));
        print_json_line(arguments);
    }
    struct str text = json_str(json_get_text(answer, "text")),
               advice = json_str(json_get_text(answer, "advice"));
    if (!str_eq(text, advice)) /* a check that passes has its notes in both */
        print_section("the model reads", text);
    print_section("advice", advice);
}

int print_exit_code(const struct json *verdict)
{
    return str_is(json_str(json_get_text(verdict, "verdict")), "pass") ? CLI_OK : CLI_NO;
}
