/*
 * Files and folders whose changes matter, by inotify: tells that something
 * changed, not what. A folder is watched with its subfolders, and by its name
 * in the folder above it, so that it may come, go, or be a symbolic link that
 * is turned elsewhere; hidden files and editors' backups don't count.
 *
 * Who watches waits for the descriptor, drains it, and acts once it has been
 * quiet for FILE_WATCH_QUIET_MS: a save is several events, a checkout hundreds.
 */
#ifndef TOOLGATE_IO_FILE_WATCH_H
#define TOOLGATE_IO_FILE_WATCH_H

#include "base/err.h"

#include <stdbool.h>

#define FILE_WATCH_QUIET_MS    50u  /* of quiet before a change is acted on */
#define FILE_WATCH_FOLDERS_MAX 256u /* watched, subfolders included; what lies beyond is not seen */
#define FILE_WATCH_DEPTH_MAX   8u   /* of subfolders */

struct watch;

/* ERR_IO where the system has no inotify to give (fs.inotify.max_user_instances). */
enum err file_watch_new(struct watch **out, struct why *why);
void file_watch_free(struct watch *watch); /* NULL is fine */

/* A file or a folder, which need not exist yet; the folder it is in must. */
enum err file_watch_add(struct watch *watch, const char *path, struct why *why);

/* Readable when there is something to drain; non-blocking. */
int file_watch_fd(const struct watch *watch);

/* Takes what has come; true where it matters. */
bool file_watch_drain(struct watch *watch);

#endif
