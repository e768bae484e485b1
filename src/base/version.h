#ifndef TOOLGATE_BASE_VERSION_H
#define TOOLGATE_BASE_VERSION_H

/* The one place; `~dev` sorts before the release, for dpkg too. debian/changelog and CHANGELOG.md agree with
 * it, as tests/spec/layout/dist_spec.lua checks. */
#define TOOLGATE_VERSION "2.0.0~dev"

#define TOOLGATE_VERSION_DATE "2026-11-23" /* of the manual pages */

#endif
