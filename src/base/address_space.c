#include "base/address_space.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

size_t address_space_for_text(size_t bytes)
{
    struct rlimit limit;
    if (bytes <= ADDRESS_SPACE_SMALL_BYTES || getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY)
        return bytes;
    unsigned long pages = 0; /* mapped now; 0: not known */
    FILE *file = fopen("/proc/self/statm", "re");
    if (file && fscanf(file, "%lu", &pages) != 1)
        pages = 0;
    if (file)
        fclose(file);
    rlim_t mapped = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
    rlim_t room = mapped < limit.rlim_cur ? (limit.rlim_cur - mapped) / ADDRESS_SPACE_FACTOR : 0;
    if (room < ADDRESS_SPACE_SMALL_BYTES)
        room = ADDRESS_SPACE_SMALL_BYTES;
    return bytes < room ? bytes : (size_t)room;
}
