/* systemd's side of readiness notification and socket activation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "io/systemd.h"

/* An abstract address, as in containers: no file to clean up. */
static int manager(char name[64])
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    snprintf(name, 64, "@toolgate-notify-%d", (int)getpid());
    memcpy(address.sun_path, name, strlen(name));
    address.sun_path[0] = '\0';
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));
    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    return fd;
}

static void hears(int fd, const char *beginning)
{
    char text[1024] = "";
    assert_true(recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT) > 0);
    assert_memory_equal(text, beginning, strlen(beginning));
}

static void notify_sends_the_state(void **state)
{
    char name[64];
    int fd = manager(name);
    (void)state;
    setenv("NOTIFY_SOCKET", name, 1);
    systemd_notify("READY=1\nSTATUS=serving generation %d", 3);
    hears(fd, "READY=1\nSTATUS=serving generation 3");
    systemd_notify_reloading();
    hears(fd, "RELOADING=1\nMONOTONIC_USEC=");
    unsetenv("NOTIFY_SOCKET");
    systemd_notify("READY=1"); /* without a listener: no effect */
    char byte;
    assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
    close(fd);
}

static void watchdog_checks_the_process_id(void **state)
{
    char pid[32];
    (void)state;
    unsetenv("WATCHDOG_PID");
    unsetenv("WATCHDOG_USEC");
    assert_int_equal(systemd_watchdog_us(), 0);
    setenv("WATCHDOG_USEC", "10000000", 1);
    assert_int_equal(systemd_watchdog_us(), 5000000);
    snprintf(pid, sizeof(pid), "%d", (int)getpid());
    setenv("WATCHDOG_PID", pid, 1);
    assert_int_equal(systemd_watchdog_us(), 5000000);
    setenv("WATCHDOG_PID", "1", 1);
    assert_int_equal(systemd_watchdog_us(), 0);
    setenv("WATCHDOG_USEC", "often", 1);
    assert_int_equal(systemd_watchdog_us(), 0);
    unsetenv("WATCHDOG_PID");
    unsetenv("WATCHDOG_USEC");
}

static void hand_over(const char *count, const char *pid)
{
    char own[32];
    snprintf(own, sizeof(own), "%d", (int)getpid());
    setenv("LISTEN_FDS", count, 1);
    setenv("LISTEN_PID", pid ? pid : own, 1);
}

static void listen_fd_takes_the_inherited_socket(void **state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct why why;
    int kept = dup(SYSTEMD_FIRST_FD), fd; /* the test runner may use that descriptor */
    (void)state;
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_PID");
    assert_int_equal(systemd_listen_fd(&fd, &why), OK);
    assert_int_equal(fd, -1);

    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s, (struct sockaddr *)&address, sizeof(sa_family_t)), 0);
    dup2(s, SYSTEMD_FIRST_FD);
    hand_over("1", NULL);
    assert_int_equal(systemd_listen_fd(&fd, &why), ERR_CONFIG); /* bound, but does not listen */
    assert_non_null(strstr(why.text, "ListenStream="));
    assert_int_equal(listen(s, 1), 0);
    assert_int_equal(systemd_listen_fd(&fd, &why), OK);
    assert_int_equal(fd, SYSTEMD_FIRST_FD);
    hand_over("2", NULL);
    assert_int_equal(systemd_listen_fd(&fd, &why), ERR_CONFIG);
    hand_over("1", "1");
    assert_int_equal(systemd_listen_fd(&fd, &why), OK);
    assert_int_equal(fd, -1);
    close(s);
    if (kept >= 0)
        dup2(kept, SYSTEMD_FIRST_FD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(notify_sends_the_state),
        cmocka_unit_test(watchdog_checks_the_process_id),
        cmocka_unit_test(listen_fd_takes_the_inherited_socket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
