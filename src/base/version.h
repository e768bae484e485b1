#ifndef TOOLGATE_BASE_VERSION_H
#define TOOLGATE_BASE_VERSION_H

#define TOOLGATE_VERSION "1.0.0"

#define TOOLGATE_VERSION_DATE "2026-11-23" /* of the manual pages */

#endif
