/* SPDX-License-Identifier: Apache-2.0 */
/* Where there is no libFuzzer: run a target with each file that is named, as libFuzzer does when it
 * is given files. */
#include "fuzz/fuzz.h"

/* FILE's bytes in a block of exactly their number (one for none). */
static uint8_t *read_file(const char *path, size_t *length)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) {
        perror(path);
        exit(1);
    }
    long size = ftell(file);
    rewind(file);
    *length = size > 0 ? (size_t)size : 0;
    uint8_t *data = malloc(*length ? *length : 1);
    if (!data || fread(data, 1, *length, file) != *length) {
        perror(path);
        exit(1);
    }
    fclose(file);
    return data;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: %s FILE…: no corpus file is named\n", argv[0]);
        return 1;
    }
    for (int i = 1; i < argc; i++) {
        size_t length;
        uint8_t *data = read_file(argv[i], &length);
        fprintf(stderr, "running %s, %zu bytes\n", argv[i], length);
        LLVMFuzzerTestOneInput(data, length);
        free(data);
    }
    return 0;
}
