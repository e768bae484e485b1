/*
 * The page of the metrics endpoint (metrics.page): static files, and JSON routes that its script reads. It
 * shows what the operator may see and changes nothing: POST /api/check.json decides on a call that is not
 * run and not counted.
 *
 * The files have no user's content, so a browser loads them without the token; the script sends it with each
 * request for JSON, in the Authorization header. A cookie would go to every port of localhost, whoever
 * listens there, and could be sent by pages of other origins.
 */
#ifndef TOOLGATE_SERVER_PAGE_H
#define TOOLGATE_SERVER_PAGE_H

#include "server/http_endpoint.h"

struct page_decisions;

#define PAGE_DECISIONS_MAX       300u     /* records that the page can still get */
#define PAGE_DECISIONS_MAX_BYTES 2097152u /* of them together */
#define PAGE_TOOLS_MAX           200u     /* of one reply; the script asks for more with `offset` */
#define PAGE_BODY_MAX_BYTES      4194304u /* of any reply */

#define PAGE_JSON_TYPE "application/json"

/* No inline script or style, nothing from elsewhere, in no frame; JSON needs no more than a file. */
#define PAGE_HEADERS                                                                                         \
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " \
    "form-action 'none'; frame-ancestors 'none'; base-uri 'none'\r\n"                                        \
    "Referrer-Policy: no-referrer\r\n"                                                                       \
    "Cross-Origin-Resource-Policy: same-origin\r\n"                                                          \
    "Cross-Origin-Opener-Policy: same-origin\r\n"

/* Keeps the latest decisions from now on, or no longer. */
void page_apply(struct server *server, bool is_on);

/* Routes: each appends the body and returns the status. */
http_route_write page_status, page_decisions, page_tools, page_tool, page_sessions, page_check;

#endif
