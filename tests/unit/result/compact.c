/* Compaction: what stays, the notes, and properties over random values. */

#include "values.h"
#include "base/hash.h"
#include "result/compact.h"
#include "schema/schema.h"
#include "golden.h"

#define ROUNDS_DEFAULT 400

static struct tool tool;
static struct policy policy;

static void set_up(void)
{
    arena = arena_new();
    policy = (struct policy){.file = STR("p.lua")};
    tool = (struct tool){.name = STR("t"), .policy = &policy, .compact = {.on = true, .max_bytes = 1000}};
}

static void tear_down(void)
{
    arena_free(arena);
}

FIXTURE(set_up, tear_down)

static struct compaction shrink(const struct json *value, const char *args, const char *goal)
{
    struct result result;
    struct compaction out;
    result_read(arena, value, &result);
    compact_result(arena, &tool, args ? value_of(args) : NULL, str_of(goal), &result, &out);
    return out;
}

/* The result as the model reads it. */
static struct str shown(const struct compaction *c)
{
    return json_str(json_get_text(&c->result.content->items[0], "text"));
}

static void says(struct str text, const char *what)
{
    if (!memmem(text.at, text.len, what, strlen(what)))
        fail_msg("expected “%s” in “" STR_FMT "”", what, STR_ARG(text));
}

/* The whole note to the model. */
static void note_is(const struct compaction *c, const char *key)
{
    golden_check("feedback", key, arena_printf(arena, STR_FMT, STR_ARG(c->note)).at);
}

static void says_not(struct str text, const char *what)
{
    if (memmem(text.at, text.len, what, strlen(what)))
        fail_msg("did not expect “%s” in “" STR_FMT "”", what, STR_ARG(text));
}

/* {"events":[{"id":"e0","title":"Event 0","at":"2026-05-01","body":"…"}, …]} */
static const struct json *events(unsigned count, unsigned body)
{
    struct buf out = buf_in(arena);
    buf_text(&out, "{\"total\":40,\n \"events\":[");
    for (unsigned i = 0; i < count; i++) {
        buf_printf(&out,
                   "%s\n  {\"id\":\"e%u\", \"title\":\"Event %u\", \"at\":\"2026-05-%02u\", \"body\":\"",
                   i ? "," : "", i, i, i % 28 + 1);
        for (unsigned b = 0; b < body; b++)
            buf_text(&out, "words ");
        buf_text(&out, "\"}");
    }
    buf_text(&out, "]}");
    return value_of_str(buf_view(&out));
}

/* ---- fields and items ---- */

TEST(every_id_and_title_stays_before_any_text_does)
{
    tool.compact.max_bytes = 2000;
    struct compaction c = shrink(events(20, 100), NULL, "");
    assert_true(c.done && shown(&c).len <= 2000);
    const struct json *list = json_get_text(value_of_str(shown(&c)), "events");
    assert_int_equal(list->len, 20);
    for (unsigned i = 0; i < 20; i++)
        assert_true(json_get_text(&list->items[i], "id") && json_get_text(&list->items[i], "title"));
    note_is(&c, "compaction note: items are cut down");
    says(shown(&c), "\"total\":40");
}

TEST(omitted_items_are_counted)
{
    tool.parameters = value_of_str(STR_LIT("{\"query\":{},\"limit\":{}}"));
    struct compaction c = shrink(events(400, 10), NULL, "");
    assert_true(shown(&c).len <= 1000);
    const struct json *list = json_get_text(value_of_str(shown(&c)), "events");
    char left[64];
    snprintf(left, sizeof(left), "%u of 400 ", 400 - list->len);
    says(c.note, left);
    note_is(&c, "compaction note: items are left out");
    assert_true(list->len > 3);
}

