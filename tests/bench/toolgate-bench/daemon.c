/* Starting, watching and ending the bench's daemons. */
#include "daemon.h"

#include "base/clock.h"
#include "cli/daemon_client.h"
#include "echo.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What a full verdict is here: a closed schema with an enum and formats, two rules, a check, the local
 * ledger; and for tools/call a run and its settling. */
static const char policy_text[] =
#include "get_events.lua.h"
    ;

/* A log line a call would measure the disk. */
static const char *const config_texts[] = {
    [BENCH_GATE] = "return { policies = \"policies\", log = { level = \"warn\" }, decisions = false }\n",
    [BENCH_RECORDED] = "return { policies = \"policies\", log = { level = \"warn\" } }\n",
};

static const struct {
    const char *socket, *log, *config;
} names[BENCH_ROLES] = {
    [BENCH_GATE] = {"gate.sock", "gate.log", "gate.lua"},
    [BENCH_RECORDED] = {"recorded.sock", "recorded.log", "recorded.lua"},
    [BENCH_ECHO] = {"echo.sock", "echo.log", NULL},
};

/* ---- the folder ---- */

static void path_in(const struct bench_folder *folder, const char *name, char out[BENCH_PATH_MAX])
{
    snprintf(out, BENCH_PATH_MAX, "%.60s/%s", folder->path, name);
}

static enum err write_file(const struct bench_folder *folder, const char *name, const char *text,
                           struct why *why)
{
    char path[BENCH_PATH_MAX];
    path_in(folder, name, path);
    FILE *file = fopen(path, "we");
    bool written = file && fputs(text, file) >= 0;
    if (file && fclose(file) != 0)
        written = false;
    return written ? OK : err_set(why, ERR_IO, "%s: %s", path, strerror(errno));
}

enum err bench_folder_make(struct bench_folder *folder, struct why *why)
{
    const char *base = getenv("TMPDIR");
    char path[BENCH_PATH_MAX];
    snprintf(folder->path, sizeof(folder->path), "%s/toolgate-bench-XXXXXX",
             base && strlen(base) < 32 ? base : "/tmp");
    if (!mkdtemp(folder->path))
        return err_set(why, ERR_IO, "%s: %s; set TMPDIR to a folder that can be written", folder->path,
                       strerror(errno));
    path_in(folder, "policies", path);
    if (mkdir(path, 0700) != 0)
        return err_set(why, ERR_IO, "%s: %s", path, strerror(errno));
    enum err err = write_file(folder, "policies/get_events.lua", policy_text, why);
    for (int role = BENCH_GATE; !err && role <= BENCH_RECORDED; role++)
        err = write_file(folder, names[role].config, config_texts[role], why);
    return err;
}

static void remove_files(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *entry;
    while (dir && (entry = readdir(dir)))
        unlinkat(dirfd(dir), entry->d_name, 0); /* folders stay */
    if (dir)
        closedir(dir);
    rmdir(path);
}

void bench_folder_drop(const struct bench_folder *folder)
{
    char path[BENCH_PATH_MAX];
    path_in(folder, "policies", path);
    remove_files(path);
    remove_files(folder->path);
}

/* ---- the daemon ---- */

/* $TOOLGATE, else the program beside this one. */
static void toolgate_path(char out[PATH_MAX])
{
    const char *given = getenv("TOOLGATE");
    ssize_t len = given ? 0 : readlink("/proc/self/exe", out, PATH_MAX - 1);
    out[len > 0 ? len : 0] = '\0';
    char *slash = strrchr(out, '/');
    if (given || !slash)
        snprintf(out, PATH_MAX, "%s", given ? given : "toolgate");
    else
        snprintf(slash + 1, (size_t)(out + PATH_MAX - slash - 1), "toolgate");
}

static void serve_echo(const struct bench_daemon *daemon)
{
    struct why why;
    echo_serve(daemon->socket, &why);
    fprintf(stderr, "%s\n", why.text);
    _exit(1);
}

