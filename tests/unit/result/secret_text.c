/* Secrets in free text: what is one, where it ends, and what is none. */
#include "unit.h"
#include "result/secret_text.h"

static bool is_secret(void *owner, struct str name)
{
    static const char *const ends[] = {"password", "token", "secret", "key", "authorization", "pwd"};
    (void)owner;
    for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
        if (str_contains_nocase(name, str_of(ends[i])))
            return true;
    return false;
}

static const struct secret_names names = {is_secret, NULL};

/* The text with each secret as "*". */
static const char *masked(const char *given)
{
    static char out[4096];
    struct str text = str_of(given);
    size_t done = 0, at, len, n = 0;
    while (secret_text_find(text, done, &names, &at, &len)) {
        assert_true(at >= done && at + len <= text.len && len > 0);
        n += (size_t)snprintf(out + n, sizeof(out) - n, "%.*s*", (int)(at - done), text.at + done);
        done = at + len;
    }
    snprintf(out + n, sizeof(out) - n, "%s", text.at + done);
    return out;
}

TEST(dates_are_told_by_their_shape)
{
    static const char *const no_dates[] = {"2026-05-0a",
                                           "2026-05-0/",
                                           "2026-05-0:",
                                           "x026-05-01",
                                           "2026:05-01",
                                           "2026-05-01T00:00:00z",
                                           "2026-05-01T0\xfa:00:00Z",
                                           "2026-05-01 00:00:00Z",
                                           "20260501T000000000Z0",
                                           "2026-05-01T"};
    assert_true(secret_text_is_date(STR_LIT("2026-05-01")));
    assert_true(secret_text_is_date(STR_LIT("9999-99-99T99:99:99Z")));
    assert_false(secret_text_is_date(STR_NONE));
    for (size_t i = 0; i < sizeof(no_dates) / sizeof(*no_dates); i++)
        if (secret_text_is_date(str_of(no_dates[i])))
            fail_msg("%s", no_dates[i]);
}

