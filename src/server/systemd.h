/*
 * systemd's two protocols, without libsystemd: a datagram that tells how the
 * service is (sd_notify), and sockets handed over as open files (LISTEN_FDS).
 * Where there is no systemd every function here does nothing.
 */
#ifndef TOOLGATE_SERVER_SYSTEMD_H
#define TOOLGATE_SERVER_SYSTEMD_H

#include "base/err.h"

#include <stdint.h>

#define SYSTEMD_FIRST_FD 3 /* where handed-over sockets begin */

/* "READY=1", "STOPPING=1", "STATUS=…": one assignment a line. */
void systemd_notify(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* RELOADING=1 with the time that systemd wants beside it. */
void systemd_notify_reloading(void);

/* How often WATCHDOG=1 must be sent, in microseconds: half of what systemd allows; 0: never. */
int64_t systemd_watchdog_us(void);

/* The listening socket that systemd handed over, in `*fd`; -1 where there is none. More than one, or one that
 * is not a listening stream socket of the Unix family, is an error. */
enum err systemd_listen_fd(int *fd, struct why *why);

#endif
