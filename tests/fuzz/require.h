/* What must hold of every input: else the fuzzer, or the unit that replays its corpus, ends with the place. */
#ifndef TOOLGATE_TESTS_REQUIRE_H
#define TOOLGATE_TESTS_REQUIRE_H

#include <stdio.h>
#include <stdlib.h>

#define REQUIRE(what)                                                                                        \
    do {                                                                                                     \
        if (!(what)) {                                                                                       \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what);                                       \
            abort();                                                                                         \
        }                                                                                                    \
    } while (0)

#endif
