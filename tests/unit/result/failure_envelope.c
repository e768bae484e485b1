/*
 * Tables of envelopes and of data that only resembles them. The corpus, if it
 * is found beside the project or at $TOOLGATE_CORPUS, measures the
 * classification of recorded results.
 */
#include "unit.h"
#include "recorded_rows.h"
#include "result/failure_envelope.h"
#include "json/build.h"
#include "json/write.h"

#include <sys/stat.h>

static const struct envelope_call unknown;

static struct envelope of_text(const char *text)
{
    struct result result;
    struct json sent = json_string(str_of(text));
    result_read(arena, &sent, &result);
    return envelope_detect(arena, &result, &unknown);
}

static const char *const kinds[] = {"none", "failed", "transient", "asks"};

static void is(const char *text, enum envelope_kind kind, const char *code)
{
    struct envelope e = of_text(text);
    if (e.kind != kind || (code && strcmp(e.code, code) != 0))
        fail_msg("%s: %s %s, expected %s %s", text, kinds[e.kind], e.code ? e.code : "", kinds[kind],
                 code ? code : "");
}

TEST(failures_are_recognised_with_their_code)
{
    static const char *const failures[][2] = {
        {"{\"error\":\"no such city\"}", "error_field"},
        {"{\"stdout\":\"\",\"stderr\":\"boom\",\"exit_code\":2}", "exit_code"},
        {"{\"output\":\"\",\"returncode\":127}", "exit_code"},
        {"{\"output\":\"error: x\",\"metadata\":{\"exit_code\":1}}", "exit_code"},
        {"Command: make\nOutput: no rule\nError: (none)\nExit Code: 1\nSignal: (none)", "exit_code"},
        {"Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 127\nOutput:\n", "exit_code"},
        {"<returncode>1</returncode>\n<output>\nls: cannot access 'x'\n</output>", "exit_code"},
        {"--- FAIL: TestA\nFAIL\nexit status 1", "exit_code"},
        {"{\"detail\":\"Not found.\"}", "error_text"},
        {"<tool_use_error>File has not been read yet.</tool_use_error>", "error_text"},
        {"bash: foo: command not found", "error_text"},
        {"/bin/sh: 1: foo: not found", "error_text"},
        {"No replacement was performed, old_str `a` did not appear.", "error_text"},
        {"missing required parameter: owner", "error_text"},
        {"Error exporting file: disk full", "error_text"},
        {"{\"result\":{\"type\":\"error\",\"message\":\"no\"}}", "error_field"},
        {"{\"error\":{\"code\":404,\"message\":\"no such city\"}}", "error_field"},
        {"{\"error\":\"city not found\",\"city\":\"Atlantis\"}", "error_field"},
        {"{\"data\":null,\"error\":\"no such city\"}", "error_field"},
        {"{\"error\":true,\"message\":\"no such city\"}", "error_field"},
        {"{\"type\":\"error\",\"error\":{\"type\":\"not_found_error\",\"message\":\"no\"}}", "error_field"},
        {"{\"error\":\"invalid_grant\",\"error_description\":\"expired\"}", "error_field"},
        {"{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{\"code\":-32602,\"message\":\"bad\"}}", "error_field"},
        {"{\"result\":{\"error\":\"no such city\"}}", "error_field"},
        {"{\"success\":false,\"message\":\"no such city\"}", "success_false"},
        {"{\"success\":false}", "success_false"},
        {"{\"ok\":false,\"error\":\"channel_not_found\"}", "success_false"},
        {"{\"isError\":true,\"message\":\"broken\"}", "success_false"},
        {"{\"success\":false,\"results\":[],\"error\":\"no index\"}", "success_false"},
        {"{\"status\":\"error\",\"message\":\"no such city\"}", "status_error"},
        {"{\"status\":\"error\",\"message\":\"no\",\"data\":{\"count\":0},\"path\":\"/x\"}", "status_error"},
        {"{\"status\":\"fail\",\"data\":{\"title\":\"A title is required\"}}", "status_error"},
        {"{\"errors\":[{\"message\":\"Cannot query field\",\"locations\":[{\"line\":1,\"column\":2}]}]}",
         "errors_field"},
        {"{\"errors\":[{\"status\":\"422\",\"title\":\"Invalid\",\"detail\":\"x\"}]}", "errors_field"},
        {"{\"data\":null,\"errors\":[\"no\"]}", "errors_field"},
        {"{\"statusCode\":400,\"message\":\"Bad request\"}", "http_status"},
        {"{\"object\":\"error\",\"status\":404,\"code\":\"object_not_found\",\"message\":\"no page\"}",
         "http_status"},
        {"{\"status\":\"failed\",\"error\":\"exit 1\"}", "status_error"},
        {"{\"status\":\"failed\",\"message\":\"no\"}", "status_error"},
        {"{\"valid\":false}", "valid_false"},
        {"{\"valid\":false,\"message\":\"bad date\"}", "valid_false"},
        {"{\"errors\":[\"title is missing\"]}", "errors_field"},
        {"{\"execution_result\":{\"error\":\"no such city\"}}", "error_field"},
        {"{\"execution_result\":{\"valid\":false},\"tool\":\"x\"}", "valid_false"},
        {"{\"data\":{\"success\":false,\"message\":\"no\"}}", "success_false"},
        {"{\"response\":{\"errors\":[\"no\"]},\"count\":0}", "errors_field"},
        {"{\"output\":\"Error: no such file\"}", "error_text"},
        {"{\"result\":\"{\\\"error\\\":\\\"gone\\\"}\"}", "error_field"},
        {"{\"error\":\"none found\",\"count\":0,\"results\":[]}", "error_field"},
        {"\"Error: no such file\"", "error_text"},
        {"Access denied", "error_text"},
        {"Invalid API key provided.", "error_text"},
        {"Error fetching page: 404", "error_text"},
        {"Error 404: Not found", "error_text"},
        {"Unable to connect to the host", "error_text"},
        {"ValueError: no date", "error_text"},
        {"Traceback (most recent call last):\n  File \"x.py\", line 3\n    f()\nKeyError: 'a'", "error_text"},
        {"{\"type\":\"about:blank\",\"title\":\"Not Found\",\"status\":404,\"detail\":\"no\"}",
         "http_status"},
        {"{\"timestamp\":\"2026-05-01\",\"status\":404,\"error\":\"Not Found\",\"path\":\"/x\"}",
         "error_field"},
        {"Error: user not found", "error_text"},
        {"{\"result\":\"Error: user not found\"}", "error_text"},
        {"Error executing tool add: 1 validation error for add\nb\n  Field required", "error_text"},
        {"Failed to retrieve cryptocurrency data", "error_text"},
        {"MCP error -32602: Tool x not found", "error_text"},
    };
    for (size_t i = 0; i < sizeof(failures) / sizeof(*failures); i++)
        is(failures[i][0], ENVELOPE_FAILED, failures[i][1]);
}