static void become_daemon(const struct bench_folder *folder, const struct bench_daemon *daemon,
                          enum bench_role role, const char *redis, pid_t parent)
{
    char config[BENCH_PATH_MAX], log[BENCH_PATH_MAX];
    path_in(folder, role == BENCH_ECHO ? "" : names[role].config, config);
    path_in(folder, names[role].log, log);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* an interrupted bench leaves nothing running */
    if (getppid() != parent)
        _exit(1);
    int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || dup2(fd, STDERR_FILENO) < 0)
        _exit(1);
    if (role == BENCH_ECHO)
        serve_echo(daemon);
    const char *argv[] = {"toolgate", "serve", "--socket", daemon->socket, "-c", config, NULL, NULL, NULL};
    if (redis) {
        argv[6] = "--redis";
        argv[7] = redis;
    }
    char path[PATH_MAX];
    toolgate_path(path);
    execv(path, (char *const *)argv);
    fprintf(stderr, "%s: %s\n", path, strerror(errno));
    _exit(1);
}

static bool accepts(const struct bench_daemon *daemon)
{
    int fd = daemon_client_socket(daemon->socket, NULL);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static enum err last_words(const struct bench_folder *folder, enum bench_role role, struct why *why)
{
    char log[BENCH_PATH_MAX], text[1024] = "";
    path_in(folder, names[role].log, log);
    FILE *file = fopen(log, "re");
    size_t n = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
    if (file)
        fclose(file);
    text[n] = '\0';
    return err_set(why, ERR_UNAVAILABLE, "the bench's daemon did not start; its log: %s", text);
}

static enum err wait_until_it_accepts(const struct bench_folder *folder, struct bench_daemon *daemon,
                                      enum bench_role role, struct why *why)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    int64_t until = clock_mono_us() + (int64_t)BENCH_START_MS * 1000;
    while (!accepts(daemon)) {
        if (waitpid(daemon->pid, NULL, WNOHANG) == daemon->pid) {
            daemon->pid = 0;
            return last_words(folder, role, why);
        }
        if (clock_mono_us() > until)
            return last_words(folder, role, why);
        nanosleep(&pause, NULL);
    }
    return OK;
}

enum err bench_daemon_start(const struct bench_folder *folder, enum bench_role role, const char *redis,
                            struct bench_daemon *daemon, struct why *why)
{
    pid_t parent = getpid();
    path_in(folder, names[role].socket, daemon->socket);
    daemon->pid = fork();
    if (daemon->pid == 0)
        become_daemon(folder, daemon, role, redis, parent);
    if (daemon->pid < 0) {
        daemon->pid = 0;
        return err_set(why, ERR_IO, "fork: %s", strerror(errno));
    }
    return wait_until_it_accepts(folder, daemon, role, why);
}

void bench_daemon_stop(struct bench_daemon *daemon)
{
    if (!daemon->pid)
        return;
    kill(daemon->pid, SIGTERM);
    waitpid(daemon->pid, NULL, 0);
    daemon->pid = 0;
}

/* "…/task/TID/schedstat" begins with the nanoseconds. */
static int64_t thread_cpu_ns(int tasks, const char *thread)
{
    char name[64];
    long long ns = 0;
    snprintf(name, sizeof(name), "%.32s/schedstat", thread);
    int fd = openat(tasks, name, O_RDONLY | O_CLOEXEC);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (file && fscanf(file, "%lld", &ns) != 1)
        ns = 0;
    if (file)
        fclose(file);
    return ns;
}

int64_t bench_daemon_cpu_ns(const struct bench_daemon *daemon)
{
    char path[64];
    int64_t ns = 0;
    struct dirent *entry;
    snprintf(path, sizeof(path), "/proc/%d/task", (int)daemon->pid);
    DIR *dir = opendir(path);
    while (dir && (entry = readdir(dir)))
        if (entry->d_name[0] != '.')
            ns += thread_cpu_ns(dirfd(dir), entry->d_name);
    if (dir)
        closedir(dir);
    return ns;
}
