/* For `make static`: glibc has these two functions of libevent since 2.36; without them the program starts
 * on 2.34, too. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

/* getentropy fails only for more than 256 bytes, or where the kernel has no random numbers. */
void arc4random_buf(void *to, size_t bytes)
{
    for (size_t done = 0; done < bytes; done += 256)
        if (getentropy((char *)to + done, bytes - done < 256 ? bytes - done : 256) != 0)
            abort();
}

uint32_t arc4random(void)
{
    uint32_t number;
    arc4random_buf(&number, sizeof(number));
    return number;
}
