/* Everything here but fault_record_open runs in signal handlers: no printf, no malloc. */
#include "sandbox/fault_record.h"

#include "sandbox/deadline.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define HEX_DIGITS 16u

static const int crash_signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE};
#define CRASH_SIGNALS (sizeof(crash_signals) / sizeof(crash_signals[0]))

static struct {
    int fd;
    struct sigaction before[CRASH_SIGNALS];
    stack_t stack_before;
} record;

static char handler_stack[FAULT_RECORD_STACK_BYTES] __attribute__((aligned(16)));

static void put_hex(char out[HEX_DIGITS], uint64_t n)
{
    for (size_t i = HEX_DIGITS; i-- > 0; n >>= 4)
        out[i] = "0123456789abcdef"[n & 15];
}

/* One writev, so that lines of two processes do not mix. */
void fault_record_write(const char *kind, uint64_t text, const char *file)
{
    char text_hex[HEX_DIGITS], space[] = " ", end[] = "\n";
    if (record.fd <= 0)
        return;
    put_hex(text_hex, text);
    struct iovec parts[] = {{text_hex, HEX_DIGITS},       {space, 1},
                            {(char *)kind, strlen(kind)}, {space, 1},
                            {(char *)file, strlen(file)}, {end, 1}};
    while (writev(record.fd, parts, sizeof(parts) / sizeof(parts[0])) < 0 && errno == EINTR)
        continue;
}

static void put_error(const char *text)
{
    while (write(STDERR_FILENO, text, strlen(text)) < 0 && errno == EINTR)
        continue;
}

/* The signal is delivered once more, with what handled it before: a core dump is of the place of the fault.
 */
static void on_crash(int signo, siginfo_t *info, void *context)
{
    const struct deadline_run *run = deadline_running();
    (void)context;
    if (run) {
        put_error("toolgate: the process crashed in a policy: ");
        put_error(run->file);
        put_error("\n");
        fault_record_write("crash", run->source_hash, run->file);
    }
    for (size_t i = 0; i < CRASH_SIGNALS; i++)
        if (crash_signals[i] == signo)
            sigaction(signo, &record.before[i], NULL);
    if (info->si_code <= 0) /* sent by kill or raise: nothing repeats it */
        raise(signo);
}

static void catch_crashes(void)
{
    stack_t stack = {.ss_sp = handler_stack, .ss_size = sizeof(handler_stack)};
    struct sigaction action = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    sigaltstack(&stack, &record.stack_before);
    for (size_t i = 0; i < CRASH_SIGNALS; i++)
        sigaction(crash_signals[i], &action, &record.before[i]);
}

static void stop_catching(void)
{
    for (size_t i = 0; i < CRASH_SIGNALS; i++)
        sigaction(crash_signals[i], &record.before[i], NULL);
    sigaltstack(&record.stack_before, NULL);
}

void fault_record_open(int fd)
{
    if (fd > 0 && record.fd <= 0)
        catch_crashes();
    else if (fd <= 0 && record.fd > 0)
        stop_catching();
    record.fd = fd;
}
