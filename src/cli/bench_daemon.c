/* Starting, watching and ending the bench's daemons. */
#include "cli/bench_daemon.h"

#include "base/clock.h"
#include "cli/daemon_client.h"

#include <errno.h>
#include <fcntl.h>
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
    "-- get_events: the bench's tool. Read only.\n"
    "return tool \"get_events\" {\n"
    "  description = \"Read calendar events by id or by time span.\",\n"
    "  effects = \"read\",\n"
    "  schema = json "
    "[[{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"action\"],\"properties\":{\n"
    "    \"action\":{\"type\":\"string\",\"enum\":[\"by_ids\",\"by_time_span\"]},\n"
    "    \"ids\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},\n"
    "    \"start\":{\"type\":\"string\",\"format\":\"date-time\"},\n"
    "    \"end\":{\"type\":\"string\",\"format\":\"date-time\"},\n"
    "    \"query\":{\"type\":\"string\",\"maxLength\":200},\n"
    "    \"limit\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":500}}}]],\n"
    "  rules = {\n"
    "    when { action = \"by_ids\" }       : needs \"ids\" : drops \"limit\",\n"
    "    when { action = \"by_time_span\" } : needs \"start, end\",\n"
    "  },\n"
    "  check = function(args, call)\n"
    "    if args.action == \"by_time_span\" and args[\"end\"] == args.start then\n"
    "      return repair { path = \"end\", code = \"empty_span\", message = \"must not be equal to 'start'\" "
    "}\n"
    "    end\n"
    "  end,\n"
    "  run = function(args, call)\n"
    "    return { events = { { id = args.query, title = \"Review of the quarter\", start = args.start } } }\n"
    "  end,\n"
    "}\n";

/* A log line a call would measure the disk. */
static const char config_text[] = "return { policies = \"policies\", log = { level = \"warn\" } }\n";

static const char *const files[] = {
    "policies/get_events.lua", "toolgate.lua", "gate.log", "echo.log", "gate.sock", "echo.sock"};

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
    return err == OK ? write_file(folder, "toolgate.lua", config_text, why) : err;
}

void bench_folder_drop(const struct bench_folder *folder)
{
    char path[BENCH_PATH_MAX];
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        path_in(folder, files[i], path);
        unlink(path);
    }
    path_in(folder, "policies", path);
    rmdir(path);
    rmdir(folder->path);
}

/* ---- the daemon ---- */

static void become_daemon(const struct bench_folder *folder, const struct bench_daemon *daemon, bool echo,
                          const char *redis, pid_t parent)
{
    char config[BENCH_PATH_MAX], log[BENCH_PATH_MAX];
    path_in(folder, "toolgate.lua", config);
    path_in(folder, echo ? "echo.log" : "gate.log", log);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* an interrupted bench leaves nothing running */
    if (getppid() != parent)
        _exit(1);
    int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || dup2(fd, STDERR_FILENO) < 0)
        _exit(1);
    const char *argv[] = {"toolgate", "serve", "--socket", daemon->socket, "-c",
                          config,     NULL,    NULL,       NULL,           NULL};
    size_t count = 6;
    if (echo)
        argv[count++] = "--echo";
    if (redis) {
        argv[count++] = "--redis";
        argv[count++] = redis;
    }
    execv("/proc/self/exe", (char *const *)argv);
    _exit(1);
}

static bool accepts(const struct bench_daemon *daemon)
{
    int fd = daemon_client_socket(daemon->socket, NULL);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static enum err last_words(const struct bench_folder *folder, bool echo, struct why *why)
{
    char log[BENCH_PATH_MAX], text[1024] = "";
    path_in(folder, echo ? "echo.log" : "gate.log", log);
    FILE *file = fopen(log, "re");
    size_t n = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
    if (file)
        fclose(file);
    text[n] = '\0';
    return err_set(why, ERR_UNAVAILABLE, "the bench's daemon did not start; its log: %s", text);
}

static enum err wait_until_it_accepts(const struct bench_folder *folder, struct bench_daemon *daemon,
                                      bool echo, struct why *why)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    int64_t until = clock_mono_us() + (int64_t)BENCH_START_MS * 1000;
    while (!accepts(daemon)) {
        if (waitpid(daemon->pid, NULL, WNOHANG) == daemon->pid) {
            daemon->pid = 0;
            return last_words(folder, echo, why);
        }
        if (clock_mono_us() > until)
            return last_words(folder, echo, why);
        nanosleep(&pause, NULL);
    }
    return OK;
}

enum err bench_daemon_start(const struct bench_folder *folder, bool echo, const char *redis,
                            struct bench_daemon *daemon, struct why *why)
{
    pid_t parent = getpid();
    path_in(folder, echo ? "echo.sock" : "gate.sock", daemon->socket);
    daemon->pid = fork();
    if (daemon->pid == 0)
        become_daemon(folder, daemon, echo, redis, parent);
    if (daemon->pid < 0) {
        daemon->pid = 0;
        return err_set(why, ERR_IO, "fork: %s", strerror(errno));
    }
    return wait_until_it_accepts(folder, daemon, echo, why);
}

void bench_daemon_stop(struct bench_daemon *daemon)
{
    if (!daemon->pid)
        return;
    kill(daemon->pid, SIGTERM);
    waitpid(daemon->pid, NULL, 0);
    daemon->pid = 0;
}

int64_t bench_daemon_cpu_ns(const struct bench_daemon *daemon)
{
    char path[64];
    long long ns = 0;
    snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)daemon->pid);
    FILE *file = fopen(path, "re");
    if (file && fscanf(file, "%lld", &ns) != 1)
        ns = 0;
    if (file)
        fclose(file);
    return ns;
}