/* Keys are looked up by their places, which objects of other forms have for other keys. */
TEST(sizes_are_those_of_the_text)
{
    struct buf text = buf_in(arena);
    buf_text(&text,
             "[{\"\":\"\",\"a\\n\":\"x\\ty\",\"id\":1},{\"id\":\"\\\"\",\"b\":[],\"c\":{}},{\"a\\n\":true");
    for (int i = 0; i < 70; i++)
        buf_printf(&text, ",\"k%d\":%d.5", i, i);
    buf_text(&text, "},null,\"\xc3\xa9\",{\"\":[false]}]");
    buf_byte(&text, '\0');
    struct compact_rules rules = compact_rules_of(arena, &tool, NULL, STR_NONE);
    const struct compact_node *root = compact_tree(&rules, value_of(text.at));
    assert_int_equal(root->size, text.len - 1);
    assert_true(root->children[0].children[2].kept);
    assert_true(root->children[1].children[0].kept);
    assert_false(root->children[1].children[1].kept);
}

TEST(the_newest_items_stay)
{
    struct compaction c = shrink(events(28, 200), NULL, "");
    says(shown(&c), "\"e27\"");
    says_not(shown(&c), "\"e0\"");
}

TEST(items_with_words_of_the_goal_stay_whole)
{
    tool.compact.max_bytes = 2000;
    struct buf out = buf_in(arena);
    buf_text(&out, "[");
    for (int i = 0; i < 60; i++)
        buf_printf(&out, "%s{\"id\":%d,\"text\":\"%s and then more of the usual words that fill a field\"}",
                   i ? "," : "", i, i == 41 ? "Dentist appointment" : "meeting");
    buf_text(&out, "]");
    struct compaction c = shrink(value_of_str(buf_view(&out)), NULL, "when do I see the dentists?");
    says(shown(&c), "Dentist appointment and then more of the usual words");
}

TEST(fields_that_the_policy_drops_go_first)
{
    tool.compact.max_bytes = 1600;
    tool.compact.drop = (struct str[]){STR("events[].body")};
    tool.compact.drop_count = 1;
    struct compaction c = shrink(events(20, 100), NULL, "");
    assert_int_equal(json_get_text(value_of_str(shown(&c)), "events")->len, 20);
    note_is(&c, "compaction note: a field that the policy drops");
}

TEST(fields_that_the_policy_keeps_stay)
{
    tool.compact.keep = (struct str[]){STR("note"), STR("items[].price")};
    tool.compact.keep_count = 2;
    struct buf out = buf_in(arena);
    buf_text(&out, "{\"note\":\"prices are net\",\"items\":[");
    for (int i = 0; i < 20; i++)
        buf_printf(&out, "%s{\"price\":%d,\"colour\":\"%0100d\"}", i ? "," : "", i, i);
    buf_text(&out, "]}");
    struct compaction c = shrink(value_of_str(buf_view(&out)), NULL, "");
    const struct json *value = value_of_str(shown(&c));
    assert_true(str_is(json_str(json_get_text(value, "note")), "prices are net"));
    const struct json *items = json_get_text(value, "items");
    assert_int_equal(items->len, 20);
    for (uint32_t i = 0; i < items->len; i++)
        assert_non_null(json_get_text(&items->items[i], "price"));
}

TEST(ids_of_the_policy_stay)
{
    policy.gives_ids = (struct str[]){STR("rows[].ref")};
    policy.gives_id_count = 1;
    struct buf out = buf_in(arena);
    buf_text(&out, "{\"rows\":[");
    for (int i = 0; i < 20; i++)
        buf_printf(&out, "%s{\"ref\":\"r%d\",\"colour\":\"%0100d\"}", i ? "," : "", i, i);
    buf_text(&out, "]}");
    struct compaction c = shrink(value_of_str(buf_view(&out)), NULL, "");
    says(shown(&c), "\"r0\"");
    says(shown(&c), "\"r19\"");
}

/* {"total":N,"page":{"rows":[{"ref":"r0","place":"Room 0",…}, …]}}: each row has fields that must stay. */
static const struct json *rows(unsigned count)
{
    struct buf out = buf_in(arena);
    buf_printf(&out, "{\"total\":%u,\"page\":{\"rows\":[", count);
    for (unsigned i = 0; i < count; i++)
        buf_printf(&out, "%s{\"ref\":\"r%u\",\"place\":\"Room %u\",\"body\":\"%060u\"}", i ? "," : "", i,
                   i % 7, i);
    buf_text(&out, "]}}");
    return value_of_str(buf_view(&out));
}

