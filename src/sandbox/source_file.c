/* See source_file.h. */
#include "sandbox/source_file.h"
#include "base/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *kind_of(mode_t mode)
{
    return S_ISDIR(mode) ? "a folder" : S_ISFIFO(mode) ? "a FIFO" : "a device";
}

enum err source_file_read(struct arena *arena, const char *path, struct str *out, struct why *why)
{
    struct stat st;
    enum err err = OK;
    ssize_t got = 0;
    size_t len = 0;
    char *text = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO would wait for its writer for ever */
    if (fd < 0 || fstat(fd, &st) != 0) {
        err = err_set(why, ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
        goto out;
    }
    if (!S_ISREG(st.st_mode)) {
        err = err_set(why, ERR_IO, "%s: expected a file, got %s", path, kind_of(st.st_mode));
        goto out;
    }
    if (st.st_size > (off_t)SOURCE_FILE_MAX_BYTES) {
        err = err_set(why, ERR_LIMIT, "%s: expected a file of at most %u bytes, got one of %lld", path,
                      SOURCE_FILE_MAX_BYTES, (long long)st.st_size);
        goto out;
    }
    text = arena_alloc(arena, (size_t)st.st_size + 1);
    while (len < (size_t)st.st_size && (got = read(fd, text + len, (size_t)st.st_size - len)) > 0)
        len += (size_t)got;
    if (got < 0)
        err = err_set(why, ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
    text[len] = '\0';
    *out = (struct str){text, len};
out:
    if (fd >= 0)
        close(fd);
    return err;
}
