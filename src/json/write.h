/* Serialises values, and has a writer for messages that we compose member by member. */
#ifndef TOOLGATE_JSON_WRITE_H
#define TOOLGATE_JSON_WRITE_H

#include "base/buf.h"
#include "json/value.h"

/* A parsed value is written byte for byte as it was sent, without newlines between tokens; a built value is
 * written compactly. The output is always one line. */
void json_write(struct buf *out, const struct json *value);

/* A string literal with its quotes; invalid UTF-8 becomes U+FFFD, so the output is always valid JSON. */
void json_write_string(struct buf *out, struct str s);

/*
 * A writer that inserts the commas:
 *
 *   struct json_out out = json_out(&buf);
 *   json_open(&out, '{');
 *   json_field_text(&out, "verdict", "pass");
 *   json_close(&out, '}');
 */
struct json_out {
    struct buf *buf;
    bool comma;
};

struct json_out json_out(struct buf *buf);
void json_open(struct json_out *out, char bracket);
void json_close(struct json_out *out, char bracket);
void json_key(struct json_out *out, const char *key);
void json_key_str(struct json_out *out, struct str key);
void json_put(struct json_out *out, const struct json *value); /* NULL writes null */
void json_put_str(struct json_out *out, struct str s);
void json_put_text(struct json_out *out, const char *text);
void json_put_int(struct json_out *out, int64_t n);
void json_put_double(struct json_out *out,
                     double n); /* shortest literal that reads back as n; null if n is not finite */
void json_put_bool(struct json_out *out, bool truth);
void json_put_raw(struct json_out *out, struct str json_text); /* already JSON */

/* A member of an object: the key, then the value. */
void json_field(struct json_out *out, const char *key, const struct json *value);
void json_field_str(struct json_out *out, const char *key, struct str value);
void json_field_text(struct json_out *out, const char *key, const char *value);
void json_field_int(struct json_out *out, const char *key, int64_t value);
void json_field_bool(struct json_out *out, const char *key, bool value);
void json_field_raw(struct json_out *out, const char *key, struct str json_text);
void json_field_open(struct json_out *out, const char *key, char bracket);

/* A member that is left out if the value is NULL or empty. */
void json_field_optional(struct json_out *out, const char *key, const struct json *value);
void json_field_optional_str(struct json_out *out, const char *key, struct str value);

#endif
