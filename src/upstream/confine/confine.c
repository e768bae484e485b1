/*
 * Puts a confinement together, and says what is missing. Files are confined by
 * Landlock (Linux 5.13). A ruleset lists what is allowed and knows
 * no exceptions, so "this folder, but not what is hidden in it" is a rule for
 * each entry of each folder on the way to a hidden path, except that way
 * itself. What is created on the way later stays unreadable until the process
 * starts again.
 */
#include "upstream/confine/confine.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "io/conn.h"
#include "upstream/confine/seccomp.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/landlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Rights that came after the first ABI, which older headers lack. */
#define ACCESS_REFER     (1ULL << 13) /* ABI 2 */
#define ACCESS_TRUNCATE  (1ULL << 14) /* ABI 3 */
#define ACCESS_IOCTL_DEV (1ULL << 15) /* ABI 5 */
#define SCOPE_ABSTRACT   (1ULL << 0)  /* ABI 6: abstract Unix sockets of others */
#define SCOPE_SIGNAL     (1ULL << 1)  /* ABI 6: processes of others */

#define ACCESS_READ  (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define ACCESS_FIRST ((LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1) /* all of ABI 1 */
#define ACCESS_WRITE                                                                                         \
    ((ACCESS_FIRST | ACCESS_REFER | ACCESS_TRUNCATE) &                                                       \
     ~(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK))
#define ACCESS_OF_FILES                                                                                      \
    (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |             \
     ACCESS_TRUNCATE | ACCESS_IOCTL_DEV)

/* The kernel's struct as of ABI 6; it accepts a shorter one. */
struct ruleset_attr {
    uint64_t handled_access_fs, handled_access_net, scoped;
};

struct ruleset {
    int fd;
    uint64_t handled;
    size_t rules;
};

/* 0: the kernel has no Landlock, or this process may not use it. */
static int landlock_abi(void)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    return abi > 0 ? (int)abi : 0;
}

/* 0, or -1 with errno. A file gets those of the rights that files have. */
static int allow(struct ruleset *set, const char *path, uint64_t access)
{
    struct stat info;
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return -1;
    if (fstat(fd, &info) == 0 && !S_ISDIR(info.st_mode))
        access &= ACCESS_OF_FILES;
    struct landlock_path_beneath_attr rule = {.allowed_access = access & set->handled, .parent_fd = fd};
    long failed = 0;
    if (++set->rules > CONFINE_RULES_MAX) {
        failed = -1;
        errno = E2BIG;
    } else if (rule.allowed_access) {
        failed = syscall(SYS_landlock_add_rule, set->fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    }
    int error = errno;
    close(fd);
    errno = error;
    return failed ? -1 : 0;
}

/* ---- everything but ---- */

enum relation { APART, ON_THE_WAY, HIDDEN };

/* A part of a path, of `len` bytes, beside one of a hidden path, in which "%u" stands for any name. The last
 * one hides "x.sock.upstreams" as well: state that lies beside a socket. */
static bool part_matches(const char *part, size_t len, const char *hidden, size_t hidden_len, bool last)
{
    const char *user = memmem(hidden, hidden_len, "%u", 2), *rest = user, *end = hidden + hidden_len;
    if (!user)
        return (len == hidden_len || (last && len > hidden_len && part[hidden_len] == '.')) &&
               memcmp(part, hidden, hidden_len) == 0;
    for (const char *next = user; next; next = memmem(rest, (size_t)(end - rest), "%u", 2))
        rest = next + 2;
    size_t before = (size_t)(user - hidden), after = (size_t)(end - rest);
    return len >= before + after && memcmp(part, hidden, before) == 0 &&
           memcmp(part + len - after, rest, after) == 0;
}

static enum relation relation_to(const char *path, const char *hidden)
{
    for (;;) {
        path += strspn(path, "/");
        hidden += strspn(hidden, "/");
        size_t len = strcspn(path, "/"), hidden_len = strcspn(hidden, "/");
        if (!hidden_len)
            return HIDDEN;
        if (!len)
            return ON_THE_WAY;
        bool last = !hidden[hidden_len + strspn(hidden + hidden_len, "/")];
        if (!part_matches(path, len, hidden, hidden_len, last))
            return APART;
        path += len;
        hidden += hidden_len;
    }
}

/* Allows to read what `folder` ("" is the root) contains but hidden paths. Unreadable folders stay out. */
static int allow_beside(struct ruleset *set, const char *folder, const struct confine_paths *hidden)
{
    DIR *dir = opendir(*folder ? folder : "/");
    int failed = 0;
    if (!dir)
        return 0;
    for (struct dirent *entry; !failed && (entry = readdir(dir));) {
        char path[PATH_MAX];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name) >= PATH_MAX ||
            entry->d_type == DT_LNK) /* its target has a rule of its own */
            continue;
        enum relation relation = APART; /* the nearest */
        for (size_t i = 0; i < hidden->count; i++) {
            enum relation to_one = relation_to(path, hidden->list[i].at);
            relation = to_one > relation ? to_one : relation;
        }
        if (relation == ON_THE_WAY)
            failed = allow_beside(set, path, hidden);
        else if (relation == APART && allow(set, path, ACCESS_READ) != 0)
            failed = errno == E2BIG || errno == ENOMEM ? -1 : 0; /* others vanished or are not ours */
    }
    int error = errno;
    closedir(dir);
    errno = error;
    return failed;
}

