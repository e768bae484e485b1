/* The longest duration of a call, which bounds how long the ledger keeps its reservation. */
#include "unit.h"
#include "base/arena.h"
#include "io/conn.h"
#include "upstream/http/http_tool.h"
#include "upstream/mcp/mcp_client.h"
#include "upstream/upstream.h"

struct side {
    struct loop *loop;
    struct upstreams *set;
    struct upstream_spec spec;
};

static const struct upstreams_hooks hooks = {NULL};

/* The upstream is never started. */
static int begin(void **state)
{
    static const struct str argv[] = {{"true", 4}};
    struct side *side = test_calloc(1, sizeof(*side));
    side->loop = loop_new();
    side->set = upstreams_new(side->loop, NULL, &hooks, side);
    side->spec = (struct upstream_spec){
        .name = STR_LIT("crm"), .kind = UPSTREAM_REST, .url = STR_LIT("http://127.0.0.1:9"), .argv = argv};
    *state = side;
    return 0;
}

static int end(void **state)
{
    struct side *side = *state;
    upstreams_free(side->set);
    loop_free(side->loop);
    test_free(side);
    return 0;
}

FIXTURE_OF(begin, end)

#define STORY(name) TEST_OF(name, struct side *side)

static void apply(struct side *side, uint32_t timeout_ms, uint32_t in_flight)
{
    const struct upstream_spec *spec = &side->spec;
    side->spec.timeout_ms = timeout_ms;
    side->spec.in_flight = in_flight;
    upstreams_apply(side->set, &spec, 1);
}

TEST(command_uses_its_own_timeout)
{
    const struct side *side = *state;
    struct exec_spec exec = {.timeout_ms = 500};
    struct target target = {.kind = TARGET_EXEC, .exec = &exec};
    assert_int_equal(upstream_max_duration_ms(side->set, &target), 500);
    target.timeout_ms = 700;
    assert_int_equal(upstream_max_duration_ms(side->set, &target), 700);
    target.timeout_ms = exec.timeout_ms = 0;
    assert_int_equal(upstream_max_duration_ms(side->set, &target), EXEC_TIMEOUT_MS);
}

STORY(endpoint_uses_its_own_or_its_upstreams_timeout)
{
    struct http_spec http = {.timeout_ms = 120000};
    struct target target = {.kind = TARGET_HTTP, .upstream = STR_LIT("crm"), .http = &http};
    apply(side, 200000, 0);
    assert_int_equal(upstream_max_duration_ms(side->set, &target), 120000);
    http.timeout_ms = 0;
    assert_int_equal(upstream_max_duration_ms(side->set, &target), 200000);
    target.upstream = STR_NONE;
    assert_int_equal(upstream_max_duration_ms(side->set, &target), HTTP_TIMEOUT_MS);
}

STORY(queueing_adds_to_the_duration)
{
    struct http_spec http = {.timeout_ms = 1000};
    struct target target = {.kind = TARGET_HTTP, .upstream = STR_LIT("crm"), .http = &http};
    apply(side, 5000, 2);
    assert_int_equal(upstream_max_duration_ms(side->set, &target), 6000);
}

STORY(progress_multiplies_the_duration)
{
    struct target target = {.kind = TARGET_MCP, .upstream = STR_LIT("gone"), .timeout_ms = 90000};
    assert_int_equal(upstream_max_duration_ms(side->set, &target), 90000 * MCP_PROGRESS_TIMES);
    target.timeout_ms = 0;
    assert_int_equal(upstream_max_duration_ms(side->set, &target), UPSTREAM_TIMEOUT_MS * MCP_PROGRESS_TIMES);
    target.timeout_ms = UINT32_MAX;
    assert_int_equal(upstream_max_duration_ms(side->set, &target), UINT32_MAX);
}
