/* The listening socket: files in its way, running out of descriptors, and cleaning up. */

#include "unit.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "io/conn.h"
#include "server/listener.h"

struct place {
    char folder[64], path[96];
    struct loop *loop;
    struct listener *listener;
    int accepted[16];
    size_t accepted_count, without_files;
};

static void on_accepted(void *owner, int fd)
{
    struct place *place = owner;
    place->accepted[place->accepted_count++] = fd;
}

static void on_no_files(void *owner, int fd)
{
    struct place *place = owner;
    place->without_files++;
    assert_int_equal(send(fd, "full\n", 5, MSG_NOSIGNAL), 5);
}

static const struct listener_hooks hooks = {on_accepted, on_no_files};

static int set_up(void **state)
{
    struct place *place = calloc(1, sizeof(*place));
    log_open(LOG_OFF, LOG_FORMAT_TEXT, NULL, NULL);
    strcpy(place->folder, "/tmp/toolgate-listen-XXXXXX");
    assert_non_null(mkdtemp(place->folder));
    snprintf(place->path, sizeof(place->path), "%s/gate.sock", place->folder);
    place->loop = loop_new();
    *state = place;
    return 0;
}

static int tear_down(void **state)
{
    struct place *place = *state;
    listener_free(place->listener);
    for (size_t i = 0; i < place->accepted_count; i++)
        close(place->accepted[i]);
    loop_free(place->loop);
    assert_int_equal(access(place->path, F_OK), -1); /* the file is removed */
    assert_int_equal(rmdir(place->folder), 0);
    free(place);
    return 0;
}

FIXTURE_OF(set_up, tear_down)

#define STORY(name) TEST_OF(name, struct place *place)

static enum err open_it(struct place *place, struct why *why)
{
    return listener_new(place->loop, place->path, 0640, &hooks, place, &place->listener, why);
}

static int call(const struct place *place)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    strcpy(address.sun_path, place->path);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static void turn(struct place *place)
{
    loop_turn(place->loop, false);
    listener_accept(place->listener);
}

STORY(accepts_with_the_requested_mode)
{
    struct stat st;
    struct why why;
    assert_int_equal(open_it(place, &why), OK);
    assert_int_equal(stat(place->path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_false(listener_is_inherited(place->listener));
    int fd = call(place);
    turn(place);
    assert_int_equal(place->accepted_count, 1);
    assert_true(fcntl(place->accepted[0], F_GETFL) & O_NONBLOCK);
    close(fd);
}

STORY(creates_the_last_folder)
{
    struct why why;
    char deeper[80];
    snprintf(deeper, sizeof(deeper), "%s/run", place->folder);
    snprintf(place->path, sizeof(place->path), "%s/gate.sock", deeper);
    assert_int_equal(open_it(place, &why), OK);
    listener_free(place->listener);
    place->listener = NULL;
    assert_int_equal(rmdir(deeper), 0);
    snprintf(place->path, sizeof(place->path), "%s/no/such/gate.sock", place->folder);
    assert_int_equal(open_it(place, &why), ERR_IO);
    assert_non_null(strstr(why.text, "/no/such"));
}

STORY(leaves_a_regular_file_alone)
{
    struct why why;
    close(open(place->path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    assert_int_equal(open_it(place, &why), ERR_EXISTS);
    assert_non_null(strstr(why.text, "is not a socket"));
    assert_int_equal(unlink(place->path), 0);
}

/* A daemon that stops must not remove the socket that its successor has bound. */
TEST(removes_only_its_own_file)
{
    struct place *place = *state, successor = *place;
    struct why why;
    assert_int_equal(open_it(place, &why), OK);
    assert_int_equal(unlink(place->path), 0);
    assert_int_equal(open_it(&successor, &why), OK);
    listener_free(place->listener);
    place->listener = NULL;
    assert_int_equal(access(place->path, F_OK), 0);
    listener_free(successor.listener);
}

STORY(refuses_a_path_too_long)
{
    struct why why;
    char path[200];
    memset(path, 'x', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    assert_int_equal(listener_new(place->loop, path, 0600, &hooks, place, &place->listener, &why),
                     ERR_CONFIG);
    assert_non_null(strstr(why.text, "107"));
}

/* Without free descriptors a waiting client gets an error, so that the loop does not spin. */
STORY(sends_an_error_without_free_descriptors)
{
    struct why why;
    struct rlimit before, tight;
    int filler[64];
    size_t count = 0;
    char answer[8];
    assert_int_equal(open_it(place, &why), OK);
    turn(place);
    int fd = call(place);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    tight = before;
    tight.rlim_cur = (rlim_t)fd + 8;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
    while (count < 64 && (filler[count] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        count++;
    turn(place);
    assert_int_equal(place->without_files, 1);
    assert_int_equal(place->accepted_count, 0);
    assert_int_equal(recv(fd, answer, sizeof(answer), 0), 5);
    close(fd);
    while (count)
        close(filler[--count]);
    setrlimit(RLIMIT_NOFILE, &before);
    fd = call(place);
    turn(place);
    assert_int_equal(place->accepted_count, 1);
    close(fd);
}

TEST(raises_the_soft_limit_of_files)
{
    struct rlimit before, low, now;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    low = before;
    low.rlim_cur = 256;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    assert_int_equal(listener_raise_file_limit((struct file_shares){300, 50}).connections, 300);
    assert_int_equal(listener_raise_file_limit((struct file_shares){300, 50}).calls, 50);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &now), 0);
    assert_true(now.rlim_cur >= 300);
    setrlimit(RLIMIT_NOFILE, &before);
}

/* If the host allows few files, most of them are for connections. */
TEST(reserves_files_under_a_low_limit)
{
    pid_t child = fork();
    if (child == 0) {
        struct rlimit low = {.rlim_cur = 64, .rlim_max = 64};
        setrlimit(RLIMIT_NOFILE, &low);
        struct file_shares shares = listener_raise_file_limit((struct file_shares){1000, 1000});
        _exit(shares.connections == 30 && shares.calls == 10 ? 0 : 1);
    }
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
}
