/*
 * Conversations as they are sent to and come from a model's API. One walk reads what OpenAI's and Anthropic's
 * messages have in common, and each item is read by what it is:
 *
 *   OpenAI chat       {role: assistant, tool_calls: [{id, function: {name, arguments}}]},
 *                     {role: tool, tool_call_id}
 *   OpenAI responses  {type: function_call, call_id, name, arguments},
 *                     {type: function_call_output, call_id, output}
 *   Anthropic         content blocks {type: tool_use, id, name, input}, {type: tool_result, tool_use_id,
 * content}
 *
 * A user's message begins a turn; the calls of one message of the model are one step.
 */
#include "replay/recorded_call.h"

#include "base/arena.h"
#include "json/build.h"

struct conversation {
    struct recorded_reader *reader;
    const struct recording_line *line;
    struct str session;
    const struct json *tools;
    uint32_t turn;
    uint64_t messages; /* so far: names the step */
    bool in_calls;     /* the last item was a function_call: the next one is in the same step */
    int64_t at_ms;
};

static struct recorded_call call_of(const struct conversation *c, enum recorded_kind kind,
                                    const struct json *id)
{
    return (struct recorded_call){
        .kind = kind,
        .id = recorded_text(id),
        .session = c->session,
        .turn = c->turn,
        .step = arena_printf(c->line->arena, "message %llu", (unsigned long long)c->messages),
        .at_ms = c->at_ms,
        .tools = c->tools,
        .line = c->line,
    };
}

static void see(const struct conversation *c, const struct recorded_call *call)
{
    c->reader->seen(c->reader->owner, call);
}

static void see_call(const struct conversation *c, const struct json *id, const struct json *name,
                     const struct json *arguments)
{
    struct recorded_call call = call_of(c, RECORDED_CHECK, id);
    call.tool = json_str(name);
    call.arguments = recorded_arguments(c->line->arena, arguments);
    call.arguments_unknown = !arguments;
    if (call.tool.len)
        see(c, &call);
}

static void see_result(const struct conversation *c, const struct json *id, const struct json *result,
                       const struct json *failed)
{
    static const struct json nothing = {.type = JSON_STRING, .text = ""};
    struct recorded_call call = call_of(c, RECORDED_REPORT, id);
    recorded_set_result(&call, result ? result : &nothing, failed);
    see(c, &call);
}

/* ---- OpenAI ---- */

static void read_tool_calls(const struct conversation *c, const struct json *message)
{
    const struct json *calls = json_get_text(message, "tool_calls");
    const struct json *older = json_get_text(message, "function_call"), *name = json_get_text(older, "name");
    for (uint32_t i = 0; json_is(calls, JSON_ARRAY) && i < calls->len; i++) {
        const struct json *call = &calls->items[i], *function = json_get_text(call, "function");
        see_call(c, json_get_text(call, "id"), json_get_text(function, "name"),
                 json_get_text(function, "arguments"));
    }
    if (json_is(older, JSON_OBJECT)) /* it has no ids: the name joins the call to its result */
        see_call(c, name, name, json_get_text(older, "arguments"));
}

/* An item of the Responses API that is no message; false: it is none. */
static bool read_item(struct conversation *c, const struct json *item)
{
    struct str type = json_str(json_get_text(item, "type"));
    const struct json *id = json_get_text(item, "call_id"), *output = json_get_text(item, "output");
    bool calls = str_is(type, "function_call"), answers = str_is(type, "function_call_output");
    if (calls && !c->in_calls)
        c->messages++;
    c->in_calls = calls;
    if (calls)
        see_call(c, id ? id : json_get_text(item, "id"), json_get_text(item, "name"),
                 json_get_text(item, "arguments"));
    else if (answers)
        see_result(c, id, output, NULL);
    else if (str_is(type, "mcp_call")) { /* the API has run it */
        struct recorded_call call = call_of(c, RECORDED_CALL, json_get_text(item, "id"));
        call.tool = json_str(json_get_text(item, "name"));
        call.arguments = recorded_arguments(c->line->arena, json_get_text(item, "arguments"));
        recorded_set_result(&call, output && output->type != JSON_NULL ? output : NULL,
                            json_get_text(item, "error"));
        if (call.tool.len)
            see(c, &call);
    } else
        return !str_is(type, "message") && !json_get_text(item, "role");
    return true;
}

/* ---- Anthropic ---- */

/* True: the blocks hold results, so that the message is none of the user's. */
static bool read_blocks(const struct conversation *c, const struct json *content)
{
    bool answers = false;
    for (uint32_t i = 0; json_is(content, JSON_ARRAY) && i < content->len; i++) {
        const struct json *block = &content->items[i];
        struct str type = json_str(json_get_text(block, "type"));
        if (str_is(type, "tool_use")) {
            see_call(c, json_get_text(block, "id"), json_get_text(block, "name"),
                     json_get_text(block, "input"));
        } else if (str_is(type, "tool_result")) {
            see_result(c, json_get_text(block, "tool_use_id"), json_get_text(block, "content"),
                       json_get_text(block, "is_error"));
            answers = true;
        }
    }
    return answers;
}

