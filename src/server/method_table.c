/* The tables. The most frequent methods come first: they are searched from the top. */
#include "server/method_table.h"

#include "base/suggest.h"

static const struct method methods[] = {
    {"tools/call", ERA_BOTH, true, true, call_methods_call},
    {"toolgate/check", ERA_BOTH, true, true, call_methods_check},
    {"toolgate/report", ERA_BOTH, true, true, call_methods_report},
    {"toolgate/turn", ERA_BOTH, true, false, session_methods_turn},
    {"tools/list", ERA_BOTH, false, false, mcp_tools_list},
    {"prompts/list", ERA_BOTH, false, false, passing_prompts_list},
    {"prompts/get", ERA_BOTH, true, false, passing_prompts_get},
    {"resources/list", ERA_BOTH, false, false, passing_resources_list},
    {"resources/templates/list", ERA_BOTH, false, false, passing_templates_list},
    {"resources/read", ERA_BOTH, true, false, passing_resources_read},
    {"resources/subscribe", ERA_LEGACY, false, false, passing_subscribe},
    {"resources/unsubscribe", ERA_LEGACY, false, false, passing_unsubscribe},
    {"completion/complete", ERA_BOTH, true, false, passing_complete},
    {"ping", ERA_LEGACY, false, false, mcp_ping},
    {"initialize", ERA_LEGACY, false, false, mcp_initialize},
    {"server/discover", ERA_MODERN, false, false, mcp_discover},
    {"subscriptions/listen", ERA_MODERN, false, false, subscriptions_listen},
    {"logging/setLevel", ERA_LEGACY, false, false, mcp_set_level},
    {"toolgate/register", ERA_BOTH, true, false, tool_methods_register},
    {"toolgate/tools", ERA_BOTH, false, false, tool_methods_tools},
    {"toolgate/schemas", ERA_BOTH, false, false, schema_methods_schemas},
    {"toolgate/session", ERA_BOTH, true, false, session_methods_session},
    {"toolgate/sessions", ERA_BOTH, false, false, session_list_method},
    {"toolgate/status", ERA_BOTH, false, false, status_method},
    {"toolgate/reload", ERA_BOTH, false, false, reload_method},
    {"toolgate/pins", ERA_BOTH, false, false, pin_methods_pins_method},
    {"toolgate/approvals", ERA_BOTH, true, false, approval_methods_list},
    {"toolgate/approve", ERA_BOTH, true, false, approval_methods_approve},
    {"toolgate/deny", ERA_BOTH, true, false, approval_methods_deny},
};

static const struct notification notifications[] = {
    {"notifications/initialized", mcp_initialized},
    {"notifications/cancelled", mcp_cancelled},
};

#define METHOD_COUNT (sizeof(methods) / sizeof(methods[0]))

const struct method *method_find(struct str name)
{
    for (size_t i = 0; i < METHOD_COUNT; i++)
        if (str_is(name, methods[i].name))
            return &methods[i];
    return NULL;
}

const struct notification *method_find_notification(struct str name)
{
    for (size_t i = 0; i < sizeof(notifications) / sizeof(notifications[0]); i++)
        if (str_is(name, notifications[i].name))
            return &notifications[i];
    return NULL;
}

struct str method_suggest(struct str name)
{
    struct str names[METHOD_COUNT];
    for (size_t i = 0; i < METHOD_COUNT; i++)
        names[i] = str_of(methods[i].name);
    return suggest_closest(name, names, METHOD_COUNT);
}

void method_write_extensions(struct json_out *out)
{
    for (size_t i = 0; i < METHOD_COUNT; i++)
        if (str_starts(str_of(methods[i].name), "toolgate/"))
            json_put_text(out, methods[i].name);
}
