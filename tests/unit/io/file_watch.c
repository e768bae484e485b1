/* Which changes of files are reported, and which are not. */
#include "io/file_watch.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char root[64];

static int enter_folder(void **state)
{
    (void)state;
    snprintf(root, sizeof(root), "/tmp/toolgate-watch-XXXXXX");
    return mkdtemp(root) && chdir(root) == 0 ? 0 : -1;
}

static int leave_folder(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof(command), "rm -rf '%s'", root);
    return chdir("/") == 0 && system(command) == 0 ? 0 : -1;
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static struct file_watch *watching(const char *path)
{
    struct file_watch *watch;
    struct why why;
    assert_int_equal(file_watch_new(&watch, &why), OK);
    if (file_watch_add(watch, path, &why) != OK)
        fail_msg("%s", why.text);
    return watch;
}

/* inotify queues an event within the call that causes it, so the test need not wait. */
static bool is_ready(struct file_watch *watch)
{
    struct pollfd ready = {.fd = file_watch_fd(watch), .events = POLLIN};
    return poll(&ready, 1, 0) == 1;
}

static void a_folder_tells_of_its_files(void **state)
{
    (void)state;
    mkdir("policies", 0700);
    struct file_watch *watch = watching("policies/");
    assert_false(is_ready(watch));
    assert_false(file_watch_drain(watch));
    write_file("policies/a.lua", "return 1");
    assert_true(is_ready(watch));
    assert_true(file_watch_drain(watch));
    assert_false(file_watch_drain(watch));
    write_file("policies/a.lua", "return 2");
    assert_true(file_watch_drain(watch));
    rename("policies/a.lua", "policies/b.lua");
    assert_true(file_watch_drain(watch));
    unlink("policies/b.lua");
    assert_true(file_watch_drain(watch));
    file_watch_free(watch);
}

static void reading_is_no_change(void **state)
{
    (void)state;
    mkdir("policies", 0700);
    write_file("policies/a.lua", "return 1");
    struct file_watch *watch = watching("policies");
    close(open("policies/a.lua", O_RDONLY));
    closedir(opendir("policies"));
    assert_false(file_watch_drain(watch));
    file_watch_free(watch);
}

static void backup_files_of_editors_are_no_change(void **state)
{
    (void)state;
    mkdir("policies", 0700);
    struct file_watch *watch = watching("policies");
    write_file("policies/.a.lua.swp", "");
    write_file("policies/a.lua~", "");
    assert_true(is_ready(watch));
    assert_false(file_watch_drain(watch));
    file_watch_free(watch);
}

static void subfolders_count_also_new_ones(void **state)
{
    (void)state;
    mkdir("policies", 0700);
    mkdir("policies/schemas", 0700);
    struct file_watch *watch = watching("policies");
    write_file("policies/schemas/a.json", "{}");
    assert_true(file_watch_drain(watch));
    mkdir("policies/fixtures", 0700);
    assert_true(file_watch_drain(watch));
    write_file("policies/fixtures/b.json", "{}");
    assert_true(file_watch_drain(watch));
    file_watch_free(watch);
}

static void a_file_is_watched_by_its_name_alone(void **state)
{
    (void)state;
    struct file_watch *watch = watching("toolgate.lua");
    write_file("other.lua", "");
    assert_false(file_watch_drain(watch));
    write_file("toolgate.lua", "return {}");
    assert_true(file_watch_drain(watch));
    write_file("next", "return { }");
    rename("next", "toolgate.lua"); /* as editors save */
    assert_true(file_watch_drain(watch));
    write_file("toolgate.lua", "return {}");
    assert_true(file_watch_drain(watch));
    file_watch_free(watch);
}

static void a_folder_may_appear_later_and_again(void **state)
{
    (void)state;
    struct file_watch *watch = watching("policies");
    for (int i = 0; i < 2; i++) {
        mkdir("policies", 0700);
        assert_true(file_watch_drain(watch));
        write_file("policies/a.lua", "");
        assert_true(file_watch_drain(watch));
        unlink("policies/a.lua");
        rmdir("policies");
        assert_true(file_watch_drain(watch));
    }
    file_watch_free(watch);
}

static void a_link_may_be_turned_elsewhere(void **state)
{
    (void)state;
    mkdir("one", 0700);
    mkdir("two", 0700);
    assert_int_equal(symlink("one", "policies"), 0);
    struct file_watch *watch = watching("policies");
    write_file("two/a.lua", "");
    assert_false(file_watch_drain(watch));
    assert_int_equal(symlink("two", "next"), 0);
    rename("next", "policies");
    assert_true(file_watch_drain(watch));
    write_file("two/a.lua", "");
    assert_true(file_watch_drain(watch));
    write_file("one/a.lua", "");
    assert_false(file_watch_drain(watch));
    file_watch_free(watch);
}

static void a_mounted_folder_is_swapped_by_its_hidden_link(void **state)
{
    (void)state;
    mkdir("etc", 0700);
    struct file_watch *folder = watching("etc"), *file = watching("etc/toolgate.lua");
    assert_int_equal(symlink("..2026", "etc/..next"), 0);
    assert_false(file_watch_drain(folder));
    rename("etc/..next", "etc/..data");
    assert_true(file_watch_drain(folder));
    assert_true(file_watch_drain(file));
    file_watch_free(folder);
    file_watch_free(file);
}

static void a_folder_that_is_not_there_is_named(void **state)
{
    (void)state;
    struct file_watch *watch;
    struct why why;
    assert_int_equal(file_watch_new(&watch, &why), OK);
    assert_int_equal(file_watch_add(watch, "nowhere/policies", &why), ERR_IO);
    assert_non_null(strstr(why.text, "its folder nowhere: No such file or directory"));
    file_watch_free(watch);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, enter_folder, leave_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_folder_tells_of_its_files),           TEST(reading_is_no_change),
        TEST(backup_files_of_editors_are_no_change), TEST(subfolders_count_also_new_ones),
        TEST(a_file_is_watched_by_its_name_alone),   TEST(a_folder_may_appear_later_and_again),
        TEST(a_link_may_be_turned_elsewhere),        TEST(a_mounted_folder_is_swapped_by_its_hidden_link),
        TEST(a_folder_that_is_not_there_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
