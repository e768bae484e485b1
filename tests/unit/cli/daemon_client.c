/* The client of a daemon, against a child process that plays the daemon line by line. */
#include "base/arena.h"
#include "cli/daemon_client.h"
#include "toolgate-bench/load.h"
#include "golden.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/toolgate-client-XXXXXX";
static char path[64];
static struct why why;

static int listening(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    memcpy(address.sun_path, path, strlen(path));
    unlink(path);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(fd, 16), 0);
    return fd;
}

/* Serves one connection after the other: sends `answer` once, or with NULL echoes everything. */
static void play(int fd, const char *answer)
{
    char bytes[65536];
    for (;;) {
        int client = accept(fd, NULL, NULL);
        ssize_t n;
        while ((n = read(client, bytes, sizeof(bytes))) > 0) {
            ssize_t written = write(client, answer ? answer : bytes, answer ? strlen(answer) : (size_t)n);
            if (answer || written < 0)
                break;
        }
        close(client);
    }
}

static pid_t daemon_that_says(const char *answer)
{
    int fd = listening();
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        play(fd, answer);
    }
    close(fd);
    return pid;
}

static void stop(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static int make_folder(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/s", folder);
    return 0;
}

static int drop_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

/* ---- requests ---- */

static enum err ask(const char *answer, struct arena *arena, struct json *result)
{
    pid_t pid = daemon_that_says(answer);
    struct daemon_client *client;
    enum err err = daemon_client_connect(path, &client, &why);
    if (err == OK)
        err = daemon_client_call(client, arena, "m", str_of("{}"), result, &why);
    daemon_client_close(client);
    stop(pid);
    return err;
}

static void call_skips_notifications(void **state)
{
    (void)state;
    struct arena *arena = arena_new();
    struct json result;
    assert_int_equal(ask("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n{\"id\":9,\"result\":1}\n"
                         "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":7}}\n",
                         arena, &result),
                     OK);
    int64_t seven;
    assert_true(json_int(json_get_text(&result, "a"), &seven));
    assert_int_equal(seven, 7);
    arena_free(arena);
}

static void fails_with(const char *answer, enum err expected)
{
    struct arena *arena = arena_new();
    struct json result;
    assert_int_equal(ask(answer, arena, &result), expected);
    golden_row(answer, why.text);
    arena_free(arena);
}

static void errors_are_reported(void **state)
{
    (void)state;
    fails_with("{\"id\":1,\"error\":{\"code\":1,\"message\":\"no such session\"}}\n", ERR_PARSE);
    fails_with("{\"id\":1}\n", ERR_CONFIG);
    fails_with("{\"id\":1,\"result\":[1]}\n", ERR_CONFIG);
    fails_with("{\"id\":1,\"result\":\"a text\"}\n", ERR_CONFIG);
    fails_with("hello\n", ERR_CONFIG);
    fails_with("half a li", ERR_CLOSED);
    golden_check_rows("cli", "daemon client: answers that cannot be used");
}

static void connect_fails_without_a_daemon(void **state)
{
    (void)state;
    struct daemon_client *client;
    unlink(path);
    assert_int_not_equal(daemon_client_connect(path, &client, &why), OK);
    assert_null(client);
    golden_check("cli", "daemon client: there is no socket", why.text);
    close(listening());
    assert_int_not_equal(daemon_client_connect(path, &client, &why), OK);
    assert_non_null(strstr(why.text, "nothing listens"));
}

/* As a daemon does that stops: it has accepted the connection, and reads no more. */
static void a_line_that_nobody_read_is_sent_to_the_next_daemon(void **state)
{
    (void)state;
    struct daemon_client *client;
    char heard[8] = "";
    int fd = listening();
    assert_int_equal(daemon_client_connect(path, &client, &why), OK);
    int stops = accept(fd, NULL, NULL);
    shutdown(stops, SHUT_RD);
    assert_int_equal(daemon_client_send(client, str_of("hello"), &why), OK);
    int next = accept(fd, NULL, NULL);
    assert_int_equal(read(next, heard, sizeof(heard)), 6);
    assert_string_equal(heard, "hello\n");
    shutdown(next, SHUT_RD); /* a line has been read: whether to repeat it is for the caller to say */
    assert_int_equal(daemon_client_send(client, str_of("hello"), &why), ERR_CLOSED);
    daemon_client_close(client);
    close(stops);
    close(next);
    close(fd);
}

/* ---- the bench's load, against an echo ---- */

static void the_load_counts_and_times_replies(void **state)
{
    (void)state;
    pid_t pid = daemon_that_says(NULL);
    struct load load = {path, "toolgate/check", NULL, 1, 4, 0.05};
    struct load_result result;
    assert_int_equal(load_run(&load, &result, &why), OK);
    assert_true(result.answers > 0);
    assert_true(result.all_answers >= result.answers);
    assert_int_equal(result.unwanted, 0);
    assert_true(result.p50_us <= result.p99_us);
    assert_true(result.seconds >= 0.05);
    stop(pid);
}

static void the_load_checks_replies(void **state)
{
    (void)state;
    pid_t pid = daemon_that_says(NULL);
    struct load load = {path, "toolgate/check", "\"verdict\":\"pass\"", 1, 1, 0.02};
    struct load_result result;
    assert_int_equal(load_run(&load, &result, &why), OK);
    assert_int_equal(result.unwanted, result.answers);
    assert_non_null(strstr(result.sample, "get_events"));
    stop(pid);
}

static void the_load_reports_that_the_daemon_ended(void **state)
{
    (void)state;
    pid_t pid = daemon_that_says("x\n");
    struct load load = {path, "toolgate/check", NULL, 1, 1, 1};
    struct load_result result;
    assert_int_equal(load_run(&load, &result, &why), ERR_CLOSED);
    stop(pid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(call_skips_notifications),
        cmocka_unit_test(errors_are_reported),
        cmocka_unit_test(connect_fails_without_a_daemon),
        cmocka_unit_test(a_line_that_nobody_read_is_sent_to_the_next_daemon),
        cmocka_unit_test(the_load_counts_and_times_replies),
        cmocka_unit_test(the_load_checks_replies),
        cmocka_unit_test(the_load_reports_that_the_daemon_ended),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
