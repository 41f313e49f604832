/* SPDX-License-Identifier: Apache-2.0 */
/* tool_server: runs the spanprof command for a test file, each call in a forked child. A fork takes
 * a fraction of the time that the start of a program takes, above all with sanitizers. This process
 * has one thread and has never called the command, so a child is like a new process. Standard input
 * is a Unix socket (otlp.py has its other end); the server ends when the other end is closed. */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool/command/commands.h"

enum { SOCKET = STDIN_FILENO, DESCRIPTORS = 3 };

/* A request is this head, with the child's three descriptors, and then TEXTS texts of BYTES bytes
 * together, each with a zero at its end: the folder, the arguments, the environment. */
typedef struct head {
    uint32_t bytes, texts, arguments, limit_ms;
} head;

typedef struct answer {
    int32_t status;    /* as waitpid returns it */
    int32_t timed_out; /* the child still ran after LIMIT_MS and was killed */
} answer;

/* Not on the stack: in a child, LeakSanitizer has to find the pointers at the exit, too. */
static struct {
    head head;
    int descriptors[DESCRIPTORS];
    char *texts;
    char **words; /* the folder, the arguments, NULL, the environment, NULL */
} request;

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "tool_server: %s: %s\n", what, strerror(errno));
    exit(2);
}

/* Returns false at the end of the stream. */
static bool receive_head(void)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof request.descriptors)];
    } control;
    struct iovec data = {&request.head, sizeof request.head};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    ssize_t length = recvmsg(SOCKET, &message, MSG_WAITALL | MSG_CMSG_CLOEXEC);
    if (length == 0)
        return false;
    const struct cmsghdr *beside = CMSG_FIRSTHDR(&message);
    if (length != sizeof request.head || !beside ||
        beside->cmsg_len != CMSG_LEN(sizeof request.descriptors))
        fail("a request has no head, or not three descriptors");
    memcpy(request.descriptors, CMSG_DATA(beside), sizeof request.descriptors);
    return true;
}

static void receive_texts(void)
{
    const head *head = &request.head;
    request.texts = realloc(request.texts, head->bytes + 1);
    request.words = realloc(request.words, (head->texts + 3) * sizeof *request.words);
    if (!request.texts || !request.words)
        fail("memory");
    if (recv(SOCKET, request.texts, head->bytes, MSG_WAITALL) != (ssize_t)head->bytes)
        fail("a request is cut");
    char *text = request.texts, **word = request.words;
    for (uint32_t i = 0; i < head->texts; i++) {
        if (i == 1 + head->arguments)
            *word++ = NULL;
        *word++ = text;
        text += strlen(text) + 1;
    }
    word[0] = word[1] = NULL; /* both, in case the environment is empty */
}

/* In the child: become what a shell would have started. */
static _Noreturn void run_command(const sigset_t *signals)
{
    char **arguments = request.words + 1;
    for (int i = 0; i < DESCRIPTORS; i++) {
        if (dup2(request.descriptors[i], i) < 0)
            fail("dup2");
        close(request.descriptors[i]);
    }
    if (chdir(request.words[0]) != 0)
        fail(request.words[0]);
    environ = arguments + request.head.arguments + 1;
    sigprocmask(SIG_SETMASK, signals, NULL);
    exit(sp_tool_call((int)request.head.arguments, arguments));
}

/* CHILD_ENDED is SIGCHLD, which is blocked. */
static answer wait_for(pid_t child, const sigset_t *child_ended)
{
    answer answer = {0};
    uint32_t limit_ms = request.head.limit_ms;
    struct timespec limit = {limit_ms / 1000, limit_ms % 1000 * 1000000L};
    while (waitpid(child, &answer.status, WNOHANG) == 0) {
        if (sigtimedwait(child_ended, NULL, &limit) >= 0 || errno == EINTR)
            continue;
        answer.timed_out = 1;
        kill(child, SIGKILL);
        waitpid(child, &answer.status, 0);
        break;
    }
    return answer;
}

/* Only in builds with LeakSanitizer. */
int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

int main(void)
{
    /* This check maps the pages that the check at the end of each child reads. The children inherit
     * them, which costs less than a page fault for each. */
    if (__lsan_do_recoverable_leak_check)
        __lsan_do_recoverable_leak_check();
    sigset_t child_ended, before;
    sigemptyset(&child_ended);
    sigaddset(&child_ended, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child_ended, &before);
    while (receive_head()) {
        receive_texts();
        pid_t child = fork();
        if (child < 0)
            fail("fork");
        if (child == 0)
            run_command(&before);
        for (int i = 0; i < DESCRIPTORS; i++)
            close(request.descriptors[i]);
        answer answer = wait_for(child, &child_ended);
        if (send(SOCKET, &answer, sizeof answer, MSG_NOSIGNAL) != sizeof answer)
            return 0; /* the test has ended */
    }
    return 0;
}
