/*
 * Each root is watched in several places: its parent folder, for events with
 * its name, and if it is a folder, that and its subfolders. After every change
 * all places are looked up again, as any of them may have become another file;
 * inotify returns the same descriptor for the same inode, so this is cheap.
 */
#include "io/file_watch.h"

#include "base/alloc.h"

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

/* The link by which Kubernetes replaces the content of a mounted folder atomically. */
#define KUBERNETES_LINK "..data"

struct place {
    int wd;
    const char *name; /* only events with this name; NULL: all */
};

/* "a/b/" is "b" in the folder "a". */
struct root {
    char *path, *folder;
    const char *name; /* of the path */
};

struct file_watch {
    int fd;
    struct root *roots;
    size_t root_count, place_count;
    struct place places[FILE_WATCH_FOLDERS_MAX];
};

enum err file_watch_new(struct file_watch **out, struct why *why)
{
    int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    *out = NULL;
    if (fd < 0)
        return err_set(why, ERR_IO, "cannot watch files: inotify: %s (sysctl fs.inotify.max_user_instances)",
                       strerror(errno));
    struct file_watch *watch = alloc_zeroed(sizeof(*watch));
    watch->fd = fd;
    *out = watch;
    return OK;
}

static void root_clear(struct root *root)
{
    free(root->path);
    free(root->folder);
}

void file_watch_free(struct file_watch *watch)
{
    if (!watch)
        return;
    close(watch->fd);
    for (size_t i = 0; i < watch->root_count; i++)
        root_clear(&watch->roots[i]);
    free(watch->roots);
    free(watch);
}

int file_watch_fd(const struct file_watch *watch)
{
    return watch->fd;
}

static bool add_place(struct file_watch *watch, const char *folder, const char *name)
{
    int wd = inotify_add_watch(watch->fd, folder, EVENTS);
    if (wd >= 0 && watch->place_count < FILE_WATCH_FOLDERS_MAX)
        watch->places[watch->place_count++] = (struct place){wd, name};
    return wd >= 0;
}

/* Editor files such as ".x.lua.swp" and "x.lua~". */
static bool is_ignored(const char *name)
{
    size_t len = strlen(name);
    return (name[0] == '.' && strcmp(name, KUBERNETES_LINK) != 0) || (len && name[len - 1] == '~');
}

/* Does nothing if `path` is not a folder. */
static void add_folder(struct file_watch *watch, const char *path, unsigned depth)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode) || depth > FILE_WATCH_DEPTH_MAX)
        return;
    DIR *folder = add_place(watch, path, NULL) ? opendir(path) : NULL;
    if (!folder)
        return;
    for (struct dirent *entry; (entry = readdir(folder)) && watch->place_count < FILE_WATCH_FOLDERS_MAX;) {
        char below[PATH_MAX];
        int n = snprintf(below, sizeof(below), "%s/%s", path, entry->d_name);
        if (!is_ignored(entry->d_name) && n < (int)sizeof(below))
            add_folder(watch, below, depth + 1);
    }
    closedir(folder);
}

static bool add_root_places(struct file_watch *watch, const struct root *root)
{
    bool added = add_place(watch, root->folder, root->name);
    int error = errno;
    add_folder(watch, root->path, 0);
    errno = error;
    return added;
}

static char *copy(const char *text, size_t len)
{
    char *copied = strndup(text, len);
    if (!copied)
        abort();
    return copied;
}

enum err file_watch_add(struct file_watch *watch, const char *path, struct why *why)
{
    struct root *bigger = realloc(watch->roots, (watch->root_count + 1) * sizeof(*bigger));
    if (!bigger)
        abort();
    watch->roots = bigger;
    struct root *root = &bigger[watch->root_count];
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        len--;
    root->path = copy(path, len);
    const char *slash = strrchr(root->path, '/');
    size_t above = slash ? (size_t)(slash - root->path) : 0;
    root->folder = slash ? copy(path, above ? above : 1) : copy(".", 1);
    root->name = slash ? slash + 1 : root->path;
    if (add_root_places(watch, root)) {
        watch->root_count++;
        return OK;
    }
    err_set(why, ERR_IO, "cannot watch %s: its folder %s: %s", path, root->folder, strerror(errno));
    root_clear(root);
    return ERR_IO;
}

bool file_watch_drain(struct file_watch *watch)
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
            const char *name = event->len ? event->name : "";
            changed |= (event->mask & IN_Q_OVERFLOW) != 0;
            for (size_t i = 0; i < watch->place_count && !changed; i++) {
                const struct place *place = &watch->places[i];
                bool by_name = place->name && strcmp(name, KUBERNETES_LINK) != 0;
                changed =
                    place->wd == event->wd && (by_name ? strcmp(place->name, name) == 0 : !is_ignored(name));
            }
            at += (ssize_t)(sizeof(*event) + event->len);
        }
    }
    if (!changed)
        return false;
    /* Looks all places up again and removes the watches that are no longer used. */
    struct place old[FILE_WATCH_FOLDERS_MAX];
    size_t count = watch->place_count;
    memcpy(old, watch->places, count * sizeof(*old));
    watch->place_count = 0;
    for (size_t i = 0; i < watch->root_count; i++)
        add_root_places(watch, &watch->roots[i]);
    for (size_t i = 0; i < count; i++) {
        size_t k = 0;
        while (k < watch->place_count && watch->places[k].wd != old[i].wd)
            k++;
        if (k == watch->place_count)
            inotify_rm_watch(watch->fd, old[i].wd);
    }
    return true;
}
