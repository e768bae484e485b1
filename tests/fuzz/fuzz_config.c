/*
 * Any bytes as the configuration file. It loads or is refused with a reason; what loads can be freed, and
 * loads again to the same.
 */
#include "base/log.h"
#include "policy/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *path_of_input(void)
{
    static char folder[] = "/tmp/toolgate-fuzz-config-XXXXXX", path[64];
    if (!path[0]) {
        if (!mkdtemp(folder))
            abort();
        snprintf(path, sizeof(path), "%s/toolgate.lua", folder);
    }
    return path;
}

static enum err load(const char *path, uint64_t *hash)
{
    const struct config_sources sources = {.file = path, .offline = true, .no_watch = true};
    struct config config;
    struct why why = {{0}};
    enum err err = config_load(&sources, &config, &why);
    if (err && !why.text[0]) {
        fprintf(stderr, "fuzz_config: refused without a reason\n");
        abort();
    }
    *hash = err ? 0 : config.hash;
    config_free(&config);
    return err;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    log_quiet();
    const char *path = path_of_input();
    uint64_t hash, again;
    FILE *file = fopen(path, "wb");
    if (!file || (size && fwrite(data, 1, size, file) != size) || fclose(file) != 0)
        abort();
    if (load(path, &hash) == OK && (load(path, &again) != OK || hash != again)) {
        fprintf(stderr, "fuzz_config: what has loaded does not load again\n");
        abort();
    }
    unlink(path);
    return 0;
}