TEST(data_about_failures_is_data)
{
    static const char *const data[] = {
        "{\"error\":null,\"items\":[1]}",
        "{\"stdout\":\"\",\"stderr\":\"\",\"exit_code\":1}",
        "{\"stdout\":\"fine\",\"exit_code\":0}",
        "{\"name\":\"nightly\",\"exit_code\":2}",
        "{\"items\":[{\"output\":\"x\",\"exit_code\":1}]}",
        "Command: grep x\nOutput: (empty)\nError: (none)\nExit Code: 1\nSignal: (none)",
        "<returncode>1</returncode>\n<output>\n</output>",
        "Process exited with code 0\nOutput:\nexit status 1 is described in exit.md",
        "grep: 3 matches\nsrc/a.c:12: exit code 2",
        "how a 502 page looks",
        "{\"detail\":\"Two rooms, a balcony.\"}",
        "{\"error\":\"\",\"errors\":[]}",
        "{\"error\":false}",
        "{\"error\":\"none\",\"x\":1}",
        "{\"errors\":[],\"data\":{\"a\":1}}",
        "{\"success\":true,\"error\":\"deprecated\"}",
        "{\"success\":true}",
        "{\"ok\":true,\"error\":{\"message\":\"x\"}}",
        "[{\"id\":\"j1\",\"status\":\"failed\",\"error\":\"exit 1\"},{\"id\":\"j2\",\"status\":\"done\"}]",
        "{\"jobs\":[{\"id\":\"j1\",\"status\":\"failed\",\"error\":\"exit 1\"}]}",
        "{\"id\":\"j1\",\"status\":\"failed\",\"error\":\"exit 1\"}",
        "{\"id\":\"m1\",\"status\":\"error\",\"message\":\"disk full\",\"host\":\"a\"}",
        "{\"host\":\"a\",\"status\":\"error\",\"message\":\"disk full\"}",
        "{\"name\":\"build\",\"error\":\"exit 1\",\"log\":\"x\"}",
        "{\"status\":\"failed\",\"items\":[1,2]}",
        "{\"success\":false,\"tests\":[{\"name\":\"a\",\"passed\":false}],\"message\":\"1 of 2\"}",
        "{\"results\":[{\"source\":\"a\",\"success\":false,\"error\":\"no file\"}]}",
        "{\"errors\":[{\"line\":3,\"message\":\"missing ;\",\"severity\":\"error\"}]}",
        "{\"errors\":[{\"message\":\"x\"}],\"data\":{\"user\":{\"id\":1}}}",
        "{\"errors\":3,\"warnings\":4}",
        "{\"statusCode\":404,\"body\":\"<html>\",\"headers\":{\"a\":\"b\"}}",
        "{\"status\":404,\"url\":\"https://example.com\",\"message\":\"Not Found\",\"links\":[\"a\"]}",
        "{\"code\":404}",
        "{\"error\":0.03,\"estimate\":1.5}",
        "{\"estimate\":1.5,\"error\":\"0.05\",\"unit\":\"m\"}",
        "{\"message\":\"Failed to load resource\",\"level\":\"error\"}",
        "{\"isError\":false,\"message\":\"fine\"}",
        "Error: a\nError: b\nError: c",
        "Error handling in Go is done by values",
        "Error: index out of range - forum\nhttps://example.com/q/1\nAnswer",
        "Error messages: how to write them",
        "{\"id\":\"c1\",\"valid\":false}",
        "{\"coupon\":\"X\",\"valid\":false}",
        "{\"data\":{\"id\":\"j1\",\"error\":\"exit 1\"}}",
        "{\"data\":{\"error\":\"exit 1\"},\"total\":3,\"page\":1}",
        "{\"object\":\"page\",\"status\":\"failed\",\"message\":\"x\"}",
        "{\"success\":true,\"data\":{\"error\":\"0.05\"}}",
        "def f():\n    raise ValueError('Error: x')",
        "Errors: 0",
        "Failed to appear in court, the defendant was fined.",
        "The timeout is 30 s; try again later if it is reached.",
        "Speed test failed: No Connection.",
        "{\"timeout\":30,\"retry_after\":5}",
        "{\"rate_limit\":{\"limit\":60,\"remaining\":0}}",
        "{\"id\":\"o1\",\"requires_confirmation\":true,\"message\":\"gift wrap\"}",
        "{\"requires_confirmation\":true,\"amount\":12}",
        "{\"word\":\"bank\",\"ambiguous\":true}",
        "{\"matches\":[1,2],\"count\":2}",
        "{\"options\":[\"a\"],\"question\":\"What is the capital of Peru?\"}",
        "Multiple matches for 'go' were found:\n1. go\n2. gopher",
        "",
        "null",
    };
    for (size_t i = 0; i < sizeof(data) / sizeof(*data); i++)
        is(data[i], ENVELOPE_NONE, NULL);
}

