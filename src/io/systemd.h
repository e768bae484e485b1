/*
 * systemd's two protocols, without libsystemd: sd_notify(3), a datagram with
 * the service's state, and sd_listen_fds(3), an inherited listening socket.
 * Without systemd every function here does nothing.
 */
#ifndef TOOLGATE_IO_SYSTEMD_H
#define TOOLGATE_IO_SYSTEMD_H

#include "base/err.h"

#include <stdint.h>

#define SYSTEMD_FIRST_FD 3 /* the first inherited socket */

/* "READY=1", "STOPPING=1", "STATUS=…": one assignment a line. */
void systemd_notify(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The interval of WATCHDOG=1 in microseconds, half of what systemd allows; 0: no watchdog. */
int64_t systemd_watchdog_us(void);

/* The inherited listening socket in `*fd`, or -1. An error if there are several, or it is not a listening
 * Unix stream socket. */
enum err systemd_listen_fd(int *fd, struct why *why);

#endif
