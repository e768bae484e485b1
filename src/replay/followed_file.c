/* Files are told apart by device and inode: the open descriptor keeps its inode from being reused. */
#include "replay/followed_file.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLLOWED_TRIES 10u /* the writer may rotate again while the next file is opened */

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* PATH for 0, else PATH.N. */
static const char *rotated_name(const char *path, int n, char name[PATH_MAX])
{
    int len = n ? snprintf(name, PATH_MAX, "%s.%d", path, n) : snprintf(name, PATH_MAX, "%s", path);
    return len < PATH_MAX ? name : "";
}

enum followed_state followed_file_state(const char *path, int fd, off_t position)
{
    struct stat open_file, named;
    if (fstat(fd, &open_file) != 0 || stat(path, &named) != 0)
        return FOLLOWED_SAME;
    if (!is_same(&open_file, &named))
        return FOLLOWED_ROTATED;
    return open_file.st_size < position ? FOLLOWED_TRUNCATED : FOLLOWED_SAME;
}

/* The N under which the file is found; -1: under none. */
static int place_of(const char *path, const struct stat *file)
{
    char name[PATH_MAX];
    struct stat named;
    for (int n = 0; n <= (int)FOLLOWED_ROTATED_MAX; n++)
        if (stat(rotated_name(path, n, name), &named) == 0 && is_same(&named, file))
            return n;
    return -1;
}

static bool is_written_after(const struct stat *a, const struct stat *b)
{
    return a->st_mtim.tv_sec > b->st_mtim.tv_sec ||
           (a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec > b->st_mtim.tv_nsec);
}

/* The N of the file that was written next: the neighbour, else the oldest one that is younger than this file,
 * as somebody may have moved files aside; else PATH itself. -1: `place` is 0, so there is none. */
static int next_place(const char *path, const struct stat *file, int place)
{
    char name[PATH_MAX];
    struct stat named;
    for (int n = (place < 0 ? (int)FOLLOWED_ROTATED_MAX + 1 : place) - 1; n > 0; n--)
        if (stat(rotated_name(path, n, name), &named) == 0 &&
            (n == place - 1 || is_written_after(&named, file)))
            return n;
    return place == 0 ? -1 : 0;
}

int followed_file_next(const char *path, int fd, bool *gap)
{
    char name[PATH_MAX];
    struct stat file;
    *gap = false;
    if (fstat(fd, &file) != 0)
        return -1;
    for (unsigned i = 0; i < FOLLOWED_TRIES; i++) {
        int place = place_of(path, &file), after = next_place(path, &file, place);
        int next = after < 0 ? -1 : open(rotated_name(path, after, name), O_RDONLY | O_CLOEXEC);
        if (next >= 0 && place_of(path, &file) == place) {
            *gap = place < 0 && after > 0;
            return next;
        }
        if (next >= 0)
            close(next);
    }
    return -1;
}