static enum envelope_kind of_call(const char *tool, const char *arguments, const char *text)
{
    struct json sent = json_string(str_of(text));
    struct result result;
    result_read(arena, &sent, &result);
    struct envelope_call call = {str_of(tool), value_of(arguments)};
    return envelope_detect(arena, &result, &call).kind;
}

TEST(what_a_checker_or_a_poll_finds_is_its_answer)
{
    static const char *const answers[][2] = {
        {"validate_form", "{\"valid\":false,\"errors\":[\"title is missing\"]}"},
        {"is-valid-email", "{\"valid\":false}"},
        {"lint_file", "{\"errors\":[\"missing ;\"]}"},
        {"get_job_status", "{\"status\":\"failed\",\"error\":\"exit 1\"}"},
        {"poll_build", "{\"status\":\"failed\"}"},
    };
    for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
        assert_int_equal(ENVELOPE_NONE, of_call(answers[i][0], "{}", answers[i][1]));
        assert_int_equal(ENVELOPE_FAILED, of_call("create_event", "{}", answers[i][1]));
    }
    assert_int_equal(ENVELOPE_FAILED, of_call("createCheckout", "{}", "{\"valid\":false}"));
    assert_int_equal(ENVELOPE_NONE, of_call("emailValidate", "{}", "{\"valid\":false}"));
    assert_int_equal(ENVELOPE_FAILED,
                     of_call("get_job_status", "{}", "{\"status\":\"error\",\"message\":\"no such job\"}"));
}

