/*
 * subscriptions/listen of the modern era: who hears of a changed tool list.
 * Clients of the legacy era hear of it without asking, once they shook hands or listed tools.
 */
#ifndef TOOLGATE_SERVER_SUBSCRIPTIONS_H
#define TOOLGATE_SERVER_SUBSCRIPTIONS_H

#include "server/server_internal.h"

#define SUBSCRIPTIONS_MAX 16u /* of one connection */

/* Tells everybody who wants to know, each in the way of its era. */
void subscriptions_list_changed(struct server *server);

/* The same to one client alone, whose list it is. */
void subscriptions_client_list_changed(struct client *client);

/* The client does not want this one any more: false where there is none of that id. Nothing is sent. */
bool subscriptions_cancel(struct client *client, const struct json *id);

/* The daemon stops: each subscription gets its result, which is what its request was waiting for. */
void subscriptions_end(struct client *client);

void subscriptions_clear(struct client *client);

#endif