/* The hidden paths below `path`. Naming a hidden path itself, or one below it, is the operator's word. */
static struct confine_paths hidden_below(struct arena *arena, const char *path,
                                         const struct confine_paths *hidden)
{
    struct str *list = ARENA_ARRAY(arena, struct str, hidden->count);
    struct confine_paths below = {list, 0};
    char real[PATH_MAX];
    if (!realpath(path, real))
        return below;
    for (size_t i = 0; i < hidden->count; i++)
        if (relation_to(real, hidden->list[i].at) == ON_THE_WAY)
            list[below.count++] = hidden->list[i];
    return below;
}

/* Allows to read `path`, except the hidden paths below it. */
static int allow_read(struct ruleset *set, struct arena *arena, const char *path,
                      const struct confine_paths *hidden)
{
    const struct confine_paths below = hidden_below(arena, path, hidden);
    char real[PATH_MAX];
    if (!below.count || !realpath(path, real))
        return allow(set, path, ACCESS_READ);
    return allow_beside(set, strcmp(real, "/") ? real : "", &below);
}

/* ---- what is named ---- */

static enum err cannot_open(const char *key, const char *path, struct why *why)
{
    if (errno == E2BIG)
        return err_set(why, ERR_LIMIT,
                       "sandbox: the folders beside hidden paths have too many entries (%u rules): move the "
                       "state folder, or name in sandbox.read what may be read",
                       CONFINE_RULES_MAX);
    return err_set(why, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO,
                   "sandbox.%s: cannot open '%s': %s; create it, or remove it from the list", key, path,
                   strerror(errno));
}

/* Libraries, name lookup, certificates and time zones: files without secrets that most programs need. */
static const char readable[] =
    "/usr /bin /sbin /lib /lib32 /lib64 /libx32 /etc/alternatives /etc/ld.so.cache /etc/ld.so.conf "
    "/etc/ld.so.conf.d /etc/ssl/certs /etc/ssl/openssl.cnf /etc/ca-certificates /etc/pki /etc/resolv.conf "
    "/etc/hosts /etc/host.conf /etc/nsswitch.conf /etc/gai.conf /etc/localtime /etc/timezone /etc/passwd "
    "/etc/group /etc/services /etc/protocols /etc/mime.types /dev/random /dev/urandom /proc/cpuinfo "
    "/proc/meminfo /proc/stat /proc/version /proc/sys/vm /sys/devices/system/cpu /sys/fs/cgroup";
static const char writable[] = "/dev/null /dev/zero /dev/full";

/* A ruleset: what `spec` names, the program, and what every program needs (libraries, certificates,
 * /dev/null). */
static enum err landlock_ruleset(struct arena *arena, const struct confine_spec *spec,
                                 const struct confine_paths *hidden, const struct confine_paths *programs,
                                 int *out, struct why *why)
{
    int abi = landlock_abi();
    struct ruleset set = {.handled = ACCESS_FIRST | (abi >= 2 ? ACCESS_REFER : 0) |
                                     (abi >= 3 ? ACCESS_TRUNCATE : 0) | (abi >= 5 ? ACCESS_IOCTL_DEV : 0)};
    struct ruleset_attr attributes = {set.handled, 0, abi >= 6 ? SCOPE_ABSTRACT | SCOPE_SIGNAL : 0};
    size_t size = abi >= 6 ? sizeof(attributes) : sizeof(attributes.handled_access_fs);
    set.fd = (int)syscall(SYS_landlock_create_ruleset, &attributes, size, 0);
    if (set.fd < 0)
        return err_set(why, ERR_UNAVAILABLE, "sandbox: the kernel refused Landlock: %s", strerror(errno));
    enum err err = OK;
    char path[64];
    int n;
    for (const char *at = readable; sscanf(at, "%63s%n", path, &n) == 1; at += n)
        allow_read(&set, arena, path, hidden); /* no system has all of them */
    for (const char *at = writable; sscanf(at, "%63s%n", path, &n) == 1; at += n)
        allow(&set, path, LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | ACCESS_TRUNCATE);
    for (size_t i = 0; i < programs->count; i++)
        allow(&set, programs->list[i].at, ACCESS_READ); /* one that is missing fails at its exec */
    if (!spec->reads_given && allow_beside(&set, "", hidden) != 0)
        err = cannot_open("read", "/", why);
    for (size_t i = 0; i < spec->read.count && !err; i++)
        if (allow_read(&set, arena, spec->read.list[i].at, hidden) != 0)
            err = cannot_open("read", spec->read.list[i].at, why);
    for (size_t i = 0; i < spec->write.count && !err; i++) {
        /* Landlock allows to create files in a folder only together with all that is below it. */
        const char *folder = spec->write.list[i].at;
        const struct confine_paths below = hidden_below(arena, folder, hidden);
        if (below.count && !spec->best_effort)
            err = err_set(why, ERR_CONFIG,
                          "sandbox.write: '%s' holds '" STR_FMT "', which is hidden from every sandbox: "
                          "name the folders in it that may be written, move that path elsewhere, or set "
                          "sandbox.best_effort = true to give the process both",
                          folder, STR_ARG(below.list[0]));
        else if (allow(&set, folder, ACCESS_WRITE) != 0)
            err = cannot_open("write", folder, why);
    }
    if (err)
        close(set.fd);
    else
        *out = set.fd;
    return err;
}