TEST(secrets_are_found)
{
    static const char *const rows[][2] = {
        {"mysql --password hunter2 -h db", "mysql --password * -h db"},
        {"2026-05-01T00:00:00Z pwd=hunter2", "2026-05-01T00:00:00Z pwd=*"},
        {"0--pwd abc", "0--pwd abc"}, /* as long as a date; no blank is before the dashes */
        {"://01:2026-05-01@db", "://01:*@db"},
        {"pwd=05-01T00:00:00:Z", "pwd=*"}, /* as long as a time */
        {"mysql --password=hunter2 -h db", "mysql --password=* -h db"},
        {"PGPASSWORD=hunter2 psql -c 'select 1'", "PGPASSWORD=* psql -c 'select 1'"},
        {"export DB_PASSWORD='a b'; run", "export DB_PASSWORD='*'; run"},
        {"curl -u ana:s3cret https://x.org/a", "curl -u ana:* https://x.org/a"},
        {"curl --user \"ana:s3 cret\" https://x.org/a", "curl --user \"ana:*\" https://x.org/a"},
        {"git clone https://ana:s3cret@host.org/r.git", "git clone https://ana:*@host.org/r.git"},
        {"psql postgres://u:p@db:5432/x", "psql postgres://u:*@db:5432/x"},
        {"https://abcdefghij0123456789abcd@github.com/x", "https://*@github.com/x"},
        {"curl -H 'Authorization: Bearer abc.def-123'", "curl -H 'Authorization: *'"},
        {"curl -H \"X-Api-Key: 12345\" x", "curl -H \"X-Api-Key: *\" x"},
        {"the header is bearer 0123456789abcdef, ok", "the header is bearer *, ok"},
        {"use sk-proj-0123456789abcdef please", "use * please"},
        {"key: ghp_0123456789012345678901234567890123", "key: *"},
        {"AKIAIOSFODNN7EXAMPLE", "*"},
        {"id AKIAIOSFODNN7EXAMPLE.", "id *"},
        {"xoxb-123456789012-abcdefghijkl", "*"},
        {"AIzaSyA0123456789012345678901234567890", "*"},
        {"jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abc end", "jwt * end"},
        {"{\"password\":\"x\",\"a\":1}", "{\"password\":\"*\",\"a\":1}"},
        {"{\\\"password\\\":\\\"x\\\",\\\"a\\\":1}", "{\\\"password\\\":\\\"*\\\",\\\"a\\\":1}"},
        {"https://x.org/?token=abc&b=1", "https://x.org/?token=*&b=1"},
        {"password: hunter2\nuser: ana", "password: *\nuser: ana"},
        {"password := \"hunter2\"", "password := \"*\""},
        {"-----BEGIN RSA PRIVATE KEY-----\nMIIB\n-----END RSA PRIVATE KEY-----\nrest",
         "*-----END RSA PRIVATE KEY-----\nrest"},
        {"-----BEGIN PRIVATE KEY-----\nMIIB", "*"},
        {"a --token a1 --secret 'b c' d", "a --token * --secret '*' d"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        assert_string_equal(masked(rows[i][0]), rows[i][1]);
}

TEST(other_texts_are_left_alone)
{
    static const char *const texts[] = {
        "",
        "2026-05-01T00:00:00Z",
        "by_time_span",
        "'password': expected a string, got 5",
        "if (token == other) return",
        "mysql --password $PW -h db",
        "PGPASSWORD=\"$PW\" psql",
        "--password <your password>",
        "ana@example.com wrote: see https://x.org/a:b",
        "https://x.org:8080/path?q=1",
        "the bearer capability is used",
        "task-force-alpha-bravo-charlie-delta",
        "docker run -p 80:80 -u 1000 image",
        "password=[redacted]",
        "token",
        "password=",
        "x --token",
        "a = b",
        "risk-averse-investors-like-bonds-and-cash",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        assert_string_equal(masked(texts[i]), texts[i]);
}

/* A find refuses a call: words in the form of a key are none. */
TEST(keys_of_known_form_are_named)
{
    static const char *const rows[][2] = {
        {"use ghp_0123456789abcdefABCDEF0123456789abcd now", "github_token"},
        {"AKIAIOSFODNN7EXAMPLE", "aws_access_key"},
        {"xoxb-123456789012-abcdefghijkl", "slack_token"},
        {"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abc", "jwt"},
        {"-----BEGIN RSA PRIVATE KEY-----\nMIIE", "private_key"},
        {"eyJhIjoxLCJiIjoyLCJjIjozLCJkIjo0fQabcdefgh", ""}, /* base64 of a JSON object */
        {"sk-learn-some-more-words-here", ""},
        {"sk-12-34-56-78-90-ab-cd", ""},
        {"password=hunter2", ""},
        {"https://ana:s3cret@host.org/", ""},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        size_t at, len;
        struct str name = STR_NONE;
        bool found = secret_text_find_key(str_of(rows[i][0]), 0, &at, &len, &name);
        assert_int_equal(found, *rows[i][1] != '\0');
        assert_true(!found || str_is(name, rows[i][1]));
    }
}

/* Finds all secrets of a text, or all keys. */
static void find_all(struct str text, bool keys)
{
    size_t at, len;
    struct str name;
    for (size_t from = 0; from < text.len;) {
        bool found = keys ? secret_text_find_key(text, from, &at, &len, &name)
                          : secret_text_find(text, from, &names, &at, &len);
        if (!found)
            return;
        assert_true(len && at >= from && at + len <= text.len);
        from = at + len;
    }
}

/* Four megabytes of each unit: a scan that looks at a run once for each of its bytes would take hours. */
TEST(each_run_is_read_once)
{
    static const char *const units[] = {
        "-",
        "--",
        "--a",
        "_",
        "a_",
        "ghp_",
        "ghp_-",
        "eyJ",
        "eyJ-",
        "eyJ.-",
        "sk-",
        "sk-1a",
        "AKIA",
        "-u ",
        "-u \"",
        "-u '\\\"",
        "--user x",
        "--password ",
        "password=",
        "password=$",
        "password=<",
        "password=\"$",
        "password=[redacted",
        "token: \\\"",
        "= ",
        " =",
        ":=",
        "'",
        " '",
        "by '",
        "identified by '$",
        ">",
        "<token>",
        "<token><",
        "value=",
        "name=token value=$",
        "key: ",
        "api key: $",
        "-p",
        " -p",
        "mysql -p$",
        "Basic ",
        "Basic dXNl",
        "Bearer ",
        "bearer.",
        "://",
        "://a:",
        "://a:b",
        "-----BEGIN ",
        "-----BEGIN PRIVATE KEY",
        "B",
        "b",
        "\\",
        "\"",
        "'`\"",
        "x=y",
    };
    const size_t len = 4 * 1024 * 1024;
    char *text = malloc(len);
    assert_non_null(text);
    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
        for (size_t at = 0, unit = strlen(units[i]); at < len; at++)
            text[at] = units[i][at % unit];
        find_all((struct str){text, len}, false);
        find_all((struct str){text, len}, true);
    }
    free(text);
}
