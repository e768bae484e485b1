/*
 * Properties of the JSON parser on any bytes: an error states place and problem;
 * a value reads back as the same value however it is written (raw, rebuilt,
 * copied, canonical). `make fuzz` runs it; tests/unit/json/corpus.c replays the
 * corpus with the same function.
 */
#include "base/arena.h"
#include "json/build.h"
#include "json/parse.h"
#include "json/diff.h"
#include "json/write.h"
#include "require.h"

static struct json must_parse(struct arena *arena, struct str text)
{
    struct json value;
    struct json_error fault;
    if (json_parse(arena, text, NULL, &value, &fault) != OK) {
        fprintf(stderr, "fuzz_json: %s\n", fault.text);
        abort();
    }
    return value;
}

/* Copies a value without its raw bytes. */
static struct json rebuilt(struct arena *arena, const struct json *v)
{
    struct json copy = *v;
    copy.raw_len = 0;
    if (v->type == JSON_ARRAY) {
        struct json *items = ARENA_ARRAY(arena, struct json, v->len + 1);
        for (uint32_t i = 0; i < v->len; i++)
            items[i] = rebuilt(arena, &v->items[i]);
        return json_array(items, v->len);
    }
    if (v->type == JSON_OBJECT) {
        copy = json_object(arena, NULL, 0);
        for (uint32_t i = 0; i < v->len; i++)
            copy = json_with(arena, &copy, v->members[i].key, rebuilt(arena, &v->members[i].value));
    }
    return copy;
}

static void same_when_written(struct arena *arena, const struct json *before, const struct json *after)
{
    struct buf text = buf_in(arena), again = buf_in(arena);
    json_write(&text, after);
    REQUIRE(!memchr(text.at, '\n', text.len) && !memchr(text.at, '\r', text.len));
    struct json back = must_parse(arena, buf_view(&text));
    REQUIRE(json_equal(before, &back) && json_equal(&back, before));
    json_write(&again, &back);
    REQUIRE(str_eq(buf_view(&text), buf_view(&again)));
    struct json patch = json_patch(arena, before, &back);
    REQUIRE(patch.len == 0);
}

static void same_when_canonical(struct arena *arena, const struct json *value)
{
    struct buf text = buf_in(arena), again = buf_in(arena);
    json_canonical(&text, value);
    struct json back = must_parse(arena, buf_view(&text));
    REQUIRE(json_equal(value, &back));
    json_canonical(&again, &back);
    REQUIRE(str_eq(buf_view(&text), buf_view(&again)));
}

static void check_value(struct arena *arena, const struct json *value)
{
    struct json built = rebuilt(arena, value), copy = json_copy(arena, value);
    same_when_written(arena, value, value);
    same_when_written(arena, value, &built);
    same_when_written(arena, value, &copy);
    same_when_canonical(arena, value);
}

static void check_salvage(struct arena *arena, struct str text)
{
    struct str id = json_recover_id(text);
    if (!id.len)
        return;
    struct json value = must_parse(arena, id);
    REQUIRE(value.type == JSON_STRING || (value.type == JSON_NUMBER && value.integral));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_new();
    char *exact = malloc(size ? size : 1); /* of the exact size, for the address sanitizer */
    struct str text = {exact, size};
    struct json value;
    struct json_error fault;
    memcpy(exact, data, size);
    enum err err = json_parse(arena, text, NULL, &value, &fault);
    REQUIRE((err == OK) == (fault.code == JSON_ERROR_NONE));
    REQUIRE(err == OK || (fault.text[0] && fault.offset <= size));
    if (err == OK || fault.soft)
        check_value(arena, &value);
    check_salvage(arena, text);
    free(exact);
    arena_free(arena);
    return 0;
}