TEST(a_member_that_repeats_an_argument_is_no_data)
{
    static const char text[] = "{\"city\":\"Atlantis\",\"error\":\"not found\"}";
    assert_int_equal(ENVELOPE_FAILED, of_call("weather", "{\"city\":\"Atlantis\"}", text));
    assert_int_equal(ENVELOPE_NONE, of_call("weather", "{\"city\":\"Rome\"}", text));
}

TEST(a_long_text_is_data)
{
    char text[2048] = "Error: ";
    memset(text + 7, 'x', sizeof(text) - 8);
    is(text, ENVELOPE_NONE, NULL);
    text[ENVELOPE_TEXT_MAX_BYTES] = '\0';
    is(text, ENVELOPE_FAILED, "error_text");
}

TEST(a_text_beside_an_image_is_data)
{
    static const char with_image[] = "{\"content\":[{\"type\":\"text\",\"text\":\"Error: none\"},"
                                     "{\"type\":\"image\",\"data\":\"aGk=\",\"mimeType\":\"image/png\"}]}";
    struct result result;
    result_read(arena, value_of(with_image), &result);
    assert_int_equal(ENVELOPE_NONE, envelope_detect(arena, &result, &unknown).kind);
}

static void waits(const char *text, const char *code, int after_s)
{
    is(text, ENVELOPE_TRANSIENT, code);
    if (of_text(text).after_s != after_s)
        fail_msg("%s: %lld s, expected %d", text, (long long)of_text(text).after_s, after_s);
}

TEST(transient_failures_are_recognised_with_their_wait)
{
    waits("Error: 503 Service Unavailable", "overloaded", -1);
    waits("Error: HTTP 429", "rate_limited", -1);
    waits("{\"error\":\"Too many requests\",\"retry_after\":30}", "rate_limited", 30);
    waits("{\"error\":{\"code\":429,\"message\":\"slow down\"}}", "rate_limited", -1);
    waits("{\"error\":{\"code\":429,\"message\":\"slow\",\"details\":[{\"retryDelay\":\"34.2s\"}]}}",
          "rate_limited", 35);
    waits("{\"success\":false,\"message\":\"Rate limit exceeded, try again in 5 minutes\"}", "rate_limited",
          300);
    waits("{\"statusCode\":503,\"message\":\"busy\",\"retryAfterMs\":1500}", "overloaded", 2);
    waits("Error: Rate limit exceeded. Retry-After: 12", "rate_limited", 12);
    waits("Error: try again in 2m", "later", 120);
    waits("Tool call timed out.", "timed_out", -1);
    waits("Rate limit reached. Please wait 20 seconds.", "rate_limited", 20);
    waits("{\"error\":\"rate limit\",\"retry_after\":99999999}", "rate_limited", ENVELOPE_WAIT_MAX_S);
    waits("{\"error\":\"ETIMEDOUT 10.0.0.1\"}", "timed_out", -1);
    waits("{\"statusCode\":500,\"message\":\"boom\"}", "server_error", -1);
    waits("Error: HTTP 520", "server_error", -1);
    waits("Error: update is not a fast forward", "conflict", -1);
    waits("Error: Unable to create '.git/index.lock': File exists.", "busy", -1);
    waits("{\"error\":\"database is locked\"}", "busy", -1);
}