TEST(a_list_loses_items_if_their_kept_fields_exceed_the_budget)
{
    tool.compact.max_bytes = 2000;
    tool.compact.keep = (struct str[]){STR("place")};
    tool.compact.keep_count = 1;
    policy.gives_ids = (struct str[]){STR("page.rows[].ref")};
    policy.gives_id_count = 1;
    struct compaction c = shrink(rows(400), NULL, "");
    const struct json *value = value_of_str(shown(&c)),
                      *list = json_get_text(json_get_text(value, "page"), "rows");
    assert_true(c.done);
    assert_true(shown(&c).len <= 2000);
    assert_true(list->len > 10 && list->len < 100);
    for (uint32_t i = 0; i < list->len; i++) {
        assert_non_null(json_get_text(&list->items[i], "ref"));
        assert_non_null(json_get_text(&list->items[i], "place"));
    }
    assert_non_null(json_get_text(value, "total"));
    note_is(&c, "compaction note: rows with equal fields");
}

TEST(a_list_that_is_kept_whole_stays_whole)
{
    tool.compact.keep = (struct str[]){STR("refs")};
    tool.compact.keep_count = 1;
    struct buf out = buf_in(arena);
    buf_text(&out, "{\"refs\":[");
    for (int i = 0; i < 50; i++)
        buf_printf(&out, "%s\"r%d\"", i ? "," : "", i);
    buf_printf(&out, "],\"body\":\"%05000d\"}", 0);
    struct compaction c = shrink(value_of_str(buf_view(&out)), NULL, "");
    assert_int_equal(json_get_text(value_of_str(shown(&c)), "refs")->len, 50);
}

TEST(one_huge_field_does_not_displace_the_rest)
{
    struct buf out = buf_in(arena);
    buf_printf(&out,
               "{\"id\":\"d1\",\"body\":\"%05000d\",\"author\":{\"name\":\"Ana\",\"mail\":\"ana@example."
               "com\"},\"words\":12}",
               0);
    struct compaction c = shrink(value_of_str(buf_view(&out)), NULL, "");
    const struct json *value = value_of_str(shown(&c));
    says(shown(&c), "ana@example.com");
    assert_non_null(json_get_text(value, "words"));
    says(json_str(json_get_text(value, "body")), "of 5000 bytes left out]");
    note_is(&c, "compaction note: a string is cut");
}

/* Names come from the tool, so the note truncates them. */
TEST(a_long_name_is_cut_in_the_note)
{
    struct buf text = buf_in(arena);
    buf_text(&text, "{\"");
    for (int i = 0; i < 5000; i++)
        buf_byte(&text, 'k');
    buf_text(&text, "\":1,\"id\":2}");
    struct compaction c = shrink(value_of_str(buf_view(&text)), NULL, "");
    note_is(&c, "compaction note: a huge name");
    assert_true(c.note.len < 300);
}

/* Each row loses a field: a path of the whole name each time took 4 GB for 500 KB. */
TEST(rows_under_a_huge_name_take_little_memory)
{
    static struct str drop[] = {STR("raw")};
    struct buf text = buf_in(arena);
    buf_text(&text, "{\"");
    for (int i = 0; i < 50000; i++)
        buf_byte(&text, 'k');
    buf_text(&text, "\":[0");
    for (int i = 0; i < 2000; i++)
        buf_printf(&text, ",{\"id\":%d,\"raw\":\"x\"}", i);
    buf_text(&text, "]}");
    tool.compact = (struct policy_compact){.on = true, .max_bytes = 60000, .drop = drop, .drop_count = 1};
    struct compaction c = shrink(value_of_str(buf_view(&text)), NULL, "");
    says(c.note, "is left out everywhere");
    assert_true(arena_bytes(arena) < (32u << 20));
}

