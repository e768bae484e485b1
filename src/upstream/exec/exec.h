/* Tools that are a command: how many at once. exec_call is in upstream_call.h. */
#ifndef TOOLGATE_UPSTREAM_EXEC_EXEC_H
#define TOOLGATE_UPSTREAM_EXEC_EXEC_H

#define EXEC_AT_ONCE     32u   /* commands that run; the next wait, in their order */
#define EXEC_WAITING_MAX 1024u /* the next are told that there are too many */

#endif
