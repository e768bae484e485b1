/* For LD_PRELOAD: listen() takes its time, as on a machine that is busy between bind() and listen(). */
#include <dlfcn.h>
#include <errno.h>
#include <time.h>

int listen(int fd, int backlog)
{
    int (*real)(int, int) = (int (*)(int, int))dlsym(RTLD_NEXT, "listen");
    struct timespec left = {0, 500000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
    return real(fd, backlog);
}
