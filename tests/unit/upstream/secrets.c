/* Strings with ${…}, expanded from the environment and from files. */

#include "unit.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "upstream/process.h"
#include "upstream/secrets.h"
#include "golden.h"

static struct arena *arena;
static char folder[] = "/tmp/toolgate-secret-XXXXXX";

static void setup(void)
{
    arena = arena_new();
    setenv("API_TOKEN", "s3cret-token", 1);
    setenv("EMPTY", "", 1);
    unsetenv("MISSING");
    assert_non_null(mkdtemp(folder));
}

static void teardown(void)
{
    arena_free(arena);
    assert_int_equal(rmdir(folder), 0);
}

GROUP(setup, teardown)

static void fills(const char *text, const char *expected)
{
    struct str out;
    struct why why = {""};
    if (secrets_expand(arena, str_of(text), NULL, &out, &why) != OK)
        fail_msg("%s: %s", text, why.text);
    assert_string_equal(arena_dup(arena, out).at, expected);
}

static void refuses(const char *text, enum err err)
{
    struct str out;
    struct why why = {""};
    assert_int_equal(secrets_expand(arena, str_of(text), NULL, &out, &why), err);
    golden_row(text, why.text);
    assert_null(strstr(why.text, "s3cret"));
}

static const char *file_with(const char *name, const void *bytes, size_t len)
{
    static char text[300];
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    fclose(file);
    snprintf(text, sizeof(text), "${file:%s}", path);
    return text;
}

static void remove_file(const char *name)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    assert_int_equal(unlink(path), 0);
}

TEST(expands_variables)
{
    fills("plain", "plain");
    fills("", "");
    fills("Bearer ${API_TOKEN}", "Bearer s3cret-token");
    fills("${env:API_TOKEN}/${API_TOKEN}", "s3cret-token/s3cret-token");
    fills("${MISSING:-otherwise}${EMPTY:-}${env:MISSING:-x:y}", "otherwisex:y");
    fills("${API_TOKEN:-otherwise}", "s3cret-token");
}

TEST(leaves_other_text_alone)
{
    fills("$HOME $$ {x} $ }", "$HOME $$ {x} $ }");
    fills("$${API_TOKEN} ${API_TOKEN}", "${API_TOKEN} s3cret-token");
    setenv("NESTED", "${API_TOKEN}", 1);
    fills("${NESTED}", "${API_TOKEN}");
}

TEST(expands_files)
{
    fills(file_with("token", "abc\ndef\r\n\n", 10), "abc\ndef");
    remove_file("token");
}

TEST(names_the_missing_variable)
{
    refuses("x${MISSING}", ERR_NOT_FOUND);
    refuses("${EMPTY}", ERR_NOT_FOUND);
    refuses("${file:/no/such/file}", ERR_IO);
    refuses("${file:/tmp}", ERR_IO);
    refuses("${file:token}", ERR_PARSE);
    golden_check_rows("load", "secrets: what is missing");
}

TEST(rejects_other_forms)
{
    refuses("${input:token}", ERR_PARSE);
    refuses("${API-s3cret}", ERR_PARSE);
    refuses("${}", ERR_PARSE);
    refuses("${1A}", ERR_PARSE);
    refuses("a ${API_TOKEN", ERR_PARSE);
    golden_check_rows("load", "secrets: other forms");
}

TEST(bounds_files)
{
    char *large = calloc(1, SECRET_FILE_MAX_BYTES + 1);
    memset(large, 'x', SECRET_FILE_MAX_BYTES + 1);
    struct str out;
    assert_int_equal(
        secrets_expand(arena, str_of(file_with("large", large, SECRET_FILE_MAX_BYTES)), NULL, &out, NULL),
        OK);
    assert_int_equal(out.len, SECRET_FILE_MAX_BYTES);
    refuses(file_with("large", large, SECRET_FILE_MAX_BYTES + 1), ERR_LIMIT);
    refuses(file_with("large", "a\0b", 3), ERR_PARSE);
    free(large);
    remove_file("large");
    golden_check_rows("load", "secrets: files");
}

static enum err expand_user_file(const char *name, struct str *out, struct why *why)
{
    char text[300];
    snprintf(text, sizeof(text), "${user-file:%u:%s/%s}", (unsigned)geteuid(), folder, name);
    return secrets_expand(arena, str_of(text), NULL, out, why);
}

static void refuses_user_file(const char *name, const char *because, enum err err)
{
    struct str out;
    struct why why = {""};
    assert_int_equal(expand_user_file(name, &out, &why), err);
    golden_row(because, why.text);
}

TEST(reads_a_users_file_only_without_links_and_foreign_writers)
{
    char path[256], link_path[256];
    file_with("own", "abc\n", 4);
    snprintf(path, sizeof(path), "%s/own", folder);
    snprintf(link_path, sizeof(link_path), "%s/link", folder);
    chmod(path, 0600);
    struct str out;
    assert_int_equal(expand_user_file("own", &out, NULL), OK);
    assert_true(str_is(out, "abc"));
    assert_int_equal(symlink(path, link_path), 0);
    refuses_user_file("link", "a symbolic link", ERR_IO);
    remove_file("link");
    assert_int_equal(link(path, link_path), 0);
    refuses_user_file("own", "a hard link", ERR_IO);
    remove_file("link");
    chmod(path, 0620);
    refuses_user_file("own", "mode 0620", ERR_IO);
    file_with("own", "\n", 1);
    chmod(path, 0600);
    refuses_user_file("own", "nothing but a line's end", ERR_NOT_FOUND);
    remove_file("own");
    refuses("${user-file:/x}", ERR_PARSE);
    refuses("${user-file:12}", ERR_PARSE);
    golden_check_rows("load", "secrets: a user's file");
}

