/* Everything here runs in signal handlers but fault_record_open and fault_record_loading: no printf, no
 * malloc. */
#include "sandbox/fault_record.h"

#include "sandbox/deadline.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define HEX_DIGITS     16u
#define DECIMAL_DIGITS 20u

static const int crash_signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE};
#define CRASH_SIGNALS (sizeof(crash_signals) / sizeof(crash_signals[0]))

static struct {
    int fd;
    volatile sig_atomic_t loading;
    struct sigaction before[CRASH_SIGNALS];
    stack_t stack_before;
} record;

static char handler_stack[FAULT_RECORD_STACK_BYTES] __attribute__((aligned(16)));

static void put_hex(char out[HEX_DIGITS], uint64_t n)
{
    for (size_t i = HEX_DIGITS; i-- > 0; n >>= 4)
        out[i] = "0123456789abcdef"[n & 15];
}

/* Returns where the number begins. */
static const char *put_decimal(char out[DECIMAL_DIGITS], uint64_t n, size_t *len)
{
    char *at = out + DECIMAL_DIGITS;
    do
        *--at = (char)('0' + n % 10);
    while ((n /= 10) > 0);
    *len = (size_t)(out + DECIMAL_DIGITS - at);
    return at;
}

/* FNV-1a; never zero for a call. */
static uint64_t caller_hash(const struct fault_caller *caller)
{
    uint64_t hash = 14695981039346656037u ^ caller->uid;
    if (!caller->is_call || record.loading)
        return 0;
    for (size_t i = 0; i < caller->session.len; i++)
        hash = (hash ^ (unsigned char)caller->session.at[i]) * 1099511628211u;
    return hash ? hash : 1;
}

/* One writev, so that lines of two processes do not mix. */
void fault_record_write(const char *kind, uint64_t text, const struct fault_caller *caller, const char *file)
{
    char text_hex[HEX_DIGITS], caller_hex[HEX_DIGITS], decimal[DECIMAL_DIGITS], space[] = " ", end[] = "\n";
    struct timespec now = {0};
    size_t seconds_len;
    if (record.fd <= 0)
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    const char *seconds = put_decimal(decimal, (uint64_t)now.tv_sec, &seconds_len);
    put_hex(text_hex, text);
    put_hex(caller_hex, caller_hash(caller));
    struct iovec parts[] = {
        {text_hex, HEX_DIGITS},       {space, 1}, {(char *)seconds, seconds_len}, {space, 1},
        {caller_hex, HEX_DIGITS},     {space, 1}, {(char *)kind, strlen(kind)},   {space, 1},
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
        fault_record_write("crash", run->source_hash, &run->caller, run->file);
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

void fault_record_loading(bool on)
{
    record.loading = on;
}
