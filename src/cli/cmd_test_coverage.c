/* toolgate test --coverage: the rules and lines that no example reaches, as a table or as JSON. */
#include "cli/term.h"
#include "cli/cmd_test.h"
#include "json/write.h"

#include <stdio.h>

struct share {
    size_t hit, total;
};

static struct share lines_of(const struct coverage_file *f)
{
    struct share share = {.total = f->line_count};
    for (size_t i = 0; i < f->line_count; i++)
        share.hit += f->lines[i].hits > 0;
    return share;
}

static struct share rules_of(const struct coverage_file *f)
{
    struct share share = {.total = f->rule_count};
    for (size_t i = 0; i < f->rule_count; i++)
        share.hit += f->rules[i].hits > 0;
    return share;
}

/* ---- the table ---- */

static void print_share(struct share share)
{
    char text[32] = "-";
    if (share.total)
        snprintf(text, sizeof(text), "%zu/%zu", share.hit, share.total);
    enum term_colour colour = !share.total ? TERM_DIM : share.hit == share.total ? TERM_GREEN : TERM_YELLOW;
    printf("  %s%9s%s", term_colour(colour), text, term_colour(TERM_PLAIN));
}

static void print_row(const struct coverage_file *f, int width)
{
    struct buf missed = {0};
    struct str name = f->tool.len ? f->tool : STR_LIT("(gateway)");
    /* "12, 14-16": a range spans lines that never run, and lines without code. */
    for (size_t i = 0; i < f->line_count; i++) {
        size_t last = i;
        if (f->lines[i].hits)
            continue;
        while (last + 1 < f->line_count && !f->lines[last + 1].hits)
            last++;
        buf_printf(&missed, "%s%d", missed.len ? ", " : "", f->lines[i].line);
        if (last > i)
            buf_printf(&missed, "-%d", f->lines[last].line);
        i = last;
    }
    printf("%-*.*s  %8zu", width, (int)name.len, name.at, f->examples);
    print_share(rules_of(f));
    print_share(lines_of(f));
    if (missed.len)
        printf("  " STR_FMT ": " STR_FMT, STR_ARG(f->file), STR_ARG(buf_view(&missed)));
    printf("\n");
    for (size_t i = 0; i < f->rule_count; i++)
        if (!f->rules[i].hits)
            printf("%-*s  %8s  %9s  rule never hit: " STR_FMT "\n", width, "", "", "",
                   STR_ARG(f->rules[i].words));
    buf_clear(&missed);
}

static void print_table(const struct coverage_file *files, size_t count, struct share sum)
{
    int width = 12;
    for (size_t i = 0; i < count; i++)
        if ((int)files[i].tool.len > width && files[i].tool.len <= 48)
            width = (int)files[i].tool.len;
    printf("\n%s%-*s  %8s  %9s  %9s  not run%s\n", term_colour(TERM_BOLD), width, "policy", "examples",
           "rules", "lines", term_colour(TERM_PLAIN));
    for (size_t i = 0; i < count; i++)
        print_row(&files[i], width);
    if (sum.total)
        printf("%zu of %zu lines run, %.1f %%\n", sum.hit, sum.total,
               100.0 * (double)sum.hit / (double)sum.total);
}

/* ---- JSON ---- */

static void put_share(struct json_out *out, const char *key, struct share share)
{
    json_field_open(out, key, '{');
    json_field_int(out, "hit", (int64_t)share.hit);
    json_field_int(out, "total", (int64_t)share.total);
    json_field_open(out, "missed", '[');
}

static void close_share(struct json_out *out)
{
    json_close(out, ']');
    json_close(out, '}');
}

static void print_json(const struct coverage_file *f)
{
    struct buf line = {0};
    struct json_out out = json_out(&line);
    json_open(&out, '{');
    json_field_text(&out, "kind", "coverage");
    json_field_str(&out, "tool", f->tool);
    json_field_str(&out, "file", f->file);
    json_field_int(&out, "examples", (int64_t)f->examples);
    put_share(&out, "rules", rules_of(f));
    for (size_t i = 0; i < f->rule_count; i++)
        if (!f->rules[i].hits)
            json_put_str(&out, f->rules[i].words);
    close_share(&out);
    put_share(&out, "lines", lines_of(f));
    for (size_t i = 0; i < f->line_count; i++)
        if (!f->lines[i].hits)
            json_put_int(&out, f->lines[i].line);
    close_share(&out);
    json_close(&out, '}');
    printf(STR_FMT "\n", STR_ARG(buf_view(&line)));
    buf_clear(&line);
}

/* ---- both ---- */

int test_print_coverage(const struct test_options *options, const struct coverage *coverage)
{
    size_t count;
    const struct coverage_file *files = coverage_files(coverage, &count);
    struct share sum = {0};
    for (size_t i = 0; i < count; i++) {
        struct share lines = lines_of(&files[i]);
        sum.hit += lines.hit;
        sum.total += lines.total;
        if (options->json)
            print_json(&files[i]);
    }
    if (!options->json)
        print_table(files, count, sum);
    if (!sum.total || sum.hit * 100 >= sum.total * options->coverage_min)
        return CLI_OK;
    term_error("test", "coverage is %zu of %zu lines, less than the %u %% of --coverage-min", sum.hit,
               sum.total, options->coverage_min);
    return CLI_NO;
}
