/*
 * Watches the operator's files and reports once they have changed and no
 * further change follows. If the system has no inotify watch left, the log
 * has the fix, and the daemon reloads only on request.
 */
#ifndef TOOLGATE_SERVER_CONFIG_WATCH_H
#define TOOLGATE_SERVER_CONFIG_WATCH_H

#include "policy/config.h"

#define CONFIG_WATCH_MAX_DELAY_MS 1000u /* files that keep changing are reported after this */

struct config_watch;
struct loop;

/* `changed` fires from the loop's turn. */
struct config_watch *config_watch_new(struct loop *loop, void (*changed)(void *owner), void *owner);
void config_watch_free(struct config_watch *watch); /* NULL is allowed */

/* Watches the files of this configuration from now on: its own file, policies and tools; none if it says
 * watch = false. Call it before they are read, so that no change is missed. */
void config_watch_apply(struct config_watch *watch, const struct config *config);

#endif
