/* The token's file is read when the endpoint opens, not here: `lint` and `test` need not be allowed to read
 * it. */
#include "config/config_metrics.h"

#include "base/arena.h"

static key_reader read_listen;

#define AT(text, reader, field) .name = STR(text), .read = (reader), .offset = offsetof(struct config, field)

const struct config_key config_metrics_keys[] = {
    {AT("listen", read_listen, metrics.address)},
    {AT("page", key_bool, metrics.page)},
    {AT("token_file", key_path, metrics.token_file)},
    {.read = NULL},
};

/* A path is relative to the file's folder, like every other. */
static void read_listen(const struct key_value *value)
{
    struct config_reader *reader = value->reader;
    struct str text = json_str(value->json);
    struct why why;
    if (!json_is(value->json, JSON_STRING)) {
        key_expected(value, "an address, e.g. \"127.0.0.1:9464\" or \"unix:/run/toolgate/metrics.sock\"");
        return;
    }
    if (text.len > strlen("unix:") && str_starts(text, "unix:"))
        text =
            arena_printf(reader->arena, "unix:%s", key_table_path(reader, str_from(text, strlen("unix:"))));
    if (http_address_parse(text, key_target(value), &why))
        key_table_error(reader, value->path, "%s", why.text);
}

void config_metrics_check(struct config_reader *reader, const struct config *config)
{
    bool listens = config->metrics.address.text[0] != '\0';
    if (config->metrics.page && !listens)
        key_table_error(
            reader, STR_LIT("metrics.page"),
            "there is no metrics.listen to serve it on; set metrics.listen, e.g. \"127.0.0.1:9464\"");
    else if (config->metrics.page && !config->metrics.address.is_unix && !config->metrics.token_file)
        key_table_error(reader, STR_LIT("metrics.page"),
                        "the page shows users' content, and any program of this host can reach %s; set "
                        "metrics.token_file, or listen on a Unix socket (unix:PATH)",
                        config->metrics.address.text);
    else if (config->metrics.token_file && !listens)
        key_table_error(reader, STR_LIT("metrics.token_file"),
                        "there is no metrics.listen that asks for it; set metrics.listen, or remove it");
}