TEST(a_string_keeps_whole_lines_and_words_of_the_goal)
{
    struct buf out = buf_in(arena);
    for (int i = 0; i < 200; i++)
        buf_printf(&out, "line %d says %s\n", i, i == 150 ? "the invoice is overdue" : "nothing");
    struct json text = {.type = JSON_STRING, .text = out.at, .len = (uint32_t)out.len};
    struct compaction c = shrink(&text, NULL, "Which invoices are open?");
    assert_true(shown(&c).len <= 1000);
    says(shown(&c), "line 0 says nothing\nline 1 ");
    says(shown(&c), "line 150 says the invoice is overdue\n");
    says(shown(&c), " lines left out …]");
    note_is(&c, "compaction note: a text");
}

static struct compaction shrink_text(struct buf *out, const char *args, const char *goal)
{
    struct json text = {.type = JSON_STRING, .text = out->at, .len = (uint32_t)out->len};
    struct compaction c = shrink(&text, args, goal);
    if (shown(&c).len > tool.compact.max_bytes)
        fail_msg("%zu bytes: " STR_FMT, shown(&c).len, STR_ARG(shown(&c)));
    return c;
}

TEST(a_table_keeps_its_head_and_the_row_of_the_call)
{
    struct buf out = buf_in(arena);
    buf_text(&out, "id,name,city\n");
    for (int i = 0; i < 300; i++)
        buf_printf(&out, "c%d,Name %d,City\n", i, i);
    struct compaction c = shrink_text(&out, "{\"customer_id\":\"c222\"}", "");
    says(shown(&c), "id,name,city\nc0,Name 0,");
    says(shown(&c), "\nc222,Name 222,City\n");
    says_not(shown(&c), "\nc122,");
}

TEST(a_log_keeps_its_end_and_its_errors)
{
    struct buf out = buf_in(arena);
    for (int i = 0; i < 300; i++)
        buf_printf(&out, "2026-05-01T10:%02d:%02d %s\n", i / 60, i % 60,
                   i == 77 ? "ERROR disk full" : "all is well");
    struct compaction c = shrink_text(&out, NULL, "");
    says(shown(&c), "2026-05-01T10:01:17 ERROR disk full\n");
    says(shown(&c), "10:04:58 all is well\n2026-05-01T10:04:59 all is well\n");
}

TEST(a_text_of_records_keeps_every_name)
{
    struct buf out = buf_in(arena);
    buf_text(&out, "tools:\n");
    for (int i = 0; i < 8; i++) {
        buf_printf(&out, "- tool_name: tool_%d\n", i);
        for (int line = 0; line < 10; line++)
            buf_text(&out, "  some words about what it does, and more of them\n");
    }
    struct compaction c = shrink_text(&out, NULL, "");
    for (int i = 0; i < 8; i++) {
        char name[40];
        snprintf(name, sizeof(name), "- tool_name: tool_%d\n", i);
        says(shown(&c), name);
    }
}

TEST(headings_of_a_document_stay)
{
    struct buf out = buf_in(arena);
    for (int i = 0; i < 6; i++) {
        buf_printf(&out, "## Part %d\n\n", i);
        for (int line = 0; line < 20; line++)
            buf_text(&out, "Words upon words, and none of them is a heading.\n");
    }
    struct compaction c = shrink_text(&out, NULL, "");
    for (int i = 0; i < 6; i++) {
        char heading[32];
        snprintf(heading, sizeof(heading), "## Part %d\n", i);
        says(shown(&c), heading);
    }
}

TEST(a_text_without_lines_keeps_sentences)
{
    struct buf out = buf_in(arena);
    for (int i = 0; i < 100; i++)
        buf_printf(&out, "Sentence %d is about %s. ", i, i == 60 ? "the missing invoice" : "something else");
    struct compaction c = shrink_text(&out, NULL, "find the invoice");
    says(shown(&c), "Sentence 0 is about something else. Sentence 1 ");
    says(shown(&c), "Sentence 60 is about the missing invoice. ");
    says(shown(&c), " sentences left out …]");
}

