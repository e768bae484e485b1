/*
 * Each root is watched at one or more places: the folder it is in, by its own
 * name, and where it is a folder itself, that and its subfolders. After every
 * change the places are looked up anew, as any of them may have become another
 * file: inotify gives the same descriptor for the same inode, so this costs
 * nothing where nothing moved.
 */
#include "io/file_watch.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#define EVENTS                                                                                               \
    (IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF)

/* The link by which Kubernetes turns a mounted folder to its next content, at once for all files in it. */
#define SWAPPED "..data"

struct place {
    int wd;
    const char *name; /* only this one in the folder; NULL: all */
};

/* "a/b/" is "b" in "a". */
struct root {
    char *path, *folder, *name;
};

struct watch {
    int fd;
    struct root *roots;
    size_t root_count, place_count;
    struct place places[FILE_WATCH_FOLDERS_MAX];
};

enum err file_watch_new(struct watch **out, struct why *why)
{
    int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    *out = NULL;
    if (fd < 0)
        return err_set(why, ERR_IO,
                       "no inotify to watch files with: %s (sysctl fs.inotify.max_user_instances)",
                       strerror(errno));
    struct watch *watch = calloc(1, sizeof(*watch));
    if (!watch)
        abort();
    watch->fd = fd;
    *out = watch;
    return OK;
}

static void root_clear(struct root *root)
{
    free(root->path);
    free(root->folder);
    free(root->name);
}

void file_watch_free(struct watch *watch)
{
    if (!watch)
        return;
    close(watch->fd);
    for (size_t i = 0; i < watch->root_count; i++)
        root_clear(&watch->roots[i]);
    free(watch->roots);
    free(watch);
}

int file_watch_fd(const struct watch *watch)
{
    return watch->fd;
}

/* ---- places ----------------------------------------------------------------- */

static bool place_add(struct watch *watch, const char *folder, const char *name)
{
    int wd = inotify_add_watch(watch->fd, folder, EVENTS);
    if (wd < 0)
        return false;
    if (watch->place_count == FILE_WATCH_FOLDERS_MAX)
        return true; /* the descriptor stays, its events go by unseen */
    watch->places[watch->place_count++] = (struct place){wd, name};
    return true;
}

/* ".x.lua.swp" and "x.lua~" are an editor's. */
static bool is_noise(const char *name)
{
    size_t len = strlen(name);
    return (name[0] == '.' && strcmp(name, SWAPPED) != 0) || (len && name[len - 1] == '~');
}

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static void folder_add(struct watch *watch, const char *path, unsigned depth)
{
    DIR *folder = depth <= FILE_WATCH_DEPTH_MAX && place_add(watch, path, NULL) ? opendir(path) : NULL;
    if (!folder)
        return;
    for (struct dirent *entry; (entry = readdir(folder)) && watch->place_count < FILE_WATCH_FOLDERS_MAX;) {
        char below[PATH_MAX];
        int n = snprintf(below, sizeof(below), "%s/%s", path, entry->d_name);
        if (!is_noise(entry->d_name) && n < (int)sizeof(below) && is_folder(below))
            folder_add(watch, below, depth + 1);
    }
    closedir(folder);
}

static bool places_of(struct watch *watch, const struct root *root)
{
    bool known = place_add(watch, root->folder, root->name);
    if (is_folder(root->path))
        folder_add(watch, root->path, 0);
    return known;
}

static bool is_used(const struct watch *watch, int wd)
{
    for (size_t i = 0; i < watch->place_count; i++)
        if (watch->places[i].wd == wd)
            return true;
    return false;
}

/* Everything is looked up again; what is no part of it any more is let go. */
static void look_again(struct watch *watch)
{
    struct place old[FILE_WATCH_FOLDERS_MAX];
    size_t count = watch->place_count;
    memcpy(old, watch->places, count * sizeof(*old));
    watch->place_count = 0;
    for (size_t i = 0; i < watch->root_count; i++)
        places_of(watch, &watch->roots[i]);
    for (size_t i = 0; i < count; i++)
        if (!is_used(watch, old[i].wd))
            inotify_rm_watch(watch->fd, old[i].wd);
}

static char *copy(const char *text, size_t len)
{
    char *copied = strndup(text, len);
    if (!copied)
        abort();
    return copied;
}

static struct root split(const char *path)
{
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        len--;
    const char *slash = memrchr(path, '/', len);
    struct root root = {.path = copy(path, len)};
    root.folder = slash ? copy(path, slash == path ? 1 : (size_t)(slash - path)) : copy(".", 1);
    root.name = slash ? copy(slash + 1, (size_t)(path + len - slash - 1)) : copy(path, len);
    return root;
}

enum err file_watch_add(struct watch *watch, const char *path, struct why *why)
{
    struct root *longer = realloc(watch->roots, (watch->root_count + 1) * sizeof(*longer));
    if (!longer)
        abort();
    watch->roots = longer;
    longer[watch->root_count] = split(path);
    struct root *root = &longer[watch->root_count];
    if (places_of(watch, root)) {
        watch->root_count++;
        return OK;
    }
    err_set(why, ERR_IO, "%s can't be watched: its folder %s: %s", path, root->folder, strerror(errno));
    root_clear(root);
    return ERR_IO;
}

/* ---- what comes -------------------------------------------------------------- */

static bool matters(const struct watch *watch, const struct inotify_event *event)
{
    const char *name = event->len ? event->name : "";
    if (event->mask & IN_Q_OVERFLOW)
        return true;
    for (size_t i = 0; i < watch->place_count; i++) {
        const struct place *place = &watch->places[i];
        bool ours =
            place->name && strcmp(name, SWAPPED) != 0 ? strcmp(place->name, name) == 0 : !is_noise(name);
        if (place->wd == event->wd && ours)
            return true;
    }
    return false;
}

bool file_watch_drain(struct watch *watch)
{
    _Alignas(struct inotify_event) char block[16384];
    bool changed = false;
    for (;;) {
        ssize_t n = read(watch->fd, block, sizeof(block));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        for (ssize_t at = 0; at < n;) {
            const struct inotify_event *event = (const struct inotify_event *)(block + at);
            changed |= matters(watch, event);
            at += (ssize_t)(sizeof(*event) + event->len);
        }
    }
    if (changed)
        look_again(watch);
    return changed;
}
