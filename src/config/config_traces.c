/* Spans are off by default: where they would go is not known. Header values are never quoted: they may be
 * secrets. */
#include "config/config_traces.h"

#include "base/arena.h"
#include "config/config.h"
#include "config/config_upstreams.h"
#include "upstream/http/fetch.h"

#define AT(text, reader, field)                                                                              \
    .name = STR(text), .read = (reader), .offset = offsetof(struct config, traces.field)

static key_reader read_endpoint, read_headers, read_sample, read_service;

const struct config_key config_traces_keys[] = {
    {AT("endpoint", read_endpoint, endpoint)},
    {AT("headers", read_headers, headers)},
    {AT("ca_file", config_upstream_folder, ca_file)},
    {AT("sample", read_sample, sample)},
    {AT("batch", key_duration, batch_ms), .min = SPANS_BATCH_MIN_MS, .max = SPANS_BATCH_MAX_MS},
    {AT("service_name", read_service, service_name)},
    {.read = NULL},
};

void config_traces_init(struct span_export *traces)
{
    *traces = (struct span_export){.sample = 1, .batch_ms = SPANS_BATCH_MS, .service_name = STR("toolgate")};
}

/* An address that is composed of secrets is checked when it is used. */
static void read_endpoint(const struct key_value *value)
{
    struct str text = json_str(value->json), origin = fetch_origin(text);
    bool composed = text.len && memmem(text.at, text.len, "${", 2);
    if (composed || (origin.len && text.len > origin.len + 1))
        *(struct str *)key_target(value) = arena_dup(value->reader->arena, text);
    else if (origin.len)
        key_table_error(value->reader, value->path,
                        "expected the whole address, usually " STR_FMT "/v1/traces", STR_ARG(origin));
    else
        key_table_error(value->reader, value->path,
                        "expected the OTLP/HTTP address of a collector without user and password, e.g. "
                        "\"http://127.0.0.1:4318/v1/traces\"");
}

static void read_headers(const struct key_value *value)
{
    struct name_values *headers = key_target(value);
    config_upstream_pairs(value);
    for (size_t i = 0; i < headers->count; i++)
        if (!fetch_header_is_safe(STR_LIT("x"), headers->list[i].value))
            key_table_error(value->reader, value->path, "a header must not hold a line break");
}

static void read_sample(const struct key_value *value)
{
    double share;
    if (json_double(value->json, &share) && share >= 0 && share <= 1)
        *(double *)key_target(value) = share;
    else
        key_expected(value, "a share from 0 to 1");
}

static void read_service(const struct key_value *value)
{
    struct str name = json_str(value->json);
    if (name.len && name.len <= SPAN_TEXT_MAX_BYTES)
        *(struct str *)key_target(value) = arena_dup(value->reader->arena, name);
    else
        key_expected(value, "a name of at most 256 bytes");
}

void config_traces_check(struct config_reader *reader, const struct config *config)
{
    const struct span_export *t = &config->traces;
    if (!t->endpoint.len && !reader->errors.len && (t->headers.count || t->ca_file.len || t->sample != 1))
        key_table_error(reader, STR_LIT("traces"),
                        "has no endpoint, so no span is sent; add endpoint = "
                        "\"http://127.0.0.1:4318/v1/traces\", or remove the table");
}
