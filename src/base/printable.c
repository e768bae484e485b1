/* Escapes for terminals. */
#include "base/printable.h"

struct range {
    uint32_t first, last;
};

/* Sorted. Joiners (U+200C, U+200D) and variation selectors stay: scripts and emoji need them. */
static const struct range hidden[] = {
    {0x00, 0x1f},       {0x7f, 0x9f},     /* C0, DEL, C1 */
    {0x61c, 0x61c},                       /* ARABIC LETTER MARK */
    {0x180e, 0x180e},   {0x200b, 0x200b}, /* invisible separators */
    {0x200e, 0x200f},   {0x2028, 0x202e}, /* marks of direction, line separators, embeddings and overrides */
    {0x2060, 0x206f},                     /* word joiner, invisible operators, isolates */
    {0xfeff, 0xfeff},   {0xfff9, 0xfffb}, /* byte order mark, interlinear annotations */
    {0xe0000, 0xe0fff},                   /* tags, and variation selectors that can carry a text */
};

bool printable_is_hidden(uint32_t c)
{
    for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
        if (c <= hidden[i].last)
            return c >= hidden[i].first;
    return false;
}

static uint32_t decode(const char *at, size_t length)
{
    unsigned char first = (unsigned char)at[0];
    uint32_t c = length == 1 ? first : first & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; i++)
        c = c << 6 | ((unsigned char)at[i] & 0x3f);
    return c;
}

void printable_write(struct buf *out, struct str text)
{
    const char *end = text.at + text.len;
    for (const char *at = text.at; at < end;) {
        size_t length = str_utf8_length(at, end);
        uint32_t c = length ? decode(at, length) : (unsigned char)*at;
        if (c == '\n' || c == '\t')
            buf_byte(out, ' ');
        else if (!length || (c < 0x80 && printable_is_hidden(c)))
            buf_printf(out, "\\x%02x", (unsigned)c);
        else if (printable_is_hidden(c))
            buf_printf(out, "\\u{%x}", (unsigned)c);
        else
            buf_add(out, at, length);
        at += length ? length : 1;
    }
}

void printable_write_cut(struct buf *out, struct str text, size_t max)
{
    struct str shown = str_cut(text, max);
    printable_write(out, shown);
    if (shown.len < text.len)
        buf_text(out, "…");
}