TEST(permanent_failures_have_no_wait)
{
    is("Error: timeout must be a positive number", ENVELOPE_FAILED, "error_text");
    is("Error: 'retry' is no such option", ENVELOPE_FAILED, "error_text");
    is("Error: please try again with a valid id", ENVELOPE_FAILED, "error_text");
    is("Error: order 503 not found", ENVELOPE_FAILED, "error_text");
    is("Error: Too many reservations", ENVELOPE_FAILED, "error_text");
    is("{\"error\":\"exit code 1\"}", ENVELOPE_FAILED, "error_field");
    is("{\"statusCode\":501,\"message\":\"not implemented\"}", ENVELOPE_FAILED, "http_status");
}

/* An error whose structured content says nothing of it is what its words say. */
TEST(words_beside_structured_content_tell_the_kind_of_an_error)
{
    static const char *const errors[][2] = {{"{\"request\":\"a1\"}", "rate_limited"},
                                            {"{\"success\":false}", "success_false"}};
    for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
        struct result result;
        struct str sent = arena_printf(arena,
                                       "{\"isError\":true,\"structuredContent\":%s,\"content\":[{\"type\":"
                                       "\"text\",\"text\":\"429 Too Many Requests\"}]}",
                                       errors[i][0]);
        result_read(arena, result_json_of_text(arena, sent), &result);
        assert_string_equal(errors[i][1], envelope_of_error(arena, &result).code);
    }
}

/* The event loop waits for the search: what stands behind so many bytes is not looked at. */
TEST(a_huge_error_is_searched_at_its_beginning)
{
    struct buf text = buf_in(arena);
    struct result result;
    buf_text(&text, "{\"error\":{");
    for (unsigned i = 0; i < 3 * 32; i++) {
        if (i % 32 == 0)
            buf_printf(&text, "%s\"part%u\":[", i ? "]," : "", i / 32);
        buf_printf(&text, "%s\"%*s\"", i % 32 ? "," : "", 2500, "x");
    }
    buf_text(&text, "]},\"message\":\"rate limit exceeded\"}");
    result_read(arena, result_json_of_text(arena, buf_view(&text)), &result);
    assert_string_equal(envelope_of_error(arena, &result).code, "error_field");
}

static void asks_as(const char *text, const char *code, const char *question, const char *choices)
{
    is(text, ENVELOPE_NEEDS_INPUT, code);
    struct envelope e = of_text(text);
    struct buf written = buf_in(arena);
    if (e.choices)
        json_write(&written, e.choices);
    if (!str_is(e.question, question) || !str_is(buf_view(&written), choices))
        fail_msg("%s: '" STR_FMT "' " STR_FMT, text, STR_ARG(e.question), STR_ARG(buf_view(&written)));
}

TEST(questions_for_the_user_are_found_with_their_choices)
{
    asks_as("{\"need_user_input\":true,\"question\":\"Which Ann?\",\"choices\":[\"a\",\"b\"]}", "user_input",
            "Which Ann?", "[\"a\",\"b\"]");
    asks_as("{\"need_user_input\":{\"prompt\":\"Which Ann?\",\"options\":[1,2]}}", "user_input", "Which Ann?",
            "[1,2]");
    asks_as("{\"needUserInput\":\"Which Ann?\"}", "user_input", "Which Ann?", "");
    asks_as("{\"status\":\"need_user_input\",\"message\":\"Which Ann?\"}", "user_input", "Which Ann?", "");
    asks_as("{\"coverage\":\"NEED_USER_INPUT\",\"question\":\"Which Ann?\"}", "user_input", "Which Ann?", "");
    asks_as("{\"requires_confirmation\":true,\"message\":\"Delete 5 files?\"}", "user_input",
            "Delete 5 files?", "");
    asks_as("{\"success\":false,\"needs_clarification\":\"Which Ann?\"}", "user_input", "Which Ann?", "");
    asks_as("{\"ambiguous\":true,\"candidates\":[{\"id\":1},{\"id\":2}]}", "ambiguous", "",
            "[{\"id\":1},{\"id\":2}]");
    asks_as("{\"error\":\"Multiple matches for Ann\",\"candidates\":[\"Ann A\",\"Ann B\"]}", "ambiguous",
            "Multiple matches for Ann", "[\"Ann A\",\"Ann B\"]");
    is("Multiple matches for Ann. Which one do you mean?", ENVELOPE_NEEDS_INPUT, "ambiguous");
}

