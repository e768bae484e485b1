/*
 * The operator's files, watched: tells once they have changed and are quiet
 * again. Where the system gives no watch, the log says what to raise, and the
 * daemon waits to be asked.
 */
#ifndef TOOLGATE_SERVER_CONFIG_WATCH_H
#define TOOLGATE_SERVER_CONFIG_WATCH_H

#include "config/config.h"

#define CONFIG_WATCH_MAX_DELAY_MS 1000u /* files that never get quiet are loaded after this, all the same */

struct event_base;
struct watcher;

/* `changed` fires from the loop's turn. */
struct watcher *config_watch_new(struct event_base *base, void (*changed)(void *owner), void *owner);
void config_watch_free(struct watcher *watcher); /* NULL is fine */

/* From now on these files: the configuration's own, its policies and tools. To be called before they are
 * read, so that no change falls in between. Nothing is watched where the configuration says watch = false. */
void config_watch_apply(struct watcher *watcher, const struct config *config);

#endif
