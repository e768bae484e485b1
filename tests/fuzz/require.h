/* What each fuzzer begins with: its function, and what ends the run as a finding. */
#ifndef TOOLGATE_TESTS_REQUIRE_H
#define TOOLGATE_TESTS_REQUIRE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(what)                                                                                        \
    do {                                                                                                     \
        if (!(what)) {                                                                                       \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what);                                       \
            abort();                                                                                         \
        }                                                                                                    \
    } while (0)

#endif
