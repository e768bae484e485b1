/* libzstd is loaded when the first packed file is read, as most systems have it and few recordings need it.
 */
#include "replay/recorded_file.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROTATED_MAX  1000u /* PATH.1000 is the oldest that is looked for */
#define ROTATE_TRIES 10u   /* the writer may rotate again while the next file is opened */

/* ---- rotated ----
 * Device and inode tell files apart: the open descriptor keeps its inode from being reused. */

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

/* The N under which the file is found; -1: under none. */
static int place_of(const char *path, const struct stat *file)
{
    char name[PATH_MAX];
    struct stat named;
    for (int n = 0; n <= (int)ROTATED_MAX; n++)
        if (stat(rotated_name(path, n, name), &named) == 0 && is_same(&named, file))
            return n;
    return -1;
}

/* The N of the file that was written next: the neighbour, else the oldest one that is younger than this file,
 * as somebody may have moved files aside; else PATH itself. -1: `place` is 0, so none exists. */
static int next_place(const char *path, const struct stat *file, int place)
{
    char name[PATH_MAX];
    struct stat named;
    for (int n = (place < 0 ? (int)ROTATED_MAX + 1 : place) - 1; n > 0; n--) {
        if (stat(rotated_name(path, n, name), &named) != 0)
            continue;
        bool younger =
            named.st_mtim.tv_sec > file->st_mtim.tv_sec ||
            (named.st_mtim.tv_sec == file->st_mtim.tv_sec && named.st_mtim.tv_nsec > file->st_mtim.tv_nsec);
        if (n == place - 1 || younger)
            return n;
    }
    return place == 0 ? -1 : 0;
}

bool rotated_file_is_away(const char *path, int fd)
{
    struct stat file, named;
    return fstat(fd, &file) == 0 && stat(path, &named) == 0 && !is_same(&file, &named);
}

int rotated_file_next(const char *path, int fd, bool *gap)
{
    char name[PATH_MAX];
    struct stat file;
    *gap = false;
    if (fstat(fd, &file) != 0)
        return -1;
    for (unsigned i = 0; i < ROTATE_TRIES; i++) {
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

/* ---- packed ---- */

struct zstd_in {
    const void *from;
    size_t size, at;
};

struct zstd_out {
    void *to;
    size_t size, at;
};

static struct {
    bool looked;
    void *(*create)(void);
    size_t (*free)(void *);
    size_t (*decompress)(void *, struct zstd_out *, struct zstd_in *);
    unsigned (*is_error)(size_t);
    const char *(*error_name)(size_t);
} zstd;

struct unpacker {
    void *stream;
    struct zstd_in in;
    bool within; /* a frame, which needs more bytes */
    char packed[UNPACKER_MAX_BYTES];
};

static bool load_zstd(void)
{
    void *handle = zstd.looked ? NULL : dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
    zstd.looked = true;
    if (handle) {
        *(void **)&zstd.create = dlsym(handle, "ZSTD_createDStream");
        *(void **)&zstd.free = dlsym(handle, "ZSTD_freeDStream");
        *(void **)&zstd.decompress = dlsym(handle, "ZSTD_decompressStream");
        *(void **)&zstd.is_error = dlsym(handle, "ZSTD_isError");
        *(void **)&zstd.error_name = dlsym(handle, "ZSTD_getErrorName");
    }
    return zstd.create && zstd.free && zstd.decompress && zstd.is_error && zstd.error_name;
}

struct unpacker *unpacker_new(struct str bytes)
{
    if (!load_zstd())
        return NULL;
    struct unpacker *u = calloc(1, sizeof(*u));
    if (!u || !(u->stream = zstd.create()))
        abort();
    u->in = (struct zstd_in){u->packed, bytes.len, 0};
    memcpy(u->packed, bytes.at, u->in.size);
    return u;
}

void unpacker_free(struct unpacker *u)
{
    if (!u)
        return;
    zstd.free(u->stream);
    free(u);
}

ssize_t unpacker_read(struct unpacker *u, int fd, char *to, size_t room, const char **why)
{
    struct zstd_out out = {to, room, 0};
    while (!out.at) {
        size_t before = u->in.at, left = zstd.decompress(u->stream, &out, &u->in);
        if (zstd.is_error(left)) {
            *why = zstd.error_name(left);
            return -1;
        }
        u->within = u->in.at > before || out.at ? left > 0 : u->within;
        if (out.at || u->in.at < u->in.size)
            continue;
        ssize_t n;
        do
            n = read(fd, u->packed, UNPACKER_MAX_BYTES);
        while (n < 0 && errno == EINTR);
        if (n <= 0) {
            *why = n < 0 ? strerror(errno) : "its compressed data end too early";
            return n < 0 || u->within ? -1 : 0;
        }
        u->in = (struct zstd_in){u->packed, (size_t)n, 0};
    }
    return (ssize_t)out.at;
}
