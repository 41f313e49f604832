/* SPDX-License-Identifier: Apache-2.0 */
/* Calls the functions of functions.inc and compares (stop.h) at every instruction that they run:
 * the processor's trap flag raises SIGTRAP after each. The first call of each goes through the
 * loader's lazy binding. Writes its score to WALK_TRUTH_OUT. usage: walk_truth_functions [COUNT],
 * the first so many. */
#include <arpa/inet.h>
#include <ctype.h>
#include <fnmatch.h>
#include <langinfo.h>
#include <libgen.h>
#include <locale.h>
#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <regex.h>
#include <sched.h>
#include <search.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <wchar.h>
#include <wctype.h>
#include <zlib.h>

#include "unwind/stack_bounds.h"
#include "stop.h"

#define TRAP_FLAG 0x100

/* Loops would be most of it: an instruction is compared so often at the most. SEEN is a hash table
 * of more than are met. */
enum { TIMES_EACH = 12, SEEN = 1 << 18 };
static struct {
    uint64_t pc;
    unsigned times;
} seen[SEEN];
static unsigned instructions;

static stop_score score;
static const sp_generation *generation;
static sp_stack_bounds bounds;
static volatile sig_atomic_t stepping;

/* What the functions get. */
static const char words[400] = "the quick brown fox jumps over the lazy dog and does it all again";
static const char twin[400] = "the quick brown fox jumps over the lazy cat";
static const wchar_t wide[16] = L"a wide string";
static char buffer[500], packed[900], *rest;
static wchar_t wide_buffer[64];
static unsigned short seeds[3];
static unsigned seed;
static int number = 'n', scanned;
static int numbers[12] = {7, 3, 9, 1, 'n', 5, 8, 2, 4, 6, 0, 11};
static size_t size;
static double real = 0.7, part;
static void *tree, *block;
static FILE *sink_file;
static time_t moment = 1795300000;
static struct tm fields;
static struct timespec precise;
static struct timeval coarse;
static struct utsname system_name;
static struct rusage usage;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static regex_t pattern;
static sigset_t mask;
static z_stream stream;
static uLongf length, unpacked;
static sqlite3 *database;
static sqlite3_stmt *statement;

static int compare(const void *left, const void *right)
{
    return *(const int *)left - *(const int *)right;
}

static void do_nothing(void)
{
}

static char *copy(const char *text)
{
    static char room[400];
    return strcpy(room, text);
}

static int keep(void *allocated)
{
    free(allocated);
    return allocated != NULL;
}

#define FUNCTION(name, expression)                                                                 \
    static void call_##name(void)                                                                  \
    {                                                                                              \
        volatile __auto_type kept = (expression);                                                  \
        (void)kept;                                                                                \
    }
#include "functions.inc"
#undef FUNCTION

static const struct {
    const char *name;
    void (*call)(void);
} functions[] = {
#define FUNCTION(name, expression) {#name, call_##name},
#include "functions.inc"
#undef FUNCTION
};

enum { FUNCTIONS = sizeof functions / sizeof *functions };
_Static_assert(FUNCTIONS >= 200, "every instruction of 200 functions");

static void start_stepping(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)info;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
}

static bool is_wanted(uint64_t pc)
{
    size_t at = (size_t)(pc * UINT64_C(0x9e3779b97f4a7c15) >> 46) % SEEN;
    while (seen[at].pc && seen[at].pc != pc)
        at = (at + 1) % SEEN;
    instructions += seen[at].pc == 0;
    seen[at].pc = pc;
    return seen[at].times++ < TIMES_EACH;
}

static void step(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)info;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    if (!stepping)
        registers[REG_EFL] &= ~TRAP_FLAG;
    else if (is_wanted((uint64_t)registers[REG_RIP]))
        stop_compare(&score, generation, bounds, context);
}

static void install(int signal, void (*handler)(int, siginfo_t *, void *))
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    if (sigaction(signal, &action, NULL) != 0)
        exit(3);
}

/* A function that is not entered would be a hole in the proof. */
static void step_through(int i)
{
    unsigned before = instructions;
    stepping = 1;
    raise(SIGUSR1);
    functions[i].call();
    stepping = 0;
    if (instructions == before) {
        fprintf(stderr, "%s was not stepped through\n", functions[i].name);
        exit(1);
    }
}

int main(int count, char **arguments)
{
    int wanted = count > 1 ? atoi(arguments[1]) : FUNCTIONS;
    const char *path = getenv("WALK_TRUTH_OUT");
    FILE *out = path ? fopen(path, "we") : NULL;
    sp_modules *modules = stop_set_up(false) ? sp_modules_create() : NULL;
    sink_file = fopen("/dev/null", "we");
    if (!out || !modules || !sink_file)
        return 3;
    generation = sp_modules_generation(modules, 1);
    bounds = sp_stack_bounds_of_self();
    install(SIGUSR1, start_stepping);
    install(SIGTRAP, step);
    for (int i = 0; i < FUNCTIONS && i < wanted; i++)
        step_through(i);
    printf("%d functions, %u instructions\n", wanted < FUNCTIONS ? wanted : (int)FUNCTIONS,
           instructions);
    stop_write(&score, out);
    return fclose(out) == 0 ? 0 : 3;
}
