/*
 * Preloaded into a daemon (clock.lua, chaos.py): shifts the clock of the day by the seconds in the file that
 * CLOCK_SHIFT names, as an operator or NTP would set it. The monotonic clocks go on.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *shift;
static int (*real_clock_gettime)(clockid_t clock, struct timespec *out);

static void __attribute__((constructor)) begin(void)
{
    const char *path = getenv("CLOCK_SHIFT");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *map = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*shift), PROT_READ, MAP_SHARED, fd, 0);
    real_clock_gettime = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    if (map == MAP_FAILED || !real_clock_gettime)
        abort();
    shift = map;
    close(fd);
}

int clock_gettime(clockid_t clock, struct timespec *out)
{
    if (!real_clock_gettime)
        begin();
    int status = real_clock_gettime(clock, out);
    if (status == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        out->tv_sec += *shift;
    return status;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    out->tv_sec = now.tv_sec;
    out->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *out)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}