TEST(a_page_keeps_its_text)
{
    struct buf out = buf_in(arena);
    buf_text(&out, "<!DOCTYPE html><html><head><title>Opening hours</title><style>p{color:red}</style>");
    for (int i = 0; i < 100; i++)
        buf_text(&out, "<script>var x = 'words of a script';</script>");
    buf_text(&out,
             "</head><body><!-- a note --><h1 class=\"big\">Hours</h1><ul><li>Mo &amp; Tu 9&nbsp;-&nbsp;5"
             "</li><li>We closed</li></ul><p>If 1 < 2, <b>call</b> us.</p></body></html>");
    struct compaction c = shrink_text(&out, NULL, "");
    if (!str_is(shown(&c), "Opening hours\n# Hours\n- Mo & Tu 9 - 5\n- We closed\nIf 1 < 2, call us."))
        fail_msg(STR_FMT, STR_ARG(shown(&c)));
    note_is(&c, "compaction note: HTML");
}

TEST(lists_within_a_list_all_stay)
{
    struct buf out = buf_in(arena);
    tool.compact.max_bytes = 1500;
    for (int i = 0; i < 12; i++)
        buf_printf(&out,
                   "%s[{\"flight_number\":\"A%d\",\"notes\":\"%0100d\"},{\"flight_number\":\"B%d\","
                   "\"notes\":\"%0100d\"}]",
                   i ? "," : "[", i, i, i, i);
    buf_byte(&out, ']');
    struct compaction c = shrink(value_of_str(buf_view(&out)), NULL, "");
    const struct json *list = value_of_str(shown(&c));
    assert_true(shown(&c).len <= 1500);
    assert_int_equal(12, list->len);
    for (uint32_t i = 0; i < 12; i++)
        assert_non_null(json_get_text(&list->items[i].items[1], "flight_number"));
}

TEST(an_embedded_text_is_shortened_in_place)
{
    struct buf out = buf_in(arena);
    buf_text(&out, "{\"content\":[{\"type\":\"resource\",\"resource\":{\"uri\":\"file:///a\",\"text\":\"");
    for (int i = 0; i < 300; i++)
        buf_printf(&out, "line %d\\n", i);
    buf_text(&out, "\"}}]}");
    struct compaction c = shrink(value_of_str(buf_view(&out)), NULL, "");
    const struct json *resource = json_get_text(&c.result.content->items[0], "resource");
    assert_true(str_is(json_str(json_get_text(resource, "uri")), "file:///a"));
    assert_true(json_str(json_get_text(resource, "text")).len <= 1000);
}

/* 16 MB of line breaks, or of numbers, are cut as one. */
TEST(a_value_with_too_many_parts_is_cut_as_text)
{
    struct buf out = buf_in(arena);
    buf_text(&out, "begin");
    for (int i = 0; i < 250000; i++)
        buf_text(&out, "\nx");
    says(shown(&(struct compaction){.result = shrink_text(&out, NULL, "").result}), "bytes left out]");
}

TEST(images_stay_beside_a_shortened_text)
{
    struct buf out = buf_in(arena);
    buf_printf(&out,
               "{\"content\":[{\"type\":\"image\",\"data\":\"%03000d\",\"mimeType\":\"image/png\"},"
               "{\"type\":\"text\",\"text\":\"%04000d\"}]}",
               0, 0);
    struct compaction c = shrink(value_of_str(buf_view(&out)), NULL, "");
    assert_int_equal(c.result.content->len, 2);
    assert_int_equal(json_str(json_get_text(&c.result.content->items[0], "data")).len, 3000);
    assert_true(json_str(json_get_text(&c.result.content->items[1], "text")).len <= 1000);
}

/* ---- schemas ---- */

static void use_schema(const char *text)
{
    struct why why;
    tool.output = value_of(text);
    assert_int_equal(schema_compile(arena, tool.output, NULL, &tool.output_schema, NULL, &why), OK);
}

static const struct json *structured(const struct json *value)
{
    struct buf out = buf_in(arena);
    buf_text(&out, "{\"content\":[{\"type\":\"text\",\"text\":");
    json_write_string(&out, json_to_str(arena, value));
    buf_text(&out, "}],\"structuredContent\":");
    json_write(&out, value);
    buf_text(&out, "}");
    return value_of_str(buf_view(&out));
}

