/* Golden texts for the unit tests: the same files as tests/support/golden.lua, which explains them and writes
 * them. Temporary folders become <dir>; what else differs from run to run the
 * caller replaces (golden_replace) before it checks. */
#ifndef TOOLGATE_UNIT_GOLDEN_H
#define TOOLGATE_UNIT_GOLDEN_H

#include "unit.h"

/* The text with every `from` replaced by `to`; to be freed. */
__attribute__((unused)) static char *golden_replace(const char *text, const char *from, const char *to)
{
    size_t len = 0;
    char *out = NULL;
    FILE *memory = open_memstream(&out, &len);
    assert_non_null(memory);
    for (const char *at; (at = strstr(text, from)); text = at + strlen(from))
        fprintf(memory, "%.*s%s", (int)(at - text), text, to);
    fputs(text, memory);
    fclose(memory);
    return out;
}

/* The text with what follows the pattern of mkdtemp, "/tmp/toolgate-name-XXXXXX", replaced by <dir>; to be
 * freed. */
static char *golden_without_folders(const char *text)
{
    size_t len = 0;
    char *out = NULL;
    FILE *memory = open_memstream(&out, &len);
    assert_non_null(memory);
    for (const char *at; (at = strstr(text, "/tmp/toolgate-"));) {
        const char *dash = strchr(at + strlen("/tmp/toolgate-"), '-');
        assert_true(dash && strlen(dash) > 6);
        fprintf(memory, "%.*s<dir>", (int)(at - text), text);
        text = dash + 7;
    }
    fputs(text, memory);
    fclose(memory);
    return out;
}

/* The section of `key` in the area's file, without its newlines at the end; to be freed. NULL if there is
 * none. */
static char *golden_section(const char *area, const char *key)
{
    char path[256], heading[512], *file = NULL, *found = NULL;
    size_t size = 0;
    snprintf(path, sizeof(path), "tests/golden/%s.txt", area);
    snprintf(heading, sizeof(heading), "\n=== %s\n", key);
    FILE *in = fopen(path, "rb");
    if (in) {
        if (getdelim(&file, &size, '\0', in) > 0 && (found = strstr(file, heading))) {
            found += strlen(heading) - 1;
            char *end = strstr(found, "\n=== ");
            size_t len = end ? (size_t)(end - found) : strlen(found);
            while (len > 1 && found[len - 1] == '\n')
                len--;
            found = strndup(found + 1, len ? len - 1 : 0);
        }
        fclose(in);
    }
    free(file);
    return found;
}

/* Fails unless the text is the section's text. With GOLDEN=write the text is only written down. */
__attribute__((unused)) static void golden_check(const char *area, const char *key, const char *checked)
{
    char *text = golden_without_folders(checked);
    int len = (int)strlen(text);
    while (len && text[len - 1] == '\n')
        len--;
    assert_null(strncmp(text, "=== ", 4) ? strstr(text, "\n=== ") : text);
    const char *journal = getenv("GOLDEN_JOURNAL"), *write = getenv("GOLDEN");
    if (journal) {
        FILE *out = fopen(journal, "ab");
        assert_non_null(out);
        fprintf(out, "%zu %zu %d\n%s%s%.*s", strlen(area), strlen(key), len, area, key, len, text);
        fclose(out);
    }
    if (write && strcmp(write, "write") == 0) {
        assert_non_null(journal);
        free(text);
        return;
    }

    char *expected = golden_section(area, key);
    if (!expected) {
        fprintf(stderr, "tests/golden/%s.txt has no section '%s': run `make golden`. The text is:\n%s\n",
                area, key, text);
        fail();
    }
    if (strlen(expected) != (size_t)len || memcmp(expected, text, (size_t)len) != 0) {
        fprintf(stderr,
                "tests/golden/%s.txt, section '%s' (if the new text is right: `make golden`)\n"
                "--- expected\n%s\n--- got\n%s\n---\n",
                area, key, expected, text);
        fail();
    }
    free(expected);
    free(text);
}

/* Rows of one section, for a test that tries many inputs: each input, and the text that came of it below it.
 */
static char golden_rows[131072];

__attribute__((unused)) static void golden_row(const char *input, const char *text)
{
    size_t len = 0;
    char *row = NULL;
    FILE *memory = open_memstream(&row, &len);
    assert_non_null(memory);
    for (const char *at = input; *at; at++) {
        unsigned char c = (unsigned char)*at;
        fprintf(memory, c == '\n' ? "\\n" : c < 0x20 || c > 0x7e ? "\\x%02x" : "%c", c);
    }
    fputs(*text ? "\n    " : "\n    (nothing)", memory);
    for (const char *at = text; *at && !(*at == '\n' && !at[1]); at++)
        fputs(*at == '\n' ? "\n    " : (char[]){*at, '\0'}, memory);
    fputc('\n', memory);
    fclose(memory);
    assert_true(strlen(golden_rows) + len < sizeof(golden_rows));
    strcat(golden_rows, row);
    free(row);
}

/* Checks the rows since the last check. */
__attribute__((unused)) static void golden_check_rows(const char *area, const char *key)
{
    char rows[sizeof(golden_rows)];
    strcpy(rows, golden_rows);
    *golden_rows = '\0';
    golden_check(area, key, rows);
}

#endif
