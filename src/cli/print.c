/* Values of a daemon, for people. */
#include "cli/print.h"

#include "base/buf.h"
#include "base/printable.h"

#include <stdio.h>

void print_json_text(struct str json)
{
    struct buf plain = {0};
    printable_write_json(&plain, json);
    fwrite(plain.at, 1, plain.len, stdout);
    buf_clear(&plain);
}

int64_t print_number(const struct json *object, const char *key)
{
    int64_t n = 0;
    json_int(json_get_text(object, key), &n);
    return n;
}
