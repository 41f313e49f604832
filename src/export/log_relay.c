/* SPDX-License-Identifier: Apache-2.0 */
/* The host's log function runs on a thread that has the host's descriptors: on the exporter thread the number of the host's log file would
 * be another file's, or a connection's. Whoever says a line waits until it is delivered, so lines keep their order and there is no
 * queue to be bounded. */
#include <string.h>

#include "core/log.h"
#include "export/internal.h"
#include "thread/thread.h"

static void *deliver(void *argument)
{
    sp_log_relay *relay = argument;
    pthread_setname_np(pthread_self(), "spanprof-log");
    sp_thread_self_internal();
    pthread_mutex_lock(&relay->lock);
    while (!relay->stop) {
        if (!relay->line) {
            pthread_cond_wait(&relay->changed, &relay->lock);
            continue;
        }
        pthread_mutex_unlock(&relay->lock);
        sp_log_deliver(relay->level, relay->line);
        pthread_mutex_lock(&relay->lock);
        relay->line = NULL;
        pthread_cond_broadcast(&relay->changed);
    }
    pthread_mutex_unlock(&relay->lock);
    return NULL;
}

static void say(spanprof_log_level level, const char *line, void *user)
{
    sp_log_relay *relay = user;
    pthread_mutex_lock(&relay->lock);
    relay->level = level;
    relay->line = line;
    pthread_cond_broadcast(&relay->changed);
    while (relay->line)
        pthread_cond_wait(&relay->changed, &relay->lock);
    pthread_mutex_unlock(&relay->lock);
}

int sp_log_relay_start(sp_log_relay *relay)
{
    pthread_mutex_init(&relay->lock, NULL);
    pthread_cond_init(&relay->changed, NULL);
    int error = sp_export_thread(&relay->thread, deliver, relay);
    relay->running = !error;
    if (error) {
        pthread_cond_destroy(&relay->changed);
        pthread_mutex_destroy(&relay->lock);
    }
    return error;
}

void sp_log_relay_stop(sp_log_relay *relay)
{
    if (!relay->running)
        return;
    pthread_mutex_lock(&relay->lock);
    relay->stop = true;
    pthread_cond_broadcast(&relay->changed);
    pthread_mutex_unlock(&relay->lock);
    pthread_join(relay->thread, NULL);
    pthread_cond_destroy(&relay->changed);
    pthread_mutex_destroy(&relay->lock);
    relay->running = false;
}

void sp_log_relay_use(sp_log_relay *relay)
{
    if (relay->running)
        sp_log_redirect(say, relay);
}
