/* SPDX-License-Identifier: Apache-2.0 */
/* made_window FOLDER: a large window as the SDK writes it to a file (whole.binpb), as it goes to
 * the network (parts.binpb), and each of these requests alone (part.N.pb). Linked to spans trace…N,
 * span…N. */
#include <spanprof/version.h>
#include "golden/golden_data.h"
#include "collect/requests.h"
#include "unit/collect/made_profiles.h"

typedef struct folder {
    const char *path;
    FILE *parts;
    uint32_t count;
} folder;

static FILE *create(const char *path, const char *name)
{
    char whole[4096];
    snprintf(whole, sizeof whole, "%s/%s", path, name);
    FILE *file = fopen(whole, "wb");
    if (!file)
        exit(2);
    return file;
}

static void write_framed(FILE *file, const sp_buffer *body)
{
    size_t length = body->length;
    for (; length >= 128; length >>= 7)
        fputc((int)(length & 127) | 128, file);
    fputc((int)length, file);
    fwrite(body->data, 1, body->length, file);
}

static void write_part(void *user, sp_buffer *body, sp_sample_range range)
{
    folder *to = user;
    char name[32];
    (void)range;
    write_framed(to->parts, body);
    snprintf(name, sizeof name, "part.%u.pb", to->count++);
    FILE *file = create(to->path, name);
    fwrite(body->data, 1, body->length, file);
    if (fclose(file))
        exit(2);
    sp_buffer_deinit(body);
}

int main(int argc, char **argv)
{
    const made_shape shape = {.samples = 17000,
                              .wall_samples = 9000,
                              .stacks = 900,
                              .frames = 8,
                              .functions = 900,
                              .links = 40,
                              .name_bytes = 1500,
                              .timestamps = argc > 2};
    const sp_request_bounds bounds = {2 * 1024 * 1024, 16000};
    sp_profile_data data;
    sp_buffer body = SP_BUFFER_INIT(SP_REQUEST_LIMIT_BYTES);
    if (argc < 2 || !make_profiles(&data, &shape))
        return 2;
    folder to = {argv[1], create(argv[1], "parts.binpb"), 0};
    FILE *whole = create(argv[1], "whole.binpb");
    if (!sp_otlp_encode_profiles(&body, SP_OTLP_PROTOBUF, &golden_resource, &data))
        return 2;
    write_framed(whole, &body);
    uint32_t dropped =
        sp_requests_make(&data, SP_OTLP_PROTOBUF, &golden_resource, &bounds, write_part, &to);
    int failed = fclose(whole) | fclose(to.parts);
    sp_buffer_deinit(&body);
    sp_arena_deinit(&data.memory);
    return failed || dropped ? 2 : 0;
}
