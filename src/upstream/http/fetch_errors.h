/* What libcurl says of a failure, in the words that a person can act on. Only http_client.c includes it. */
#ifndef TOOLGATE_UPSTREAM_HTTP_FETCH_ERRORS_H
#define TOOLGATE_UPSTREAM_HTTP_FETCH_ERRORS_H

#include "upstream/http/curl.h"
#include "upstream/http/fetch.h"

/* `sent`: the request had gone out; `number`: errno of the failure, 0: none. *more comes as libcurl's own
 * words and stays them where they add something and hold no address; else it is the system's reason, or
 * empty. */
enum fetch_outcome fetch_errors_describe(const struct curl_library *curl, CURLcode code, bool sent,
                                         int number, const char **text, const char **more);

#endif
