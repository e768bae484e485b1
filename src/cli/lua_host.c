/* What lua/cli gets of this host that Lua's own libraries lack: files, folders, locks, processes, sockets,
 * limits, the clock. A function that fails returns nil, the error in words, and "exists" or "missing" if that
 * is the error. */
#include "cli/lua_cli.h"

#include "base/clock.h"
#include "base/hash.h"
#include "upstream/confine/confine.h"
#include "upstream/http/fetch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define CONNECT_MS       2000
#define LOCK_POLL_MS     20
#define SPAWN_WORDS_MAX  32u
#define CHILD_LOST_ERROR 127
#define VERSION_BYTES    96u

/* ---- files and folders --------------------------------------------------------------- */

/* cli.stat(path, of_link): { kind = "file", "folder", "pipe" or "other", mode (07777), uid, gid, file =
 * "device:inode", socket = true, size, at = milliseconds }. */
static int stat_path(lua_State *L)
{
    struct stat st;
    if ((lua_toboolean(L, 2) ? lstat : stat)(luaL_checkstring(L, 1), &st) != 0)
        return lua_cli_done(L, false);
    char file[48];
    const char *kind = S_ISREG(st.st_mode)    ? "file"
                       : S_ISDIR(st.st_mode)  ? "folder"
                       : S_ISFIFO(st.st_mode) ? "pipe"
                                              : "other";
    snprintf(file, sizeof(file), "%llx:%llx", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
    lua_cli_push_table(L, FIELD_TEXT("kind", kind), FIELD_NUM("size", st.st_size),
                       FIELD_NUM("at", (int64_t)st.st_mtim.tv_sec * 1000),
                       FIELD_NUM("mode", st.st_mode & 07777), FIELD_NUM("uid", st.st_uid),
                       FIELD_NUM("gid", st.st_gid), FIELD_TEXT("file", file),
                       FIELD_BOOL("socket", S_ISSOCK(st.st_mode)));
    return 1;
}

/* cli.access(path, "rwx"): true if this user may do all of it; "" asks whether it is there. */
static int access_path(lua_State *L)
{
    const char *letters = luaL_checkstring(L, 2);
    int mode = (strchr(letters, 'r') ? R_OK : 0) | (strchr(letters, 'w') ? W_OK : 0) |
               (strchr(letters, 'x') ? X_OK : 0);
    return lua_cli_done(L, access(luaL_checkstring(L, 1), mode ? mode : F_OK) == 0);
}

/* cli.list_folder(path): the names in it; empty if it cannot be read. */
static int list_folder(lua_State *L)
{
    DIR *folder = opendir(luaL_checkstring(L, 1));
    struct dirent *entry;
    lua_newtable(L);
    while (folder && (entry = readdir(folder))) {
        lua_pushstring(L, entry->d_name);
        lua_cli_append(L);
    }
    if (folder)
        closedir(folder);
    return 1;
}

/* cli.make_folder(path, mode): true, also if it is there. */
static int make_folder(lua_State *L)
{
    return lua_cli_done(L, mkdir(luaL_checkstring(L, 1), (mode_t)luaL_optinteger(L, 2, 0755)) == 0 ||
                               errno == EEXIST);
}

/* cli.write_file(path, text, over): a file that exists is only overwritten if `over`. */
static int write_file(lua_State *L)
{
    struct str text = lua_cli_str(L, 2);
    int fd = open(luaL_checkstring(L, 1),
                  O_WRONLY | O_CREAT | O_CLOEXEC | (lua_toboolean(L, 3) ? O_TRUNC : O_EXCL), 0644);
    bool written = fd >= 0 && write(fd, text.at, text.len) == (ssize_t)text.len;
    if (fd >= 0 && close(fd) != 0)
        written = false;
    return lua_cli_done(L, written);
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

/* cli.memory_file(text): the path of a file with this text, which ends with this process. */
static int memory_file(lua_State *L)
{
    struct str text = lua_cli_str(L, 1);
    int fd = memfd_create("definitions", MFD_CLOEXEC);
    if (fd < 0 || write(fd, text.at, text.len) != (ssize_t)text.len)
        return lua_cli_done(L, false);
    lua_pushfstring(L, "/proc/self/fd/%d", fd);
    return 1;
}

/* cli.real_path(path): without links. */
static int real_path(lua_State *L)
{
    char real[PATH_MAX];
    if (!realpath(luaL_checkstring(L, 1), real))
        return lua_cli_done(L, false);
    lua_pushstring(L, real);
    return 1;
}

/* cli.read_link(path): where it leads. */
static int read_link(lua_State *L)
{
    char path[PATH_MAX];
    ssize_t len = readlink(luaL_checkstring(L, 1), path, sizeof(path));
    if (len < 0)
        return lua_cli_done(L, false);
    lua_pushlstring(L, path, (size_t)len);
    return 1;
}

/* cli.disk_free(path): bytes that its disk has for this user. */
static int disk_free(lua_State *L)
{
    struct statvfs disk;
    if (statvfs(luaL_checkstring(L, 1), &disk) != 0)
        return lua_cli_done(L, false);
    lua_pushnumber(L, (lua_Number)disk.f_bavail * (lua_Number)disk.f_frsize);
    return 1;
}

/* ---- processes: the user's own daemon ----------------------------------------------------- */

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

/* ---- sockets ------------------------------------------------------------------------- */

/* Connects, without a word. 0: it accepts; else an errno. */
static int try_address(const struct sockaddr *address, socklen_t len)
{
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int error = fd < 0 || connect(fd, address, len) != 0 ? errno : 0;
    socklen_t size = sizeof(error);
    if (error == EINPROGRESS) {
        struct pollfd wait = {.fd = fd, .events = POLLOUT};
        error = ETIMEDOUT;
        if (poll(&wait, 1, CONNECT_MS) == 1)
            getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    }
    if (fd >= 0)
        close(fd);
    return error;
}

/* cli.connect(path), cli.connect(host, port): nothing: it accepts connections; else why not. */
static int try_connect(lua_State *L)
{
    const char *host = luaL_checkstring(L, 1), *port = luaL_optstring(L, 2, NULL);
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    struct addrinfo *list;
    int error = ENAMETOOLONG;
    if (port) {
        int found = getaddrinfo(host, port, &hints, &list);
        if (found) {
            lua_pushstring(L, gai_strerror(found));
            return 1;
        }
        for (const struct addrinfo *one = list; one && error; one = one->ai_next)
            error = try_address(one->ai_addr, one->ai_addrlen);
        freeaddrinfo(list);
    } else if (strlen(host) < sizeof(local.sun_path)) {
        memcpy(local.sun_path, host, strlen(host));
        error = try_address((struct sockaddr *)&local, sizeof(local));
    }
    lua_pushstring(L, error ? strerror(error) : NULL);
    return 1;
}

/* ---- the system ---------------------------------------------------------------------- */

/* cli.group_name(gid): nil: none exists. */
static int group_name(lua_State *L)
{
    const struct group *group = getgrgid((gid_t)luaL_checknumber(L, 1));
    lua_pushstring(L, group ? group->gr_name : NULL);
    return 1;
}

/* cli.random(): 16 hex digits. */
static int random_name(lua_State *L)
{
    char name[17];
    snprintf(name, sizeof(name), "%016llx", (unsigned long long)hash_random());
    lua_pushstring(L, name);
    return 1;
}

/* cli.host(): { open_files_max (of a process started from here; nil: any number), clock_is_synchronised
 * (false: the kernel says that it is not), landlock (its ABI, 0: none), seccomp (it has filters),
 * libcurl_problem (nil: it is there) }. */
static int host(lua_State *L)
{
    struct confine_support support = confine_support();
    struct rlimit files = {.rlim_max = RLIM_INFINITY};
    struct timex state = {0};
    struct why why;
    int clock = adjtimex(&state);
    bool has_curl = fetch_check_library(&why) == OK;
    getrlimit(RLIMIT_NOFILE, &files);
    lua_cli_push_table(L,
                       FIELD_IF(files.rlim_max != RLIM_INFINITY, FIELD_NUM("open_files_max", files.rlim_max)),
                       FIELD_BOOL("clock_is_synchronised",
                                  clock != TIME_ERROR && (clock < 0 || !(state.status & STA_UNSYNC))),
                       FIELD_NUM("landlock", support.landlock_abi), FIELD_BOOL("seccomp", support.seccomp),
                       FIELD_OPTIONAL("libcurl_problem", has_curl ? STR_NONE : str_of(why.text)));
    return 1;
}

const luaL_Reg lua_host_functions[] = {
    {"stat", stat_path},
    {"access", access_path},
    {"list_folder", list_folder},
    {"make_folder", make_folder},
    {"write_file", write_file},
    {"memory_file", memory_file},
    {"real_path", real_path},
    {"read_link", read_link},
    {"disk_free", disk_free},
    {"connect", try_connect},
    {"group_name", group_name},
    {"random", random_name},
    {"host", host},
    {"lock", lock},
    {"spawn", spawn},
    {"has_ended", has_ended},
    {"terminate", terminate},
    {"file", file},
    {"replace_file", replace_file},
    {0},
};