/* ---- a confinement ---- */

struct hidden_paths { /* of one loop */
    struct arena *arena;
    struct confine_paths paths;
};

static const char singleton_key;

static void *make_hidden(struct loop *loop)
{
    struct hidden_paths *hidden = alloc_zeroed(sizeof(*hidden));
    (void)loop;
    hidden->arena = arena_new();
    return hidden;
}

static void free_hidden(void *object)
{
    struct hidden_paths *hidden = object;
    arena_free(hidden->arena);
    free(hidden);
}

/* Landlock sees real paths. What is not there yet, or has "%u" in it, follows the real path of what is. */
static struct str resolve(struct arena *arena, const char *path)
{
    char folder[PATH_MAX], real[PATH_MAX];
    size_t len = strlen(path);
    const char *user = strstr(path, "%u");
    if (len >= sizeof(folder))
        return arena_dup(arena, str_of(path));
    if (!user && realpath(path, real))
        return arena_dup(arena, str_of(real));
    for (size_t end = user ? (size_t)(user - path) : len; end; end--) {
        if (path[end - 1] != '/')
            continue;
        snprintf(folder, sizeof(folder), "%.*s", (int)end, path);
        if (realpath(folder, real))
            return arena_printf(arena, "%s/%s", strcmp(real, "/") ? real : "", path + end);
    }
    return realpath(".", real) ? arena_printf(arena, "%s/%s", real, path) : arena_dup(arena, str_of(path));
}

void confine_hide(struct loop *loop, const char *const *paths, size_t count)
{
    struct hidden_paths *hidden = loop_singleton(loop, &singleton_key, make_hidden, free_hidden);
    arena_free(hidden->arena);
    hidden->arena = arena_new();
    struct str *list = ARENA_ARRAY(hidden->arena, struct str, count);
    hidden->paths = (struct confine_paths){list, 0};
    for (size_t i = 0; i < count; i++)
        if (paths[i] && *paths[i])
            list[hidden->paths.count++] = resolve(hidden->arena, paths[i]);
}

struct confine_support confine_support(void)
{
    return (struct confine_support){landlock_abi(), seccomp_is_supported()};
}

enum err confine_prepare(struct loop *loop, struct arena *arena, const struct confine_spec *spec,
                         const struct child_spec *child, const char *script, struct confinement *out,
                         struct why *why)
{
    struct confine_support support = confine_support();
    const struct hidden_paths *hidden = loop_singleton(loop, &singleton_key, make_hidden, free_hidden);
    struct buf missing = buf_in(arena);
    if (!support.landlock_abi)
        buf_text(&missing,
                 "Landlock (Linux 5.13 or later, with landlock in the lsm= of its command line; a service "
                 "unit must allow landlock_create_ruleset, landlock_add_rule and "
                 "landlock_restrict_self in SystemCallFilter=)");
    if (!support.seccomp)
        buf_printf(&missing, "%sseccomp filters (a service unit must allow seccomp in SystemCallFilter=)",
                   missing.len ? " and " : "");
    *out = (struct confinement){.child = {.landlock = -1}, .missing = buf_view(&missing)};
    if (out->missing.len && !spec->best_effort)
        return err_set(why, ERR_UNAVAILABLE,
                       "sandbox: there is no " STR_FMT "; without it nothing would hold the process back: "
                       "provide it, or set sandbox.best_effort = true to start it unconfined",
                       STR_ARG(out->missing));
    enum err err = OK;
    if (support.landlock_abi) {
        struct str list[2]; /* the program, and the script that the caller vouches for */
        struct confine_paths programs = {list, 0};
        char found[PATH_MAX];
        struct why missing_program; /* which shows at its exec */
        if (child_find_program(child, found, &missing_program) == OK)
            list[programs.count++] = arena_dup(arena, str_of(found));
        if (script)
            list[programs.count++] = str_of(script);
        err = landlock_ruleset(arena, spec, &hidden->paths, &programs, &out->child.landlock, why);
        for (size_t i = spec->read.count; i-- > 0;)
            if (hidden_below(arena, spec->read.list[i].at, &hidden->paths).count)
                out->narrowed = spec->read.list[i];
    }
    if (!err && support.seccomp)
        out->child.filter = seccomp_filter(arena, spec->network, support.landlock_abi);
    if (!err && support.seccomp && !out->child.filter)
        err = err_set(why, ERR_UNAVAILABLE, "sandbox: the filter of system calls could not be made");
    return err;
}

void confine_free(struct confinement *confinement)
{
    if (confinement->child.landlock >= 0)
        close(confinement->child.landlock);
    confinement->child.landlock = -1;
}
