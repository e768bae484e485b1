/* Connects, sends one request, reads its reply. */
#include "cli/rpc_call.h"

#include "base/arena.h"
#include "base/printable.h"
#include "cli/daemon_client.h"
#include "cli/term.h"
#include "cli/print.h"
#include "json/build.h"

static struct str printable_lines(struct arena *arena, struct str text)
{
    struct buf out = buf_in(arena);
    if (printable_is_plain(text))
        return text;
    printable_write_lines(&out, text);
    return buf_view(&out);
}

/* As deep as the parser allows. */
static struct json printable_copy(struct arena *arena, const struct json *value)
{
    if (value->type == JSON_STRING)
        return json_string(printable_lines(arena, json_str(value)));
    if (value->type == JSON_ARRAY) {
        struct json *items = ARENA_ARRAY(arena, struct json, value->len + 1);
        for (uint32_t i = 0; i < value->len; i++)
            items[i] = printable_copy(arena, &value->items[i]);
        return json_array(items, value->len);
    }
    if (value->type != JSON_OBJECT)
        return *value;
    struct json_member *members = ARENA_ARRAY(arena, struct json_member, value->len + 1);
    for (uint32_t i = 0; i < value->len; i++)
        members[i] = json_member(printable_lines(arena, value->members[i].key),
                                 printable_copy(arena, &value->members[i].value));
    return json_object(arena, members, value->len);
}

static int call(const struct command *command, const char *socket, const char *method, struct str params,
                rpc_call_handler *handle, void *owner, bool for_people)
{
    struct arena *arena = arena_new();
    struct daemon_client *client = NULL;
    struct json answer;
    struct why why;
    int status = CLI_ERROR;
    enum err err = daemon_client_connect(socket, &client, &why);
    if (err == OK)
        err = daemon_client_call(client, arena, method, params, &answer, &why);
    struct json shown = err == OK && for_people ? printable_copy(arena, &answer) : answer;
    if (err == OK)
        status = handle(owner, &shown);
    else
        term_error(command->name, "%s", why.text);
    daemon_client_close(client);
    arena_free(arena);
    return status;
}

int rpc_call(const struct command *command, const char *socket, const char *method, struct str params,
             rpc_call_handler *handle, void *owner)
{
    return call(command, socket, method, params, handle, owner, false);
}

int rpc_call_text(const struct command *command, const char *socket, const char *method, struct str params,
                  rpc_call_handler *handle, void *owner)
{
    return call(command, socket, method, params, handle, owner, true);
}
