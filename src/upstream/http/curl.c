/* dlopen by the name that its ABI has had since 2006. A failure is not kept: installing it needs no restart.
 */
#include "upstream/http/curl.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static const struct {
    const char *name;
    size_t offset;
} functions[] = {
#define CURL_ROW(name) {"curl_" #name, offsetof(struct curl_library, name)},
    CURL_FUNCTIONS(CURL_ROW)
#undef CURL_ROW
};

const struct curl_library *curl_load(struct why *why)
{
    static struct curl_library library;
    static bool loaded;
    if (loaded)
        return &library;
    void *handle = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        handle = dlopen("libcurl-gnutls.so.4", RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        err_set(why, ERR_UNAVAILABLE, "HTTP needs libcurl, which could not be loaded: install libcurl4 (%s)",
                dlerror());
        return NULL;
    }
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        void *address = dlsym(handle, functions[i].name);
        if (!address) {
            err_set(why, ERR_UNAVAILABLE, "the installed libcurl has no %s: install libcurl4 7.80 or later",
                    functions[i].name);
            return NULL;
        }
        memcpy((char *)&library + functions[i].offset, &address, sizeof(address));
    }
    loaded = library.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
    if (!loaded)
        err_set(why, ERR_UNAVAILABLE,
                "libcurl could not be initialised: its TLS library has a configuration that it rejects");
    return loaded ? &library : NULL;
}
