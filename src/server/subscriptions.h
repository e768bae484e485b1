/*
 * subscriptions/listen of the modern era, and who is notified of a changed
 * tool list. Clients of the legacy era are notified once they have sent
 * initialize or tools/list.
 */
#ifndef TOOLGATE_SERVER_SUBSCRIPTIONS_H
#define TOOLGATE_SERVER_SUBSCRIPTIONS_H

#include "server/server_internal.h"

#define SUBSCRIPTIONS_MAX 16u /* of one connection */

/* Notifies every client that wants it, in the way of its era. */
void subscriptions_list_changed(struct server *server);

/* Notifies one client: the list changed for its session only. */
void subscriptions_client_list_changed(struct client *client);

/* Ends the subscription with this id, if there is one, without a message. */
void subscriptions_cancel(struct client *client, const struct json *id);

/* The daemon stops: each subscription gets the result that its request waits for. */
void subscriptions_end(struct client *client);

/* Frees the client's subscriptions. */
void subscriptions_clear(struct client *client);

#endif
