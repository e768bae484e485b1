/*
 * libcurl, loaded when the first HTTP upstream is asked and not before: linked
 * to the daemon it would cost everybody 6 MB of memory and 3 ms of each start
 * (it brings 30 libraries with it). Only files of this room include it.
 */
#ifndef TOOLGATE_UPSTREAM_HTTP_CURL_H
#define TOOLGATE_UPSTREAM_HTTP_CURL_H

#include "base/err.h"

#include <curl/curl.h>

/* The functions that we use, under their own names. */
#define CURL_FUNCTIONS(each)                                                                                 \
    each(global_init) each(version_info) each(easy_init) each(easy_cleanup) each(easy_setopt)                \
        each(easy_getinfo) each(easy_strerror) each(slist_append) each(slist_free_all) each(multi_init)      \
            each(multi_cleanup) each(multi_setopt) each(multi_add_handle) each(multi_remove_handle)          \
                each(multi_socket_action) each(multi_assign) each(multi_info_read) each(multi_strerror)

/* curl.h makes macros of some of these names, to check types; a pointer is called past them. */
struct curl_library {
#define CURL_POINTER(name) __typeof__(&(curl_##name)) name; /* NOLINT(bugprone-macro-parentheses) */
    CURL_FUNCTIONS(CURL_POINTER)
#undef CURL_POINTER
};

/* NULL: it is not there, and `why` says what to install. Loaded once for the process and never unloaded. */
const struct curl_library *curl_load(struct why *why);

#endif
