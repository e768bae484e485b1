/* libcurl's errors as sentences that an operator can act on. Only fetch.c includes this. */
#ifndef TOOLGATE_UPSTREAM_HTTP_FETCH_ERRORS_H
#define TOOLGATE_UPSTREAM_HTTP_FETCH_ERRORS_H

#include "upstream/http/curl.h"
#include "upstream/http/fetch.h"

/* `sent`: the request had gone out; `number`: errno, 0: none. `*more`: in, libcurl's own message; out, that
 * message if it adds something and holds no address, else the system's reason, or "". */
enum fetch_outcome fetch_errors_describe(const struct curl_library *curl, CURLcode code, bool sent,
                                         int number, const char **text, const char **more);

#endif
