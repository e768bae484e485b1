/* Another user may own what has our name in /tmp: the folder must be ours alone, and no link is followed. */
#include "hook/hook_calls.h"

#include "base/buf.h"
#include "base/hash.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NAME_BYTES 33u /* a hash in hex digits */
#define CALL       '\n'
#define STEP       '\v'

/* -1, with errno. */
static int open_folder(void)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    char path[PATH_MAX];
    struct stat info;
    if (runtime && *runtime == '/')
        snprintf(path, sizeof(path), "%s/toolgate-hook", runtime);
    else
        snprintf(path, sizeof(path), "/tmp/toolgate-hook-%u", (unsigned)geteuid());
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return -1;
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0 || (fstat(folder, &info) == 0 && info.st_uid == geteuid() && !(info.st_mode & 077)))
        return folder;
    close(folder);
    errno = EPERM;
    return -1;
}

/* The file of a call or of an agent's step: its name is a hash. -1, with errno. */
static int open_file(const struct hook_event *e, char kind, struct str id, int flags, bool takes)
{
    char name[NAME_BYTES];
    struct buf key = {0};
    buf_str(&key, e->session);
    buf_byte(&key, kind);
    buf_str(&key, id);
    struct hash128 hash = hash_stable(buf_view(&key));
    buf_clear(&key);
    snprintf(name, NAME_BYTES, "%016llx%016llx", (unsigned long long)hash.high, (unsigned long long)hash.low);
    int folder = open_folder(),
        fd = folder < 0 ? -1 : openat(folder, name, flags | O_NOFOLLOW | O_CLOEXEC, 0600);
    int error = errno;
    if (fd >= 0 && takes)
        unlinkat(folder, name, 0);
    if (folder >= 0)
        close(folder);
    errno = error;
    return fd;
}

static bool write_and_close(int fd, struct str text)
{
    bool kept = fd >= 0 && write(fd, text.at, text.len) == (ssize_t)text.len;
    int error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    return kept;
}

static struct str read_and_close(int fd, char into[HOOK_CALL_ID_MAX_BYTES])
{
    ssize_t n = fd < 0 ? 0 : read(fd, into, HOOK_CALL_ID_MAX_BYTES);
    if (fd >= 0)
        close(fd);
    return (struct str){into, n > 0 ? (size_t)n : 0};
}

bool hook_call_keep(const struct hook_event *e, struct str call_id)
{
    return write_and_close(open_file(e, CALL, e->tool_use, O_WRONLY | O_CREAT | O_TRUNC, false), call_id);
}

struct str hook_call_take(const struct hook_event *e, char into[HOOK_CALL_ID_MAX_BYTES])
{
    return read_and_close(open_file(e, CALL, e->tool_use, O_RDONLY, true), into);
}

struct str hook_step(const struct hook_event *e, char into[HOOK_CALL_ID_MAX_BYTES])
{
    struct str step = read_and_close(open_file(e, STEP, e->agent, O_RDONLY, false), into);
    return step.len ? step : e->tool_use;
}

void hook_step_end(const struct hook_event *e, bool first)
{
    char step[17];
    snprintf(step, sizeof(step), "%016llx", (unsigned long long)hash_random());
    /* If it cannot be kept, each call is a step. */
    (void)write_and_close(open_file(e, STEP, e->agent, O_WRONLY | O_TRUNC | (first ? O_CREAT : 0), false),
                          str_of(step));
}

void hook_calls_sweep(void)
{
    struct stat info;
    int folder = open_folder();
    DIR *open = folder < 0 ? NULL : fdopendir(folder);
    time_t now = time(NULL);
    size_t seen = 0;
    for (struct dirent *entry; open && (entry = readdir(open)) && seen < HOOK_CALLS_SWEPT_MAX; seen++)
        if (strlen(entry->d_name) == NAME_BYTES - 1 &&
            fstatat(folder, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
            now - info.st_mtime > HOOK_CALLS_KEPT_S)
            unlinkat(folder, entry->d_name, 0);
    if (open)
        closedir(open);
}
