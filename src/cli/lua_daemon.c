/* What lua/cli/own_daemon.lua and attach.lua get of C: the start and the end of the user's own daemon, locks,
 * and files of other programs that are replaced as a whole. */
#include "cli/lua_cli.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOCK_POLL_MS     20
#define SPAWN_WORDS_MAX  32u
#define CHILD_LOST_ERROR 127
#define VERSION_BYTES    96u

/* cli.lock(path, ms): true: this process has the file's lock until it ends; false: another has it, also after
 * this time; nil and why: there is no such file to lock. */
static int lock(lua_State *L)
{
    int64_t until_us = clock_mono_us() + (int64_t)luaL_optinteger(L, 2, 0) * 1000;
    int fd = open(luaL_checkstring(L, 1), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return lua_cli_done(L, false);
    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK && clock_mono_us() < until_us) {
            poll(NULL, 0, LOCK_POLL_MS);
            continue;
        }
        close(fd);
        lua_pushboolean(L, false);
        return 1;
    }
    return lua_cli_done(L, true);
}

/* In the child: nothing of this process but its environment. Of the descriptors, /dev/null and the log. */
static void become(char **words, const char *log)
{
    int null = open("/dev/null", O_RDONLY), out = open(log, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    setsid();
    umask(077);
    if (null < 0 || out < 0 || chdir("/") != 0 || dup2(null, STDIN_FILENO) < 0 ||
        dup2(out, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0)
        _exit(CHILD_LOST_ERROR);
    close_range(STDERR_FILENO + 1, ~0u, 0);
    execv("/proc/self/exe", words);
    _exit(CHILD_LOST_ERROR);
}

/* cli.spawn(words, log): the pid of this program with these words, in a session of its own. */
static int spawn(lua_State *L)
{
    char *words[SPAWN_WORDS_MAX + 2] = {(char *)"toolgate"};
    const char *path = luaL_checkstring(L, 2);
    size_t count = lua_objlen(L, 1);
    luaL_argcheck(L, count <= SPAWN_WORDS_MAX, 1, "too many words");
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(L, 1, (int)i + 1);
        words[i + 1] = (char *)lua_tostring(L, -1); /* the table keeps it */
        lua_pop(L, 1);
    }
    pid_t pid = fork();
    if (pid == 0)
        become(words, path);
    if (pid < 0)
        return lua_cli_done(L, false);
    lua_pushinteger(L, pid);
    return 1;
}

/* cli.has_ended(pid): true: this child has. */
static int has_ended(lua_State *L)
{
    lua_pushboolean(L, waitpid((pid_t)luaL_checkinteger(L, 1), NULL, WNOHANG) != 0);
    return 1;
}

/* cli.terminate(pid): sends SIGTERM. */
static int terminate(lua_State *L)
{
    lua_Integer pid = luaL_checkinteger(L, 1);
    luaL_argcheck(L, pid > 1, 1, "no process of ours");
    return lua_cli_done(L, kill((pid_t)pid, SIGTERM) == 0);
}

static void write_version(char *out, const struct stat *st)
{
    snprintf(out, VERSION_BYTES, "%llu %llu %lld.%09ld", (unsigned long long)st->st_ino,
             (unsigned long long)st->st_size, (long long)st->st_mtim.tv_sec, st->st_mtim.tv_nsec);
}

/* cli.file(path): its text, and { uid, mode, version }, where `version` changes whenever it is written; nil,
 * why, and "missing" if that is it. */
static int file(lua_State *L)
{
    struct stat st = {.st_mode = 0};
    int fd = open(luaL_checkstring(L, 1), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int error = fd < 0 || fstat(fd, &st) != 0 ? errno : !S_ISREG(st.st_mode) ? EISDIR : 0;
    luaL_Buffer text;
    ssize_t n = 0;
    size_t got = 0;
    luaL_buffinit(L, &text);
    while (!error && got <= LUA_CLI_INPUT_BYTES &&
           (n = read(fd, luaL_prepbuffer(&text), LUAL_BUFFERSIZE)) > 0) {
        luaL_addsize(&text, (size_t)n);
        got += (size_t)n;
    }
    if (!error)
        error = n < 0 ? errno : got > LUA_CLI_INPUT_BYTES ? EFBIG : 0;
    if (fd >= 0)
        close(fd);
    luaL_pushresult(&text);
    if (error) {
        lua_cli_fail(L, error == EISDIR ? "it is not a file" : strerror(error));
        lua_pushstring(L, error == ENOENT ? "missing" : NULL);
        return 3;
    }
    char version[VERSION_BYTES];
    write_version(version, &st);
    lua_cli_push_table(L, FIELD_NUM("uid", st.st_uid), FIELD_NUM("mode", st.st_mode & 07777),
                       FIELD_TEXT("version", version));
    return 2;
}

/* cli.replace_file(path, text, mode, version): by rename, so that a reader finds the old text or the new one,
 * also after a power failure. `version`: of the file that is replaced; another one stays. nil, why, and
 * "changed" if that is it. */
static int replace_file(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1), *version = luaL_optstring(L, 4, NULL);
    struct str text = lua_cli_str(L, 2);
    char aside[PATH_MAX], now[VERSION_BYTES] = "";
    struct stat st;
    if (snprintf(aside, sizeof(aside), "%s.toolgate-%d", path, (int)getpid()) >= (int)sizeof(aside))
        return lua_cli_fail(L, "the path is too long");
    int fd = open(aside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool written = fd >= 0 && fchmod(fd, (mode_t)luaL_checkinteger(L, 3)) == 0;
    while (written && text.len) {
        ssize_t n = write(fd, text.at, text.len);
        written = n >= 0 || errno == EINTR;
        text = str_from(text, n > 0 ? (size_t)n : 0);
    }
    written = written && fsync(fd) == 0;
    int error = written ? 0 : errno;
    if (fd >= 0 && close(fd) != 0 && !error)
        error = errno;
    if (!error && version && stat(path, &st) == 0)
        write_version(now, &st);
    bool changed = !error && version && strcmp(version, now) != 0;
    if (!error && !changed && rename(aside, path) != 0)
        error = errno;
    if (fd >= 0 && (error || changed))
        unlink(aside);
    if (error || changed) {
        lua_cli_fail(L, error ? strerror(error) : "another program is writing it");
        lua_pushstring(L, changed ? "changed" : NULL);
        return 3;
    }
    return lua_cli_done(L, true);
}

const luaL_Reg lua_daemon_functions[] = {
    {"lock", lock},
    {"spawn", spawn},
    {"has_ended", has_ended},
    {"terminate", terminate},
    {"file", file},
    {"replace_file", replace_file},
    {0},
};
