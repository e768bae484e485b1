/* All policies are the one typical text, each under a name of its own. */
#include "policy_folder.h"

#include "base/str.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES 128

static const char definitions[] =
    "[{\"name\":\"" BENCH_PLAIN_TOOL "\",\"description\":\"Book a room.\",\"inputSchema\":"
    "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"room\",\"start\",\"end\",\"people\"]"
    ","
    "\"properties\":{"
    "\"room\":{\"type\":\"string\"},\"start\":{\"type\":\"string\",\"format\":\"date-time\"},"
    "\"end\":{\"type\":\"string\",\"format\":\"date-time\"},\"people\":{\"type\":\"integer\",\"minimum\":1},"
    "\"layout\":{\"type\":\"string\",\"enum\":[\"table\",\"rows\"]},\"title\":{\"type\":\"string\"}}}}]\n";

const char bench_typical_policy[] =
#include "book_room.lua.h"
    ;

/* The typical policy's text around its tool's name. */
struct halves {
    struct str before, after;
};

static struct halves typical_halves(void)
{
    static const char opening[] = "return tool \"";
    struct str text = str_of(bench_typical_policy);
    const char *at = memmem(text.at, text.len, opening, sizeof(opening) - 1);
    if (!at)
        abort(); /* our own text */
    size_t before = (size_t)(at - text.at) + sizeof(opening) - 1;
    return (struct halves){{text.at, before}, str_from(text, before + strlen(BENCH_TYPICAL_TOOL))};
}

static enum err write_parts(const char *path, struct str a, const char *name, struct str b, struct why *why)
{
    FILE *file = fopen(path, "we");
    bool written = file && fprintf(file, STR_FMT "%s" STR_FMT, STR_ARG(a), name, STR_ARG(b)) >= 0;
    if (file && fclose(file) != 0)
        written = false;
    return written ? OK : err_set(why, ERR_IO, "%s: %s", path, strerror(errno));
}

/* The n-th of the many; the first is the one that is measured among them. */
static void tool_name(size_t n, char out[32])
{
    if (n == 0)
        snprintf(out, 32, "%s", BENCH_TYPICAL_TOOL);
    else
        snprintf(out, 32, "%s_%zu", BENCH_TYPICAL_TOOL, n);
}

static enum err write_policy(const char *folder, size_t n, struct why *why)
{
    struct halves halves = typical_halves();
    char path[PATH_BYTES], name[32];
    tool_name(n, name);
    snprintf(path, sizeof(path), "%s/%s.lua", folder, name);
    return write_parts(path, halves.before, name, halves.after, why);
}

static enum err make_folder(const char *path, struct why *why)
{
    return mkdir(path, 0700) == 0 ? OK : err_set(why, ERR_IO, "%s: %s", path, strerror(errno));
}

enum err bench_many_make(struct bench_many *folder, size_t many, struct why *why)
{
    const char *base = getenv("TMPDIR");
    *folder = (struct bench_many){0};
    snprintf(folder->path, sizeof(folder->path), "%s/toolgate-bench-XXXXXX",
             base && strlen(base) < 32 ? base : "/tmp");
    if (!mkdtemp(folder->path)) {
        err_set(why, ERR_IO, "%s: %s; set TMPDIR to a folder that can be written", folder->path,
                strerror(errno));
        folder->path[0] = '\0';
        return ERR_IO;
    }
    snprintf(folder->one, sizeof(folder->one), "%s/one", folder->path);
    snprintf(folder->many, sizeof(folder->many), "%s/many", folder->path);
    snprintf(folder->tools, sizeof(folder->tools), "%s/tools.json", folder->path);
    enum err err = make_folder(folder->one, why);
    if (err == OK)
        err = make_folder(folder->many, why);
    if (err == OK)
        err = write_parts(folder->tools, str_of(definitions), "", STR_NONE, why);
    if (err == OK)
        err = write_policy(folder->one, 0, why);
    for (size_t i = 0; err == OK && i < many; i++)
        err = write_policy(folder->many, i, why);
    return err;
}

static void drop(const char *folder, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char path[PATH_BYTES], name[32];
        tool_name(i, name);
        snprintf(path, sizeof(path), "%s/%s.lua", folder, name);
        unlink(path);
    }
    rmdir(folder);
}

void bench_many_drop(const struct bench_many *folder, size_t many)
{
    if (!folder->path[0])
        return;
    drop(folder->one, 1);
    drop(folder->many, many);
    unlink(folder->tools);
    rmdir(folder->path);
}
