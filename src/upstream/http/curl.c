/*
 * dlopen by the name that its ABI has had since 2006, whichever TLS it was
 * built with. What is found is kept: a second attempt after a failure costs a
 * look at the same folders, so that installing it needs no restart.
 */
#include "upstream/http/curl.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static const char *const file_names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};

static const struct {
    const char *name;
    size_t offset;
} functions[] = {
#define CURL_ROW(name) {"curl_" #name, offsetof(struct curl_library, name)},
    CURL_FUNCTIONS(CURL_ROW)
#undef CURL_ROW
};

static void *open_library(void)
{
    void *handle = NULL;
    for (size_t i = 0; !handle && i < sizeof(file_names) / sizeof(file_names[0]); i++)
        handle = dlopen(file_names[i], RTLD_NOW | RTLD_LOCAL);
    return handle;
}

static enum err find_functions(void *handle, struct curl_library *library, struct why *why)
{
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        void *address = dlsym(handle, functions[i].name);
        if (!address)
            return err_set(why, ERR_UNAVAILABLE,
                           "the libcurl that is installed has no %s: install libcurl4 7.80 or later",
                           functions[i].name);
        memcpy((char *)library + functions[i].offset, &address, sizeof(address));
    }
    return OK;
}

const struct curl_library *curl_load(struct why *why)
{
    static struct curl_library library;
    static bool loaded;
    if (loaded)
        return &library;
    void *handle = open_library();
    if (!handle) {
        const char *text = dlerror();
        err_set(why, ERR_UNAVAILABLE, "HTTP needs libcurl, which could not be loaded: install libcurl4 (%s)",
                text ? text : file_names[0]);
        return NULL;
    }
    if (find_functions(handle, &library, why) != OK)
        return NULL;
    if (library.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        err_set(why, ERR_UNAVAILABLE,
                "libcurl could not be initialised: its TLS library has a configuration that it refuses");
        return NULL;
    }
    loaded = true;
    return &library;
}
