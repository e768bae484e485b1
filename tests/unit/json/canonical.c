/* The canonical form, exactly: the keys of the ledger are hashes of it. */
#include "json/write.h"
#include "arena_case.h"

static const char *canonical(const char *text)
{
    struct buf out = buf_in(arena);
    struct json v = parsed(text);
    json_canonical(&out, &v);
    return arena_dup(arena, buf_view(&out)).at;
}

TEST(spells_numbers_by_value)
{
    static const struct {
        const char *text, *canonical;
    } rows[] = {
        {"0", "0"},
        {"-0", "0"},
        {"0.0e5", "0"},
        {"1", "1"},
        {"1.0", "1"},
        {"1e0", "1"},
        {"-10e-1", "-1"},
        {"1.10", "1.1e0"},
        {"1.1", "1.1e0"},
        {"110e-2", "1.1e0"},
        {"120", "120"},
        {"1.2e2", "120"},
        {"18446744073709551616", "18446744073709551616"},
        {"123456789012345678901", "123456789012345678901"},
        {"1234567890123456789012", "1.234567890123456789012e21"},
        {"1e20", "100000000000000000000"},
        {"1e21", "1e21"},
        {"10e20", "1e21"},
        {"1e400", "1e400"},
        {"0.1e401", "1e400"},
        {"-0.00012", "-1.2e-4"},
        {"1e999999999", "1e999999999"},
        {"1e-999999999", "1e-999999999"},
        {"12e999999999999", "1.2e1000000000000"},
        {"0.1e-999999999999", "1e-1000000000000"},
        {"0.1e1000000000000", "1e999999999999"},
        {"1e999999999999998", "1e999999999999998"},
        {"12e-1000000000000000000", "1.2e-999999999999999999"},
        {"10e99999999999999999999", "1e100000000000000000000"},
        {"1e100000000000000000000", "1e100000000000000000000"},
        {"0.1e100000000000000000000", "1e99999999999999999999"},
        {"0.01e-99999999999999999999", "1e-100000000000000000001"},
        {"100e-100000000000000000000", "1e-99999999999999999998"},
        {"123e1000000000000000000", "1.23e1000000000000000002"},
        {"1e0000000000000000000000000005", "100000"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_string_equal(canonical(rows[i].text), rows[i].canonical);
        assert_string_equal(canonical(rows[i].canonical), rows[i].canonical);
    }
}

TEST(stays_bounded)
{
    struct json v = parsed("[1e999999999,-1e-999999999,1e999999999999999999999999999]");
    struct buf out = buf_in(arena);
    json_canonical(&out, &v);
    assert_true(out.len < 80);
}

TEST(sorts_keys_by_bytes)
{
    assert_string_equal(canonical("{\"b\": 1, \"a\" : [ true , null "
                                  "],\"\":0,\"é\":2,\"B\":3,\"ab\":{\"y\":1,\"x\":\"\\u0041\\n\"}}"),
                        "{\"\":0,\"B\":3,\"a\":[true,null],\"ab\":{\"x\":\"A\\n\",\"y\":1},\"b\":1,\"é\":2}");
}

TEST(sorts_many_keys)
{
    struct buf text = buf_in(arena), sorted = buf_in(arena);
    for (int i = 0; i < 300; i++) {
        buf_printf(&text, "%c\"k%03d\":%d", i ? ',' : '{', (i * 7) % 300, (i * 7) % 300);
        buf_printf(&sorted, "%c\"k%03d\":%d", i ? ',' : '{', i, i);
    }
    buf_text(&text, "}");
    buf_text(&sorted, "}");
    assert_string_equal(canonical(arena_dup(arena, buf_view(&text)).at),
                        arena_dup(arena, buf_view(&sorted)).at);
}

static bool same_hash(struct hash128 a, struct hash128 b)
{
    return a.high == b.high && a.low == b.low;
}

static struct hash128 fingerprint(const char *text, const char *without)
{
    struct json v = parsed(text);
    struct str names[] = {str_of(without ? without : "")};
    return json_fingerprint(arena, &v, names, without ? 1 : 0);
}

TEST(fingerprints_values)
{
    assert_true(
        same_hash(fingerprint("{\"a\":1,\"b\":2}", NULL), fingerprint("{ \"b\" : 2.0, \"a\" : 1 }", NULL)));
    assert_false(same_hash(fingerprint("{\"a\":1}", NULL), fingerprint("{\"a\":2}", NULL)));
    assert_true(same_hash(fingerprint("{\"a\":1,\"page\":2}", "page"), fingerprint("{\"a\":1}", NULL)));
    assert_false(same_hash(fingerprint("{\"a\":{\"page\":2}}", "page"), fingerprint("{\"a\":{}}", NULL)));
    assert_true(same_hash(json_fingerprint(arena, NULL, NULL, 0), fingerprint("{}", NULL)));
    assert_true(same_hash(fingerprint("[1]", "page"), fingerprint("[1.0]", NULL)));
    struct hash128 pinned = hash_stable(STR_LIT("{\"a\":1.1e0,\"b\":\"x\"}"));
    assert_true(same_hash(fingerprint("{\"b\":\"x\",\"a\":1.10}", NULL), pinned));
}

/* A large value is hashed in parts; its hash is that of its whole text. */
TEST(fingerprints_large_values)
{
    for (int count = 4000; count < 9000; count += 999) {
        struct buf text = buf_in(arena);
        for (int i = 0; i < count; i++)
            buf_printf(&text, "%s{\"at\":[%d,\"%0*d\"]}", i ? "," : "[", i, i % 50, i);
        buf_text(&text, "]");
        struct json v = parsed(arena_dup(arena, buf_view(&text)).at), wrapped;
        struct buf whole = buf_in(arena), object = buf_in(arena);
        json_canonical(&whole, &v);
        assert_true(same_hash(json_fingerprint(arena, &v, NULL, 0), hash_stable(buf_view(&whole))));
        buf_printf(&object, "{\"b\":" STR_FMT ",\"a\":1}", STR_ARG(buf_view(&whole)));
        wrapped = parsed(arena_dup(arena, buf_view(&object)).at);
        struct buf sorted = buf_in(arena);
        json_canonical(&sorted, &wrapped);
        assert_true(same_hash(json_fingerprint(arena, &wrapped, NULL, 0), hash_stable(buf_view(&sorted))));
    }
}
