/*
 * libcurl, loaded at the first HTTP request: linked to the daemon, it and its
 * 30 libraries would cost every start 6 MB of memory and 3 ms. Only files of
 * this folder include it.
 */
#ifndef TOOLGATE_UPSTREAM_HTTP_CURL_H
#define TOOLGATE_UPSTREAM_HTTP_CURL_H

#include "base/err.h"

#include <curl/curl.h>

/* The functions that are used, under their own names. */
#define CURL_FUNCTIONS(each)                                                                                 \
    each(global_init) each(easy_init) each(easy_cleanup) each(easy_setopt) each(easy_getinfo)                \
        each(easy_strerror) each(slist_append) each(slist_free_all) each(multi_init) each(multi_cleanup)     \
            each(multi_setopt) each(multi_add_handle) each(multi_remove_handle) each(multi_socket_action)    \
                each(multi_assign) each(multi_info_read)

/* curl.h defines some of these names as type-checking macros, which a pointer bypasses. */
struct curl_library {
#define CURL_POINTER(name) __typeof__(&(curl_##name)) name; /* NOLINT(bugprone-macro-parentheses) */
    CURL_FUNCTIONS(CURL_POINTER)
#undef CURL_POINTER
};

/* Loaded once and never unloaded. NULL: it is missing; `why` names the package to install. */
const struct curl_library *curl_load(struct why *why);

#endif
