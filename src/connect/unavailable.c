/*
 * The answers that the bridge gives itself: to a call as a result, which the model reads, in the form of the
 * gate's own refusals; to any other request as a JSON-RPC error.
 */
#include "base/arena.h"
#include "connect/bridge.h"
#include "json/write.h"
#include "server/jsonrpc.h"
#include "server/mcp_keys.h"

#define AFTER_S 2 /* a daemon that restarts is back by then */

struct answer {
    const char *code, *detail, *hint;
    bool retry;
};

static const struct answer lost_read = {"gateway_restarted",
                                        "the connection to the gateway ended before its answer arrived; the "
                                        "call only reads, so it has changed nothing",
                                        "wait 2 s, then repeat the call.", true};
static const struct answer lost_write = {
    "gateway_restarted",
    "the connection to the gateway ended before its answer arrived; the call may have run",
    "look whether it was carried out before you repeat it.", false};
static const struct answer away = {"gateway_away", "no gateway answered in time; the call was not sent",
                                   "wait 2 s, then repeat the call; if it fails again, tell the user.", true};

static void write_call(struct buf *to, const struct tracked *request, const struct answer *a)
{
    struct json_out out = json_out(to);
    struct buf text = {0};
    buf_printf(&text, STR_FMT " is unavailable (%s): %s.\nNext: %s", STR_ARG(request->tool), a->code,
               a->detail, a->hint);
    json_open(&out, '{');
    json_field_text(&out, "jsonrpc", "2.0");
    json_field_raw(&out, "id", request->id);
    json_field_open(&out, "result", '{');
    if (request->modern)
        json_field_text(&out, "resultType", "complete");
    json_field_open(&out, "content", '[');
    json_open(&out, '{');
    json_field_text(&out, "type", "text");
    json_field_str(&out, "text", buf_view(&text));
    json_close(&out, '}');
    json_close(&out, ']');
    json_field_bool(&out, "isError", true);
    json_field_open(&out, "_meta", '{');
    json_field_open(&out, GATE_VERDICT_KEY, '{');
    json_field_text(&out, "verdict", a->retry ? "wait" : "refuse");
    json_field_bool(&out, "valid", true);
    json_field_text(&out, "error_class", "unavailable");
    json_field_text(&out, "code", a->code);
    json_field_text(&out, "detail", a->detail);
    json_field_text(&out, "hint", a->hint);
    if (a->retry)
        json_field_int(&out, "after_s", AFTER_S);
    json_close(&out, '}');
    json_close(&out, '}');
    json_close(&out, '}');
    json_close(&out, '}');
    buf_byte(to, '\n');
    buf_clear(&text);
}

static void write_error(struct buf *to, const struct tracked *request, enum unavailable why)
{
    if (why == UNAVAILABLE_AWAY)
        jsonrpc_write_error(to, request->id, RPC_UNAVAILABLE,
                            STR_LIT("no gateway answered in time; the request was not sent: repeat it later"),
                            STR_LIT("{\"name\":\"unavailable\",\"sent\":false,\"after_s\":2}"));
    else
        jsonrpc_write_error(
            to, request->id, RPC_UNAVAILABLE,
            STR_LIT("the connection to the gateway ended before its answer arrived: the request "
                    "may have taken effect, so look before you repeat it"),
            STR_LIT("{\"name\":\"unavailable\",\"sent\":true}"));
}

void unavailable_answer(struct bridge *bridge, const struct tracked *request, enum unavailable why)
{
    bridge->has_failed = true;
    if (request->is_call)
        write_call(&bridge->to_client, request,
                   why == UNAVAILABLE_AWAY ? &away
                   : request->reads        ? &lost_read
                                           : &lost_write);
    else
        write_error(&bridge->to_client, request, why);
}
