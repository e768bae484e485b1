/*
 * The whole daemon in a thread of a fuzzer's process, its clients, and what each line from it must be.
 */
#ifndef TOOLGATE_TESTS_FUZZED_DAEMON_H
#define TOOLGATE_TESTS_FUZZED_DAEMON_H

#include "require.h"

#include "base/buf.h"
#include "server/server.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <yajl/yajl_tree.h>

#define PATIENCE_MS 10000

struct fuzzed_file {
    const char *name, *text; /* HOME in the text: the daemon's folder */
};

static struct sockaddr_un address = {.sun_family = AF_UNIX};
static char home[] = "/tmp/toolgate-fuzz-XXXXXX";

static void *run_daemon(void *unused)
{
    char config[64];
    struct why why;
    (void)unused;
    char policies[64];
    snprintf(config, sizeof(config), "%s/toolgate.lua", home);
    snprintf(policies, sizeof(policies), "%s/policies", home);
    const struct config_sources sources = {
        .file = config, .socket = address.sun_path, .policies = policies, .no_watch = true};
    enum err err = server_run(&sources, &why);
    fprintf(stderr, "the daemon has ended: %s\n", err ? why.text : "a drain");
    abort();
}

static void (*while_starting)(void); /* what the daemon waits for before it listens; NULL: nothing */

static int connect_to(const struct sockaddr_un *to)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(fd >= 0);
    for (int tries = 0; connect(fd, (const struct sockaddr *)to, sizeof(*to)) != 0; tries++) {
        REQUIRE(tries < PATIENCE_MS);
        if (while_starting)
            while_starting();
        poll(NULL, 0, 1);
    }
    return fd;
}

static int connect_to_daemon(void)
{
    return connect_to(&address);
}

static void make_home(void)
{
    REQUIRE(mkdtemp(home));
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/s", home);
}

/* After make_home. */
static void start_daemon(const struct fuzzed_file *files, size_t count)
{
    pthread_t thread;
    char path[128];
    signal(SIGPIPE, SIG_IGN);
    snprintf(path, sizeof(path), "%s/policies", home);
    REQUIRE(mkdir(path, 0700) == 0);
    for (size_t i = 0; i < count; i++) {
        snprintf(path, sizeof(path), "%s/%s", home, files[i].name);
        FILE *file = fopen(path, "w");
        const char *text = files[i].text, *at = strstr(text, "HOME");
        REQUIRE(file);
        if (at)
            fprintf(file, "%.*s%s", (int)(at - text), text, home);
        REQUIRE(fputs(at ? at + strlen("HOME") : text, file) >= 0 && fclose(file) == 0);
    }
    REQUIRE(pthread_create(&thread, NULL, run_daemon, NULL) == 0);
    sigset_t all; /* the deadlines of policies are signals, which are the daemon's */
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    close(connect_to_daemon());
}

static inline bool has(yajl_val message, const char *key)
{
    const char *path[] = {key, NULL};
    return yajl_tree_get(message, path, yajl_t_any) != NULL;
}

/* True: an answer; false: a notification, or a request of the daemon. Arenas are the daemon's: they know no
 * threads. */
static inline bool check_message(struct str line)
{
    static const char *const version[] = {"jsonrpc", NULL};
    char why[200], *text = strndup(line.at, line.len);
    REQUIRE(text && strlen(text) == line.len);
    yajl_val message = yajl_tree_parse(text, why, sizeof(why));
    REQUIRE(YAJL_IS_OBJECT(message));
    const char *named = YAJL_GET_STRING(yajl_tree_get(message, (const char **)version, yajl_t_string));
    REQUIRE(named && strcmp(named, "2.0") == 0);
    bool result = has(message, "result"), answers = result || has(message, "error");
    REQUIRE(answers || has(message, "method"));
    REQUIRE(!result || has(message, "id"));
    yajl_tree_free(message);
    free(text);
    return answers;
}

#endif