TEST(a_structured_result_still_matches_its_schema)
{
    use_schema(
        "{\"type\":\"object\",\"required\":[\"events\"],\"properties\":{\"events\":{\"type\":\"array\","
        "\"items\":"
        "{\"type\":\"object\",\"required\":[\"id\",\"body\"],\"properties\":{\"body\":{\"type\":\"string\","
        "\"pattern\":\"^(words )*$\"}}}}}}");
    struct compaction c = shrink(structured(events(20, 20)), NULL, "");
    assert_true(c.done);
    assert_int_equal(schema_validate(tool.output_schema, c.result.structured), SCHEMA_VALID);
    assert_true(json_to_str(arena, c.result.structured).len + json_to_str(arena, c.result.content).len <=
                1000);
    assert_true(json_equal(value_of_str(shown(&c)), c.result.structured));
    note_is(&c, "compaction note: with an output schema");
}

TEST(a_result_that_its_schema_forbids_to_shorten_stays_whole)
{
    use_schema("{\"type\":\"object\",\"required\":[\"events\"],"
               "\"properties\":{\"events\":{\"type\":\"array\",\"minItems\":20}}}");
    struct compaction c = shrink(structured(events(20, 100)), NULL, "");
    tool.compact.max_bytes = 200; /* twenty ids do not fit either */
    c = shrink(structured(events(20, 100)), NULL, "");
    assert_false(c.done);
    assert_int_equal(json_get_text(c.result.structured, "events")->len, 20);
    note_is(&c, "compaction note: an output schema forbids it");
}

/* ---- tokens ---- */

/* Each was cut to a note that was longer than the text: the result grew, and nothing of it was left. */
TEST(of_many_small_blocks_the_first_stay)
{
    const size_t block = sizeof("{\"type\":\"text\",\"text\":\"line number 000\"},") - 1;
    struct buf text = buf_in(arena);
    buf_text(&text, "{\"content\":[");
    for (int i = 0; i < 500; i++)
        buf_printf(&text, "%s{\"type\":\"text\",\"text\":\"line number %03d\"}", i ? "," : "", i);
    buf_text(&text, "]}");
    struct compaction c = shrink(value_of_str(buf_view(&text)), NULL, "");
    assert_true(c.done);
    assert_int_equal(c.from, 500 * block);
    assert_int_equal(c.result.content->len, 1000 / block);
    assert_int_equal(c.to, 1000 / block * block);
    assert_true(str_is(json_str(json_get_text(&c.result.content->items[22], "text")), "line number 022"));
    assert_non_null(memmem(c.note.at, c.note.len, "476 of 500 items", 16));
}

