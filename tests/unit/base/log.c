/* Error messages, and log lines that no value can forge. */
#include "unit.h"
#include "base/err.h"
#include "base/log.h"

#include <unistd.h>

static char path[] = "/tmp/toolgate-log-XXXXXX";
static char lines[8192];

static void make_file(void)
{
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
}

static void drop_file(void)
{
    log_open(LOG_INFO, LOG_FORMAT_TEXT, NULL, NULL);
    assert_int_equal(unlink(path), 0);
}

GROUP(make_file, drop_file)

static void open_log(enum log_level level, enum log_format format)
{
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(log_open(level, format, path, NULL), OK);
}

static const char *logged(void)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    lines[fread(lines, 1, sizeof(lines) - 1, file)] = '\0';
    fclose(file);
    return lines;
}

TEST(codes_have_names)
{
    assert_string_equal(err_name(OK), "ok");
    assert_string_equal(err_name(ERR_CONFIG), "config_error");
    assert_string_equal(err_name(ERR_UNAVAILABLE), "unavailable");
    assert_string_equal(err_name((enum err) - 99), "unknown_error");
    assert_string_equal(err_name((enum err)5), "unknown_error");
}

TEST(failures_carry_a_sentence)
{
    struct why why;
    assert_int_equal(err_set(&why, ERR_PARSE, "line %d: %s", 3, "odd"), ERR_PARSE);
    err_prefix(&why, "policy.lua");
    assert_string_equal(why.text, "policy.lua: line 3: odd");
    assert_int_equal(err_set(NULL, ERR_IO, "nobody asks"), ERR_IO);
    err_prefix(NULL, "nobody asks");
}

TEST(long_sentences_are_cut)
{
    struct why why;
    char text[ERR_MESSAGE_MAX_BYTES * 2];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    err_set(&why, ERR_IO, "%s", text);
    assert_int_equal(strlen(why.text), ERR_MESSAGE_MAX_BYTES - 1);
    err_prefix(&why, text);
    assert_true(strlen(why.text) < ERR_MESSAGE_MAX_BYTES);
}

TEST(events_are_lines)
{
    open_log(LOG_INFO, LOG_FORMAT_TEXT);
    log_event(LOG_INFO, "call", LOG_TEXT("tool", "get_events"), LOG_NUM("us", -12), LOG_TEXT("none", ""));
    log_event(LOG_DEBUG, "hidden");
    log_event(LOG_WARN, "bare");
    assert_non_null(strstr(logged(), "Z info call tool=get_events us=-12\n"));
    assert_non_null(strstr(lines, "Z warn bare\n"));
    assert_null(strstr(lines, "hidden"));
}

TEST(values_cannot_forge_lines)
{
    open_log(LOG_INFO, LOG_FORMAT_TEXT);
    log_event(LOG_INFO, "call", LOG_TEXT("name", "a\nb c=\"d\"\\\x01"));
    assert_non_null(strstr(logged(), "call name=\"a\\u000ab c=\\\"d\\\"\\\\\\u0001\"\n"));
    open_log(LOG_INFO, LOG_FORMAT_JSON);
    log_event(LOG_ERROR, "call", LOG_TEXT("name", "a\n\"b"), LOG_NUM("n", 5));
    assert_non_null(
        strstr(logged(), "\"level\":\"error\",\"event\":\"call\",\"name\":\"a\\u000a\\\"b\",\"n\":5}\n"));
}

TEST(long_values_are_cut)
{
    char text[3 * LOG_VALUE_MAX_BYTES];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    open_log(LOG_INFO, LOG_FORMAT_TEXT);
    log_event(LOG_INFO, "call", LOG_TEXT("name", text));
    assert_true(strlen(logged()) < LOG_VALUE_MAX_BYTES + 100);
}

TEST(a_missing_folder_is_an_error)
{
    struct why why;
    assert_int_equal(log_open(LOG_INFO, LOG_FORMAT_TEXT, "/no/such/folder/log", &why), ERR_IO);
    assert_non_null(strstr(why.text, "/no/such/folder/log: No such file"));
}