TEST(does_not_block_on_a_pipe)
{
    char path[256], text[300];
    snprintf(path, sizeof(path), "%s/pipe", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    snprintf(text, sizeof(text), "${file:%s}", path);
    refuses(text, ERR_IO);
    remove_file("pipe");
    golden_check_rows("load", "secrets: never waits for a pipe");
}

TEST(redacts_expanded_values)
{
    struct secrets used = {NULL};
    struct str out;
    setenv("SHORT", "abc", 1);
    assert_int_equal(secrets_expand(arena, STR_LIT("${API_TOKEN}${SHORT}"), &used, &out, NULL), OK);
    struct str masked = secrets_redact(arena, &used, STR_LIT("bad token s3cret-token/s3cret-token, abc"));
    assert_true(str_is(masked, "bad token ***/***, abc"));
    struct str same = STR_LIT("nothing of it");
    assert_ptr_equal(secrets_redact(arena, &used, same).at, same.at);
    assert_int_equal(secrets_redact(arena, &used, STR_NONE).len, 0);
}

TEST(redacts_the_longest_first)
{
    struct secrets used = {NULL};
    struct str out;
    setenv("LONG", "s3cret-token-and-more", 1);
    assert_int_equal(secrets_expand(arena, STR_LIT("${LONG}${API_TOKEN}"), &used, &out, NULL), OK);
    assert_true(str_is(secrets_redact(arena, &used, STR_LIT("s3cret-token-and-more")), "***"));
}

/* A key of several lines, and a password with a quote, come back in log lines and in JSON. */
TEST(redacts_lines_and_their_json)
{
    struct secrets used = {NULL};
    struct str out;
    setenv("KEY", "-- begin --\nqwertyuiop\r\nx\npass\"word\n", 1);
    assert_int_equal(secrets_expand(arena, STR_LIT("${KEY}"), &used, &out, NULL), OK);
    assert_true(str_is(secrets_redact(arena, &used, STR_LIT("line 2: qwertyuiop")), "line 2: ***"));
    assert_true(str_is(secrets_redact(arena, &used, STR_LIT("{\"k\":\"qwertyuiop\\nx\\npass\\\"word\"}")),
                       "{\"k\":\"***\\nx\\n***\"}"));
}

/* mcpServers files have their secrets written out. */
#define PLAIN "created_at userId OAuth2 HS256 https://auth.example ./tok.txt 8080/@scope GITHUB_TOKEN"
TEST(redacts_what_a_name_says_is_secret)
{
    struct secrets used = {NULL};
    const struct {
        struct str name, value;
    } all[] = {{STR("GITHUB_TOKEN"), STR("ghp-one")},
               {STR("X-Api-Key"), STR("key-two")},
               {STR("Authorization"), STR("Bearer bear-three")},
               {STR("DATABASE_URL"), STR("postgres://u:pw-four@h/db")},
               {STR("AUTHOR"), STR("author-five")},
               {STR("SSH_KEY"), STR("/home/me/.ssh/id")},
               {STR("MAX_TOKEN"), STR("100000")},
               {STR("SORT_KEY"), STR("created_at")},
               {STR("PARTITION_KEY"), STR("userId")},
               {STR("AUTH_TYPE"), STR("OAuth2")},
               {STR("JWT_AUTH"), STR("HS256")},
               {STR("TOKEN_URL"), STR("https://auth.example")},
               {STR("AUTH_HEADER"), STR("Bearer head-six")},
               {STR("--header"), STR("Authorization: Bearer head-seven")},
               {STR(""), STR("X-Api-Key:head-eight")},
               {STR("TOKEN"), STR("./tok.txt")},
               {STR("REGISTRY"), STR("http://localhost:8080/@scope")},
               {STR(""), STR("GITHUB_TOKEN")}};
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        secrets_add_named(arena, &used, all[i].name, all[i].value);
    assert_true(str_is(secrets_redact(arena, &used,
                                      STR_LIT("ghp-one key-two bear-three head-six head-seven head-eight "
                                              "u:pw-four@h author-five /home/me/.ssh/id 100000 " PLAIN)),
                       "*** *** *** *** *** *** u:***@h author-five /home/me/.ssh/id 100000 " PLAIN));
    secrets_add_named(arena, NULL, STR_LIT("TOKEN"), STR_LIT("no place for it"));
}

TEST(builds_environments)
{
    static const char taken[] = "API_TOKEN MISSING PATH";
    const struct name_value list[] = {{STR("PATH"), STR("/opt")}, {STR("TOKEN"), STR("<${API_TOKEN}>")}};
    const struct name_value bad[] = {{STR("TOKEN"), STR("${MISSING}")}};
    const char *const *env;
    struct why why;
    assert_int_equal(environment_build(arena, taken, &(struct name_values){list, 2}, NULL, NULL, &env, &why),
                     OK);
    assert_string_equal(env[0], "API_TOKEN=s3cret-token");
    assert_string_equal(env[1], "PATH=/opt");
    assert_string_equal(env[2], "TOKEN=<s3cret-token>");
    assert_null(env[3]);
    assert_int_equal(environment_build(arena, taken, &(struct name_values){bad, 1}, NULL, NULL, &env, &why),
                     ERR_NOT_FOUND);
    golden_check("load", "secrets: a variable of env is not set", why.text);
}