TEST(tokens_are_estimated)
{
    static const struct {
        const char *text;
        size_t least, most; /* counts of real tokenizers, a third more and less */
    } cases[] = {
        {"The quick brown fox jumps over the lazy dog.", 7, 14},
        {"{\"id\":\"e1\",\"title\":\"Team lunch\",\"start\":\"2026-05-01T12:00:00Z\"}", 22, 44},
        {"for (size_t i = 0; i < count; i++) total += sizes[i];", 16, 32},
        {"Straßenbahnhaltestelle", 4, 9},
        {"", 0, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        size_t n = token_estimate(str_of(cases[i].text));
        if (n < cases[i].least || n > cases[i].most)
            fail_msg("%zu tokens in “%s”", n, cases[i].text);
        assert_true(n <= strlen(cases[i].text));
    }
}

TEST(a_budget_in_tokens_is_kept)
{
    tool.compact.max_bytes = 0;
    tool.compact.max_tokens = 300;
    struct compaction c = shrink(events(200, 10), NULL, "");
    assert_true(c.done);
    assert_in_range(token_estimate(shown(&c)), 150, 300);
}

/* What the one does not need is the other's. */
TEST(text_and_structured_value_share_the_budget)
{
    for (unsigned lines = 10; lines <= 1000; lines *= 10)
        for (unsigned count = 1; count <= 100; count *= 10) {
            struct buf out = buf_in(arena);
            buf_text(&out, "{\"content\":[{\"type\":\"text\",\"text\":\"");
            for (unsigned i = 0; i < lines; i++)
                buf_printf(&out, "line %u\\n", i);
            buf_text(&out, "\"}],\"structuredContent\":");
            json_write(&out, events(count, 20));
            buf_byte(&out, '}');
            tool.compact.max_bytes = 3000;
            struct compaction c = shrink(value_of_str(buf_view(&out)), NULL, "");
            size_t wire =
                json_to_str(arena, c.result.content).len + json_to_str(arena, c.result.structured).len;
            assert_true(wire <= 3000);
            assert_true(!c.done || wire >= 2000);
        }
}

/* A value that no share has room for, but the budget has, is no reason to leave the texts as they are. */
TEST(texts_give_way_to_a_value_that_its_schema_keeps)
{
    use_schema("{\"type\":\"object\",\"required\":[\"events\"],"
               "\"properties\":{\"events\":{\"type\":\"array\",\"minItems\":10}}}");
    for (unsigned blocks = 1; blocks <= 1000; blocks *= 10) {
        struct buf out = buf_in(arena);
        buf_text(&out, "{\"content\":[");
        for (unsigned i = 0; i < blocks; i++) {
            buf_printf(&out, "%s{\"type\":\"text\",\"text\":\"", i ? "," : "");
            for (unsigned n = 0; n < 3000 / blocks + 3; n++)
                buf_text(&out, "many words ");
            buf_text(&out, "\"}");
        }
        buf_text(&out, "],\"structuredContent\":");
        json_write(&out, events(10, 1));
        buf_byte(&out, '}');
        struct compaction c = shrink(value_of_str(buf_view(&out)), NULL, "");
        assert_true(c.done);
        assert_int_equal(json_get_text(c.result.structured, "events")->len, 10);
        assert_true(json_to_str(arena, c.result.content).len + json_to_str(arena, c.result.structured).len <=
                    1002);
    }
}

/* ---- properties ---- */

static uint64_t random_state;

static uint32_t below(uint32_t n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % n;
}

static void random_value(struct buf *out, unsigned depth)
{
    static const char *const keys[] = {"id",      "title", "body", "raw",      "items",
                                       "user_id", "at",    "x",    "children", "note"};
    uint32_t kind = below(depth > 4 ? 3 : 8), count;
    switch (kind) {
    case 0:
        buf_printf(out, "%u", below(100000));
        break;
    case 1:
        buf_text(out, below(2) ? "true" : "null");
        break;
    case 2:
    case 3:
        buf_byte(out, '"');
        for (count = below(below(6) ? 12 : 400); count; count--)
            buf_text(out, below(9) ? "wörd " : below(2) ? "\\n" : "2026-05-01 ");
        buf_byte(out, '"');
        break;
    case 4:
    case 5:
        buf_byte(out, '[');
        for (count = below(12); count; count--) {
            random_value(out, depth + 1);
            buf_text(out, count > 1 ? ", " : "");
        }
        buf_byte(out, ']');
        break;
    default:
        buf_byte(out, '{');
        count = below(10);
        for (uint32_t i = 0; i < count; i++) {
            buf_printf(out, "%s\"%s\": ", i ? ",\n  " : "", keys[i]);
            random_value(out, depth + 1);
        }
        buf_byte(out, '}');
    }
}

/* Every id shown is an id of the whole result. */
static void ids_come_from(const struct json *small, struct str whole)
{
    for (uint32_t i = 0; i < small->len && small->type == JSON_ARRAY; i++)
        ids_come_from(&small->items[i], whole);
    for (uint32_t i = 0; i < small->len && small->type == JSON_OBJECT; i++) {
        const struct json_member *m = &small->members[i];
        ids_come_from(&m->value, whole);
        if (str_is(m->key, "id") && m->value.type == JSON_NUMBER)
            assert_non_null(memmem(whole.at, whole.len, m->value.text, m->value.len));
    }
}

TEST(random_results_fit_and_stay_json)
{
    const char *rounds = getenv("TOOLGATE_COMPACT_ROUNDS");
    random_state = hash_random();
    print_message("seed %llu\n", (unsigned long long)random_state);
    unsigned shortened = 0;
    for (long i = rounds ? atol(rounds) : ROUNDS_DEFAULT; i > 0; i--) {
        struct buf out = buf_in(arena);
        buf_text(&out, "{\"id\":7,\"items\":[");
        for (uint32_t n = 1 + below(30); n; n--) {
            random_value(&out, 1);
            buf_text(&out, n > 1 ? "," : "");
        }
        buf_text(&out, "]}");
        tool.compact.max_bytes = below(4) ? 300 + below(4000) : 0;
        tool.compact.max_tokens = tool.compact.max_bytes && below(2) ? 0 : 200 + below(900);
        const struct json *value = value_of_str(buf_view(&out));
        struct compaction c = shrink(value, "{\"id\":5}", "a wörd of 2026"), again;
        if (!c.done)
            continue;
        shortened++;
        struct str text = shown(&c);
        assert_true(!tool.compact.max_bytes ||
                    json_to_str(arena, c.result.content).len <= tool.compact.max_bytes + 2);
        if (tool.compact.max_tokens && token_estimate(text) > tool.compact.max_tokens)
            fail_msg("%zu tokens, %u allowed: " STR_FMT, token_estimate(text), tool.compact.max_tokens,
                     STR_ARG(text));
        const struct json *small = value_of_str(text);
        assert_true(c.note.len > 0 || json_equal(small, value)); /* no note if only spaces were removed */
        assert_true(json_equal(json_get_text(small, "id"), json_get_text(value, "id")));
        ids_come_from(small, buf_view(&out));
        again = shrink(small, "{\"id\":5}", "a wörd of 2026");
        assert_false(again.done);
        arena_free(arena);
        arena = arena_new();
    }
    assert_true(shortened > 50 || rounds);
}

TEST(random_blocks_and_a_value_fit_together)
{
    random_state = hash_random();
    print_message("seed %llu\n", (unsigned long long)random_state);
    for (int i = 0; i < ROUNDS_DEFAULT; i++) {
        struct buf value = buf_in(arena), out = buf_in(arena);
        buf_text(&value, "{\"id\":7,\"items\":[");
        for (uint32_t n = 1 + below(30); n; n--) {
            random_value(&value, 1);
            buf_text(&value, n > 1 ? "," : "");
        }
        buf_text(&value, "]}");
        buf_text(&out, "{\"content\":[");
        for (uint32_t n = below(below(4) ? 4 : 60); n; n--) {
            struct buf other = buf_in(arena);
            random_value(&other, below(6));
            bool image = !below(8);
            buf_printf(&out, "{\"type\":\"%s\",\"%s\":", image ? "image" : "text", image ? "data" : "text");
            json_write_string(&out, image ? STR_LIT("aGk=") : below(3) ? buf_view(&other) : buf_view(&value));
            buf_text(&out, image ? ",\"mimeType\":\"image/png\"}" : "}");
            buf_text(&out, n > 1 ? "," : "");
        }
        buf_text(&out, "],\"structuredContent\":");
        buf_str(&out, buf_view(&value));
        buf_byte(&out, '}');
        tool.compact.max_bytes = 300 + below(8000);
        struct compaction c = shrink(value_of_str(buf_view(&out)), "{\"id\":5}", "a wörd of 2026");
        size_t wire = c.result.structured ? json_to_str(arena, c.result.structured).len : 0;
        for (uint32_t k = 0; k < c.result.content->len; k++)
            if (json_get_text(&c.result.content->items[k], "text"))
                wire += json_to_str(arena, &c.result.content->items[k]).len + 1;
        if (wire > tool.compact.max_bytes && (c.done || c.note.len))
            fail_msg("%zu bytes, %u allowed, done %d, of " STR_FMT "\n-> " STR_FMT STR_FMT, wire,
                     tool.compact.max_bytes, c.done, STR_ARG(buf_view(&out)),
                     STR_ARG(json_to_str(arena, c.result.content)), STR_ARG(c.note));
        arena_free(arena);
        arena = arena_new();
    }
}
