/* Output for people. */
#include "cli/term.h"

#include "base/buf.h"
#include "base/printable.h"
#include "cli/command.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

bool term_write_all(struct str text)
{
    while (text.len) {
        ssize_t n = write(STDOUT_FILENO, text.at, text.len);
        if (n < 0 && errno == EAGAIN)
            poll(&(struct pollfd){.fd = STDOUT_FILENO, .events = POLLOUT}, 1, -1);
        else if (n < 0 && errno != EINTR)
            return false;
        text = str_from(text, n > 0 ? (size_t)n : 0);
    }
    return true;
}

void term_print_error(struct str text)
{
    struct buf shown = {0};
    printable_write_lines(&shown, text);
    fwrite(shown.at, 1, shown.len, stderr);
    buf_clear(&shown);
}

void term_error(const char *format, ...)
{
    va_list args;
    const struct command *command = command_running();
    char *text = NULL;
    va_start(args, format);
    int len = vasprintf(&text, format, args);
    va_end(args);
    fprintf(stderr, "%s%s%s: ", command_table()->program, command ? " " : "", command ? command->name : "");
    term_print_error(len < 0 ? str_of(format) : (struct str){text, (size_t)len});
    fputc('\n', stderr);
    free(text);
}

const char *term_colour(enum term_colour colour)
{
    static const char *const codes[] = {
        [TERM_PLAIN] = "\033[0m", [TERM_BOLD] = "\033[1m",   [TERM_DIM] = "\033[2m",
        [TERM_RED] = "\033[31m",  [TERM_GREEN] = "\033[32m", [TERM_YELLOW] = "\033[33m"};
    static int coloured = -1;
    if (coloured < 0) {
        const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
        coloured = isatty(STDOUT_FILENO) && !(no && *no) && term && strcmp(term, "dumb") != 0;
    }
    return coloured ? codes[colour] : "";
}

struct code_range {
    uint32_t from, to;
};

static bool is_in(uint32_t c, const struct code_range *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (c >= ranges[i].from && c <= ranges[i].to)
            return true;
    return false;
}

/* Columns of the character of `len` bytes; 0: not printed. */
static unsigned columns_of(const char *at, size_t len)
{
    static const unsigned char first[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    /* Controls, combining marks, joiners, directional marks, variation selectors, private use, tags. */
    static const struct code_range hidden[] = {
        {0x0, 0x1f},      {0x7f, 0x9f},     {0xad, 0xad},       {0x300, 0x36f},   {0x61c, 0x61c},
        {0x180b, 0x180f}, {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff},   {0x200b, 0x200f}, {0x2028, 0x202e},
        {0x2060, 0x206f}, {0x20d0, 0x20ff}, {0xe000, 0xf8ff},   {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f},
        {0xfeff, 0xfeff}, {0xfff0, 0xfffb}, {0xe0000, 0x10ffff}};
    static const struct code_range wide[] = {
        {0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0xa4cf},  {0xa960, 0xa97f}, {0xac00, 0xd7a3},
        {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},  {0xffe0, 0xffe6}, {0x1f300, 0x1f64f},
        {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd}};
    uint32_t c = (unsigned char)at[0] & first[len];
    for (size_t i = 1; i < len; i++)
        c = c << 6 | ((unsigned char)at[i] & 0x3f);
    if (c >= 0x20 && c < 0x7f)
        return 1;
    if (is_in(c, hidden, sizeof(hidden) / sizeof(hidden[0])))
        return 0;
    return is_in(c, wide, sizeof(wide) / sizeof(wide[0])) ? 2 : 1;
}

unsigned term_clip(struct buf *out, struct str text, unsigned columns)
{
    const char *end = text.at + text.len;
    size_t fits = out->len; /* where a string that is too long is cut */
    unsigned used = 0, used_fits = 0;
    for (const char *at = text.at; at < end;) {
        size_t len = str_utf8_length(at, end);
        unsigned width = len ? columns_of(at, len) : 0;
        if (used + (width ? width : 1) > columns) {
            out->len = fits;
            if (columns)
                buf_byte(out, '~');
            return columns ? used_fits + 1 : 0;
        }
        if (width)
            buf_add(out, at, len);
        else
            buf_byte(out, '?');
        used += width ? width : 1;
        if (used < columns)
            fits = out->len, used_fits = used;
        at += len ? len : 1;
    }
    return used;
}
