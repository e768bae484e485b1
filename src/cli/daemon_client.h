/*
 * A daemon's socket, as a command sees it: send a line, read a line, or ask a
 * question and wait for its answer. Blocking, with a deadline.
 */
#ifndef TOOLGATE_CLI_DAEMON_CLIENT_H
#define TOOLGATE_CLI_DAEMON_CLIENT_H

#include "base/err.h"
#include "json/value.h"

struct arena;
struct daemon_client;

#define DAEMON_CLIENT_TIMEOUT_MS     60000u     /* for one answer: a tool may take its time */
#define DAEMON_CLIENT_LINE_MAX_BYTES 134217728u /* longest answer that is read */

/* The connected socket, or -1; `why` names the command that starts a daemon there. */
int daemon_client_socket(const char *path, struct why *why);

/* `path` NULL: the default socket. Close with daemon_client_close, which takes NULL. */
enum err daemon_client_connect(const char *path, struct daemon_client **out, struct why *why);
void daemon_client_close(struct daemon_client *client);

/* The line without its newline. */
enum err daemon_client_send(struct daemon_client *client, struct str line, struct why *why);

/* The next line, without its newline; valid until the next read. */
enum err daemon_client_read(struct daemon_client *client, struct str *line, struct why *why);

/*
 * One request: `params` is JSON text, an object. Notifications that arrive
 * before the answer are passed over. `result` lives in the arena; a JSON-RPC
 * error is ERR_PARSE with the daemon's own words.
 */
enum err daemon_client_call(struct daemon_client *client, struct arena *arena, const char *method,
                            struct str params, struct json *result, struct why *why);

#endif
