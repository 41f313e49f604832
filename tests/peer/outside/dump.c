/* SPDX-License-Identifier: Apache-2.0 */
/* dump PID [TID…]: what our reader outside finds out about a live process and its threads, a line
 * for each thing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "outside/outside.h"

static void print_slots(const sp_outside_process *process)
{
    static const char *const models[] = {"local-exec", "initial-exec", "general-dynamic",
                                         "tlsdesc"};
    uint32_t count;
    const sp_outside_slot *slots = sp_outside_slots(process, &count);
    for (uint32_t i = 0; i < count; i++)
        printf("slot %s %s %s\n", models[slots[i].model], slots[i].module ? "block" : "static",
               slots[i].path);
}

static void print_hex(const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        printf("%02x", bytes[i]);
}

static void print_context(const sp_outside_context *context)
{
    print_hex(context->trace_id, sizeof context->trace_id);
    putchar(' ');
    print_hex(context->span_id, sizeof context->span_id);
    printf(" %02x", context->trace_flags);
    for (uint32_t i = 0; i < context->attribute_count; i++)
        printf(" %s=%.*s", context->attributes[i].key ? context->attributes[i].key : "?",
               context->attributes[i].length, context->attributes[i].value);
    putchar('\n');
}

static void print_thread(sp_outside_process *process, pid_t tid)
{
    sp_outside_context context;
    sp_outside_result result = sp_outside_thread_context(process, tid, &context);
    printf("%d ", (int)tid);
    if (result == SP_OUTSIDE_OK)
        print_context(&context);
    else
        puts(result == SP_OUTSIDE_NONE ? "none" : sp_outside_problem(process));
}

int main(int argc, char **argv)
{
    sp_outside_process *process;
    if (argc < 2)
        return 2;
    if (sp_outside_open(atoi(argv[1]), &process) != SP_OUTSIDE_OK) {
        puts(process ? sp_outside_problem(process) : "memory is short");
        sp_outside_close(process);
        return 1;
    }
    const char *service = sp_outside_resource(process, "service.name");
    if (sp_outside_published_at_ns(process))
        printf("process %s, schema %s\n", service ? service : "?", sp_outside_schema(process));
    print_slots(process);
    for (int i = 2; i < argc; i++)
        print_thread(process, atoi(argv[i]));
    sp_outside_close(process);
    return 0;
}
