/*
 * Our JSON parser as a filter, for tests/fuzz/json_differential.py. Input: a
 * length (four bytes, little-endian) and that many bytes. Output: a line, "= "
 * and the canonical text of the value, or "! " and the error.
 */
#include "base/arena.h"
#include "json/write.h"
#include "json/parse.h"

#include <stdint.h>
#include <stdio.h>

#define TEXT_MAX_BYTES (1u << 20)

static void answer(struct str text)
{
    struct arena *arena = arena_new();
    struct json value;
    struct json_error fault;
    struct buf line = buf_in(arena);
    if (json_parse(arena, arena_dup(arena, text), NULL, &value, &fault) == OK) {
        buf_text(&line, "= ");
        json_canonical(&line, &value);
    } else {
        buf_printf(&line, "! %s", fault.text);
    }
    buf_byte(&line, '\n');
    fwrite(line.at, 1, line.len, stdout);
    arena_free(arena);
}

int main(void)
{
    static char text[TEXT_MAX_BYTES];
    unsigned char head[4];
    while (fread(head, 1, sizeof(head), stdin) == sizeof(head)) {
        uint32_t len = head[0] | (uint32_t)head[1] << 8 | (uint32_t)head[2] << 16 | (uint32_t)head[3] << 24;
        if (len > sizeof(text) || fread(text, 1, len, stdin) != len)
            return 2;
        answer((struct str){text, len});
    }
    return 0;
}
