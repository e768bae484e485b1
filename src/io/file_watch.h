/*
 * Watches files and folders by inotify and reports that something changed, not
 * what. A folder is watched with its subfolders, and by its name in the parent
 * folder, so that it may be created, deleted, or be a symbolic link that is
 * redirected. Hidden files and editor backups are ignored.
 *
 * The caller waits for the descriptor, drains it, and acts once it has been
 * quiet for FILE_WATCH_QUIET_MS: a save is several events, a checkout hundreds.
 */
#ifndef TOOLGATE_IO_FILE_WATCH_H
#define TOOLGATE_IO_FILE_WATCH_H

#include "base/err.h"

#include <stdbool.h>

#define FILE_WATCH_QUIET_MS    50u  /* without events before the caller acts */
#define FILE_WATCH_FOLDERS_MAX 256u /* subfolders included; further ones are not watched */
#define FILE_WATCH_DEPTH_MAX   8u   /* of subfolders */

struct file_watch;

/* ERR_IO if the system allows no further inotify instance (fs.inotify.max_user_instances). */
enum err file_watch_new(struct file_watch **out, struct why *why);
void file_watch_free(struct file_watch *watch); /* accepts NULL */

/* A file or a folder, which need not exist yet; its parent folder must. */
enum err file_watch_add(struct file_watch *watch, const char *path, struct why *why);

/* Non-blocking; readable if there are events to drain. */
int file_watch_fd(const struct file_watch *watch);

/* Reads all pending events; true if one of them matters. */
bool file_watch_drain(struct file_watch *watch);

#endif
