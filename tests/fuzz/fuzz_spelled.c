/*
 * Properties of oddly spelled JSON on any bytes: strict JSON is read as the parser reads it; what is read is
 * valid JSON; a text that was cut off is not JSON, and no beginning of a text is read as anything else. `make
 * fuzz` runs it; tests/unit/json/spelled_corpus.c replays the corpus with the same function.
 */
#include "require.h"

#include "base/arena.h"
#include "json/parse.h"
#include "json/spelled.h"
#include "json/write.h"
#include "require.h"

#define BEGINNINGS_MAX 64u /* of a long text, spread over it */

static void check_read(struct arena *arena, struct str text, const struct json *read)
{
    struct json back;
    struct json_error error;
    REQUIRE(json_parse(arena, json_to_str(arena, read), NULL, &back, &error) == OK);
    REQUIRE(json_equal(read, &back));
    if (read->type != JSON_OBJECT && read->type != JSON_ARRAY)
        return;
    size_t step = text.len / BEGINNINGS_MAX + 1;
    text = str_trim(text);
    for (size_t len = 0; len < text.len; len += step) {
        bool container = json_read_spelled(arena, (struct str){text.at, len}, &back, NULL) == JSON_SPELLED &&
                         (back.type == JSON_OBJECT || back.type == JSON_ARRAY);
        REQUIRE(!container || json_equal(read, &back)); /* what follows may be escaped white space */
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_new();
    char *exact = malloc(size ? size : 1); /* of the exact size, for the address sanitizer */
    struct str text = {exact, size};
    struct json strict, read;
    struct json_error error;
    struct json_cut cut;
    memcpy(exact, data, size);
    bool is_json = json_parse(arena, text, NULL, &strict, &error) == OK;
    enum json_spelling spelling = json_read_spelled(arena, text, &read, &cut);
    REQUIRE(!is_json || (spelling == JSON_SPELLED && json_equal(&strict, &read)));
    REQUIRE(is_json || !error.soft || spelling != JSON_SPELLED);
    if (spelling == JSON_SPELLED)
        check_read(arena, text, &read);
    if (spelling == JSON_CUT_OFF)
        REQUIRE(cut.chars <= size && cut.open <= JSON_MAX_DEPTH && cut.path.len <= JSON_CUT_PATH_BYTES);
    free(exact);
    arena_free(arena);
    return 0;
}
