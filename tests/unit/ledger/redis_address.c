/* Addresses of a Redis as operators write them, and that no printed form shows a password. */

#include "unit.h"
#include "arena_case.h"
#include "ledger/redis_address.h"
#include "golden.h"

static struct redis_address a;

static void reads(const char *text, const char *shown)
{
    struct why why = {""};
    if (redis_address_parse(arena, str_of(text), &a, &why) != OK)
        fail_msg("'%s': %s", text, why.text);
    struct str said = redis_address_shown(arena, &a);
    if (!str_is(said, shown))
        fail_msg("'%s' was expected to be shown as '%s', and is as '" STR_FMT "'", text, shown,
                 STR_ARG(said));
}

static void refuses(const char *text)
{
    struct why why = {""};
    if (redis_address_parse(arena, str_of(text), &a, &why) != ERR_CONFIG)
        fail_msg("'%s' was taken", text);
    golden_row(text, why.text);
    assert_null(strstr(why.text, "hidden"));
}

TEST(sockets)
{
    reads("unix:/run/redis.sock", "unix:/run/redis.sock");
    assert_string_equal(a.path.at, "/run/redis.sock");
    assert_int_equal(a.db, 0);
    reads("unix:/run/a?b.sock?db=3", "unix:/run/a?b.sock?db=3");
    assert_int_equal(a.db, 3);
    reads("unix:///run/redis.sock", "unix:///run/redis.sock");
    reads("unix://gate:hidden@/run/redis.sock?db=2", "unix:/run/redis.sock?db=2");
    assert_true(str_is(a.user, "gate"));
    assert_true(str_is(a.password, "hidden"));
    reads("unix://:hid@/den%40@/run/redis.sock", "unix:/run/redis.sock");
    assert_int_equal(a.user.len, 0);
    assert_true(str_is(a.password, "hid@/den@"));
    refuses("unix:gate:hidden@/run/redis.sock");
    refuses("unix:/x?password=hidden");
    refuses("unix:/x?password=hidden&db=1");
    refuses("unix:/x?password=hidden?db=1");
    refuses("unix:redis.sock");
    refuses("unix:/x?db=many");
    refuses("unix:/x?timeout=3");
    golden_check_rows("load", "Redis address: sockets");
}

TEST(hosts)
{
    reads("redis://cache", "redis://cache:6379");
    reads("redis://10.0.0.7:7000/12", "redis://10.0.0.7:7000/12");
    assert_int_equal(a.hosts[0].port, 7000);
    assert_int_equal(a.db, 12);
    reads("redis://[::1]:7000", "redis://[::1]:7000");
    assert_string_equal(a.hosts[0].name.at, "::1");
    reads("redis://[fd00::7]/1", "redis://[fd00::7]:6379/1");
    refuses("redis://");
    refuses("redis://::1");
    refuses("redis://x:0");
    refuses("redis://x:65536");
    refuses("redis://[::1");
    refuses("redis://[::1]7000");
    refuses("redis://x/y");
    refuses("redis://x?password=hidden");
    refuses("redis://x:1?password=hidden");
    refuses("redis://x/0?password=hidden");
    golden_check_rows("load", "Redis address: hosts");
}

TEST(who_we_are)
{
    reads("redis://gate:hidden@x", "redis://x:6379");
    assert_true(str_is(a.user, "gate"));
    assert_true(str_is(a.password, "hidden"));
    reads("redis://:hidden@x", "redis://x:6379");
    assert_int_equal(a.user.len, 0);
    reads("redis://gate:p%40%3a%2F%zz%@x", "redis://x:6379");
    assert_true(str_is(a.password, "p@:/%zz%"));
    reads("redis://gate:a@b:c/d@x/2", "redis://x:6379/2");
    assert_true(str_is(a.password, "a@b:c/d"));
    refuses("redis://gate:hidden@");
    refuses("redis://gate:hidden@x:port");
    golden_check_rows("load", "Redis address: who we are");
}

TEST(sentinels)
{
    reads("sentinel://a,b:1,[::1]:2,[::2]/cache/4", "sentinel://a:26379,b:1,[::1]:2,[::2]:26379/cache/4");
    assert_int_equal(a.host_count, 4);
    assert_string_equal(a.master.at, "cache");
    assert_int_equal(a.db, 4);
    reads("sentinel://gate:hidden@a/cache", "sentinel://a:26379/cache");
    assert_true(str_is(a.password, "hidden"));
    reads("sentinel://gate:hidden@a/cache/2?sentinels=watch:q@?%3a/:", "sentinel://a:26379/cache/2");
    assert_true(str_is(a.user, "gate"));
    assert_true(str_is(a.password, "hidden"));
    assert_true(str_is(a.sentinel_user, "watch"));
    assert_true(str_is(a.sentinel_password, "q@?:/:"));
    reads("sentinel://a/cache?sentinels=:hidden", "sentinel://a:26379/cache");
    assert_int_equal(a.sentinel_user.len, 0);
    assert_int_equal(a.password.len, 0);
    assert_true(str_is(a.sentinel_password, "hidden"));
    refuses("sentinel://a/cache?sentinels=hidden");
    refuses("sentinel://a/cache?sentinels=watch:");
    refuses("sentinel://a/cache?password=hidden");
    refuses("sentinel://a?password=hidden/cache");
    refuses("sentinel://a");
    refuses("sentinel://a/");
    refuses("sentinel://a,,b/cache");
    refuses("sentinel://1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17/cache");
    golden_check_rows("load", "Redis address: sentinels");
}

TEST(clusters)
{
    reads("cluster://a", "cluster://a:6379");
    reads("cluster://gate:hidden@a:7001,b,[::1]:7003", "cluster://a:7001,b:6379,[::1]:7003");
    assert_int_equal(a.kind, REDIS_ADDRESS_CLUSTER);
    assert_int_equal(a.host_count, 3);
    assert_true(str_is(a.password, "hidden"));
    refuses("cluster://");
    refuses("cluster://a,");
    refuses("cluster://a,b:0");
    refuses("cluster://a,b/0");
    refuses("cluster://a,b?password=hidden");
    refuses("cluster://1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17");
    refuses("redis://gate:hidden@a,b");
    golden_check_rows("load", "Redis address: clusters");
}

TEST(anything_else)
{
    refuses("");
    refuses("localhost:6379");
    refuses("rediss://hidden@x");
    refuses("redis:gate:hidden@x");
    refuses("gate:hidden@x:1");
    refuses("redis+sentinel://:hidden@x/cache");
    golden_check_rows("load", "Redis address: anything else");
}