/* ---- messages ---- */

static void read_message(struct conversation *c, const struct json *message)
{
    static const char *const times[] = {"timestamp", "ts", "created_at", NULL};
    const struct json *content = json_get_text(message, "content");
    struct str role = json_str(json_get_text(message, "role"));
    int64_t at_ms = recorded_time(recorded_member(message, times));
    if (at_ms)
        c->at_ms = at_ms;
    if (!json_is(message, JSON_OBJECT) || read_item(c, message))
        return;
    c->messages++;
    if (str_is(role, "tool")) {
        see_result(c, json_get_text(message, "tool_call_id"), content, NULL);
    } else if (str_is(role, "function")) {
        see_result(c, json_get_text(message, "name"), content, NULL);
    } else if (str_is(role, "assistant")) {
        read_tool_calls(c, message);
        read_blocks(c, content);
    } else if (!read_blocks(c, content) && str_is(role, "user")) {
        c->turn++;
    }
}

static void read_messages(struct conversation *c, const struct json *messages)
{
    for (uint32_t i = 0; json_is(messages, JSON_ARRAY) && i < messages->len; i++)
        read_message(c, &messages->items[i]);
}

/* The reply beside a request, as proxies record it: a choice, items, or a message. */
static void read_response(struct conversation *c, const struct json *response)
{
    const struct json *choices = json_get_text(response, "choices"),
                      *output = json_get_text(response, "output");
    if (json_is(choices, JSON_ARRAY) && choices->len)
        read_message(c, json_get_text(&choices->items[0], "message"));
    else if (output)
        read_messages(c, output);
    else if (json_get_text(response, "role"))
        read_message(c, response);
}

static struct str session_of(const struct json *conversation, const struct recording_line *line,
                             const char *part)
{
    static const char *const names[] = {"session",  "session_id", "conversation_id", "thread_id", "chat_id",
                                        "trace_id", "run_id",     "task_id",         "id",        NULL};
    struct str named =
        recorded_text(json_is(conversation, JSON_OBJECT) ? recorded_member(conversation, names) : NULL);
    struct str file = recorded_file_name(line->file);
    if (named.len)
        return named;
    return arena_printf(line->arena, STR_FMT ":%llu%s", STR_ARG(file), (unsigned long long)line->number,
                        part);
}

bool conversation_read(struct recorded_reader *reader, const struct json *conversation,
                       const struct recording_line *line)
{
    static const char *const times[] = {"ts", "timestamp", "created_at", "created", NULL};
    bool is_list = json_is(conversation, JSON_ARRAY);
    const struct json *request = is_list ? NULL : json_get_text(conversation, "request");
    const struct json *tools = is_list ? NULL : json_get_text(conversation, "tools");
    struct conversation c = {
        .reader = reader,
        .line = line,
        .session = session_of(conversation, line, ""),
        .tools = json_is(tools, JSON_ARRAY) ? tools : reader->tools,
        .at_ms = is_list ? 0 : recorded_time(recorded_member(conversation, times)),
    };
    if (json_is(line->value, JSON_ARRAY) && conversation != line->value) /* one of several in the line */
        c.session = session_of(conversation, line,
                               arena_printf(line->arena, ".%llu", (unsigned long long)++reader->messages).at);
    if (is_list) {
        read_messages(&c, conversation);
        return true;
    }
    if (json_is(request, JSON_OBJECT) && json_is(json_get_text(request, "tools"), JSON_ARRAY))
        c.tools = json_get_text(request, "tools");
    read_messages(&c, json_get_text(request, "messages"));
    read_messages(&c, json_get_text(request, "input"));
    read_messages(&c, json_get_text(conversation, "messages"));
    read_messages(&c, json_get_text(conversation, "items"));
    read_messages(&c, json_get_text(conversation, "input"));
    read_messages(&c, json_get_text(conversation, "output"));
    read_response(&c, json_get_text(conversation, "choices") ? conversation
                                                             : json_get_text(conversation, "response"));
    return true;
}

/* A file of messages, one a line, is one conversation unless the messages name theirs. */
bool message_line_read(struct recorded_reader *reader, const struct json *message,
                       const struct recording_line *line)
{
    static const char *const names[] = {"session", "session_id", "conversation_id", "thread_id", NULL};
    struct str named = recorded_text(recorded_member(message, names));
    struct conversation c = {
        .reader = reader,
        .line = line,
        .session = named.len ? named : recorded_file_name(line->file),
        .tools = reader->tools,
        .turn = reader->turn,
        .messages = reader->messages,
    };
    if (!json_get_text(message, "role") && !json_get_text(message, "type"))
        return false;
    read_message(&c, message);
    reader->turn = c.turn;
    reader->messages = c.messages;
    return true;
}