TEST(only_the_first_choices_are_kept)
{
    struct buf text = buf_in(arena);
    buf_text(&text, "{\"ambiguous\":true,\"candidates\":[0");
    for (int i = 1; i < 50; i++)
        buf_printf(&text, ",%d", i);
    buf_text(&text, "]}");
    buf_byte(&text, '\0');
    struct envelope e = of_text(text.at);
    assert_int_equal(ENVELOPE_CHOICES_MAX, e.choices->len);
    assert_int_equal(50 - ENVELOPE_CHOICES_MAX, e.choices_left_out);
}

/* ---- recorded results ------------------------------------------------------------- */

static struct {
    unsigned rows, fine, false_alarms, failures, caught, soft, soft_caught, transient, waited, not_transient,
        waited_in_vain;
} tally;

static bool is_env(struct str env, const char *a, const char *b, const char *c)
{
    return str_is(env, a) || str_is(env, b) || str_is(env, c);
}

/* As if no server had set isError. */
static void judge_row(const struct json *row)
{
    struct str env = json_str(json_get_text(row, "env"));
    struct result result;
    result_read(arena, json_get_text(row, "result"), &result);
    struct envelope_call call = {json_str(json_get_text(row, "tool")), json_get_text(row, "arguments")};
    struct envelope e = envelope_detect(arena, &result, &call);
    bool fails = e.kind == ENVELOPE_FAILED || e.kind == ENVELOPE_TRANSIENT;
    bool waits = envelope_of_error(arena, &result).kind == ENVELOPE_TRANSIENT;
    tally.rows++;
    if (str_is(env, "ok")) {
        tally.fine++;
        tally.false_alarms += e.kind != ENVELOPE_NONE;
        if (e.kind != ENVELOPE_NONE)
            printf("gate_envelope: labelled ok, read as %s (%s): " STR_FMT "\n", kinds[e.kind], e.code,
                   STR_ARG(str_cut(json_str(json_get_text(row, "result")), 150)));
        return;
    }
    tally.failures++;
    tally.caught += fails;
    if (!fails)
        printf("gate_envelope: missed: " STR_FMT "\n",
               STR_ARG(str_cut(json_str(json_get_text(row, "result")), 300)));
    tally.soft += str_is(env, "soft_error");
    tally.soft_caught += str_is(env, "soft_error") && fails;
    tally.transient += str_is(env, "transient");
    tally.waited += str_is(env, "transient") && waits;
    tally.not_transient += is_env(env, "domain_error", "argument_error", "unknown_tool");
    tally.waited_in_vain += is_env(env, "domain_error", "argument_error", "unknown_tool") && waits;
}

/* One row labelled ok is {"status":"error",…}: the label is wrong. */
TEST(recorded_results_are_classified)
{
    each_recorded_row(judge_row);
    printf("gate_envelope: of %u results %u are fine, %u of them taken for failures; of %u failures %u are "
           "recognised (%u of %u that no error flag tells); of %u that pass %u, and %u of %u that do not\n",
           tally.rows, tally.fine, tally.false_alarms, tally.failures, tally.caught, tally.soft_caught,
           tally.soft, tally.transient, tally.waited, tally.waited_in_vain, tally.not_transient);
    assert_true(tally.false_alarms <= 1);
    assert_int_equal(tally.soft, tally.soft_caught);
    assert_true(tally.caught * 100 >= tally.failures * 95);
    assert_true(tally.waited * 100 >= tally.transient * 90);
    assert_int_equal(0, tally.waited_in_vain);
}
