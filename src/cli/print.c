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
