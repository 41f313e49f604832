/* SPDX-License-Identifier: Apache-2.0 */
/* Functions and structs that the files of this folder share. Unless a line says otherwise,
 * everything here runs on the exporter thread. */
#ifndef SP_EXPORT_EXPORT_INTERNAL_H
#define SP_EXPORT_EXPORT_INTERNAL_H

#include <pthread.h>

#include "core/clock.h"
#include "core/compiler.h"
#include "core/worker.h"
#include "export/exporter.h"
#include "export/network.h"
#include "wire/gzip.h"

enum { SP_SPOOL_NAME = 32 };

/* One encoded export request on its way to one destination. */
typedef struct sp_request {
    struct sp_request *next;
    sp_buffer body;
    size_t charged_bytes;   /* what it takes of its destination's sp_allowance */
    uint64_t items;         /* spans or samples */
    uint64_t sequence;      /* counted up by the exporter thread, for flush */
    size_t destination;     /* of a profile, while in the inbox */
    uint64_t written_bytes; /* of its record; the rest waits for the file */
    bool gzip;              /* body is compressed */
    bool framed;            /* body has gRPC's prefix */
    char
        spooled[SP_SPOOL_NAME]; /* its file in the spool; the body may be only there; empty: none */
    uint64_t spooled_bytes;
} sp_request;

void sp_request_free(sp_request *request);
/* Log that COUNT requests for DESTINATION (a file, or a URL without secrets) were given up at the
 * stop, and WHY (", because ...", or ": ERROR", or empty). */
void sp_requests_say_abandoned(uint64_t count, const char *destination, const char *why);

/* The bound of one destination's queue of one signal. Any thread. */
typedef struct sp_allowance {
    _Atomic size_t used_bytes; /* <= maximum_bytes, except during sp_allowance_take */
    size_t maximum_bytes;
} sp_allowance;

/* False when fewer than BYTES are left; nothing is taken then. */
bool sp_allowance_take(sp_allowance *allowance, size_t bytes);
void sp_allowance_give(sp_allowance *allowance, size_t bytes);

/* Text that does not end with a NUL. */
typedef struct sp_text_range {
    const char *begin, *end;
} sp_text_range;

/* repeat.c: a message that is logged at most once a minute. */
typedef struct sp_repeat {
    uint64_t said_ns;   /* 0: never */
    uint64_t kept_back; /* times that it was not logged since */
} sp_repeat;

/* Whether to log it now. If not, it is counted as kept back. */
bool sp_repeat_allows(sp_repeat *repeat, uint64_t now_ns);

/* endpoint.c. Any thread. */

typedef enum sp_endpoint_kind {
    SP_ENDPOINT_BAD,  /* cannot be sent to */
    SP_ENDPOINT_BARE, /* can be sent to, but lacks a scheme */
    SP_ENDPOINT_GOOD,
} sp_endpoint_kind;

/* The path at the end of a URL that a user gave for both signals. */
typedef enum sp_endpoint_path {
    SP_ENDPOINT_OF_TRACES = SP_TRACES,
    SP_ENDPOINT_OF_PROFILES = SP_PROFILES,
    SP_ENDPOINT_OF_STABLE_PROFILES, /* /v1/profiles, the path once OTLP profiles are stable */
    SP_ENDPOINT_OF_BOTH,            /* no path of a signal: it is a base */
} sp_endpoint_path;

/* Classify TEXT, which was given as a URL. Unless it is good, *WHY is a static phrase that ends a
 * sentence beginning with TEXT. */
sp_endpoint_kind sp_endpoint_check(const char *text, const char **why);
/* The URL of SIGNAL below the base URL BASE, which is good or bare; a bare one gets SCHEME
 * ("http://"). All functions here that return a char * return memory for free(), or NULL when
 * memory is short. */
char *sp_endpoint_from_base(const char *base, const char *scheme, sp_telemetry_signal signal);
/* The same with the path of SP_ENDPOINT_OF_STABLE_PROFILES. */
char *sp_endpoint_stable_profiles(const char *base);
/* Make URL (good or bare) a base: cut the path of a signal off its end. Returns which path it was.
 */
sp_endpoint_path sp_endpoint_cut_path(char *url);
/* URL (good or bare) as it is, except that it gets SCHEME when it has none, and "/" when it has no
 * path. */
char *sp_endpoint_verbatim(const char *url, const char *scheme);
/* The usual path of SIGNAL, without "/" at its begin, when URL (good or bare) has no path; else
 * NULL. */
const char *sp_endpoint_missing_path(const char *url, sp_telemetry_signal signal);
/* The URL of SIGNAL's gRPC service on the host of URL (good or bare), whose path and query do not
 * matter. */
char *sp_endpoint_grpc(const char *url, const char *scheme, sp_telemetry_signal signal);
/* TEXT, which was given as a URL and may be none, in the form that a log may show: without user,
 * password and query. For free(), or NULL. */
char *sp_endpoint_shown(const char *text);
/* A hint to append to an error about URL, which has a scheme, when its port is usually that of the
 * other protocol; else "". */
const char *sp_endpoint_port_advice(const char *url, bool is_grpc);

/* headers.c. Any thread. */

/* Append the headers that TEXT lists to *LIST, in the form of libcurl. An entry that cannot be used
 * is left out, with a warning that gives its position in the setting NAME, never its content (NAME
 * is NULL: no warning). False when memory is short. */
bool sp_headers_parse(struct curl_slist **list, const char *text, const char *name);
/* Why the first wrong entry of TEXT cannot be sent, as "is not key=value", and its *POSITION from 1
 * on. NULL: all can be sent, or memory is short. */
const char *sp_headers_fault(const char *text, unsigned *position);

/* Collectors from 0.163 read the version of the profiles' format from a header, and refuse a
 * request that has it twice. For profiles LIST gets this header, unless the user has given it; a
 * second one of the user is removed. For traces all are removed. LIST is not empty, and its first
 * entry is not examined. False when memory is short. */
bool sp_headers_set_version(struct curl_slist *list, sp_telemetry_signal signal);

/* secrets.c: texts that a receiver gets and may send back. Zero-initialised is empty. */
typedef struct sp_secrets {
    char **texts;
    size_t count;
} sp_secrets;

/* Add the values of HEADERS, user, password and query of URL, and user and password of the proxies
 * in the environment. False when memory is short. */
bool sp_secrets_init(sp_secrets *secrets, const struct curl_slist *headers, const char *url);
void sp_secrets_deinit(sp_secrets *secrets);
/* Copy LENGTH bytes of TEXT to OUT, with *** in place of each secret, as far as SIZE (>= 4) allows,
 * and a NUL. Returns the bytes written, without the NUL. TEXT must be as it was received: secrets
 * are not found after TEXT was cut or bytes in it were replaced. */
size_t sp_secrets_mask(const sp_secrets *secrets, char *out, size_t size, const char *text,
                       size_t length);

/* retry.c. Any thread. */
enum { SP_RETRY_ATTEMPTS = 5 };

/* Whether an answer with this code may be different the next time (OTLP specification: 429, 502,
 * 503, 504). */
bool sp_retry_http(long code);
/* The same for the status of a gRPC call; RESOURCE_EXHAUSTED only when the receiver gave a wait
 * (HAS_RETRY_INFO). */
bool sp_retry_grpc(uint32_t code, bool has_retry_info);
/* Whether a transfer that ended with CODE, without an answer, may be tried again. */
bool sp_retry_curl(CURLcode code);
/* The wait after FAILED attempts (>= 1), shortened at random (RANDOM is uniform) to no less than
 * its half. */
uint64_t sp_retry_backoff_ns(uint32_t failed, uint32_t random);
/* The wait that a Retry-After header of TEXT asks for at the time NOW_NS (realtime), at most
 * SP_RETRY_AFTER_MAX_S. False when it is neither a number of seconds nor a date. */
enum { SP_RETRY_AFTER_MAX_S = 300 };
bool sp_retry_after_ns(const char *text, uint64_t now_ns, uint64_t *out_ns);

/* answer.c: the answers of receivers. */
enum { SP_ANSWER_WORDS = 320, SP_ANSWER_MAX_BYTES = 4 * 1024 * 1024 };

typedef struct sp_answer {
    const char *content_type; /* may be NULL */
    const void *body;
    size_t length;
} sp_answer;

/* Write the receiver's own words for an error to OUT, on one line and without SECRETS; empty when
 * it sent none. */
void sp_answer_words(char out[SP_ANSWER_WORDS], const sp_answer *answer, const sp_secrets *secrets);
/* The same of a gRPC status, whose MESSAGE is percent-encoded, or NULL. */
void sp_answer_grpc_words(char out[SP_ANSWER_WORDS], const char *message,
                          const sp_secrets *secrets);
/* Read the answer to a delivered request: how many items it *REJECTED, and its WORDS (empty: none),
 * as above. False when it is no OTLP answer; the request counts as delivered all the same. */
bool sp_answer_partial(const sp_answer *answer, const sp_secrets *secrets,
                       sp_telemetry_signal signal, uint64_t *rejected, char words[SP_ANSWER_WORDS]);

/* json_member.c: receivers' answers in JSON. Any thread. */

/* The member NAME (no escapes in it) of the object TEXT: *VALUE is the text of its value. False
 * when TEXT has none, or is no JSON as far as it was read. */
bool sp_json_member(sp_text_range text, const char *name, sp_text_range *value);
/* Decode VALUE, a JSON string, into OUT, which has room for as many bytes as VALUE has. Returns the
 * bytes written; 0 when VALUE is no string. */
size_t sp_json_string(char *out, sp_text_range value);

/* grpc.c. Any thread. */

/* Put the prefix of a gRPC message in front of BODY. GZIP: BODY is compressed. False, with BODY
 * unchanged, when memory is short. */
bool sp_grpc_frame(sp_buffer *body, bool gzip);
/* Replace the body of ANSWER by the message in it. Receivers compress answers to compressed
 * requests; such a message is unpacked into ROOM, up to its maximum. False when the body is neither
 * empty nor exactly one message, or cannot be unpacked. */
bool sp_grpc_unframe(sp_answer *answer, sp_buffer *room);

typedef struct sp_grpc_status {
    uint32_t code;       /* 0: the call succeeded */
    const char *message; /* percent-encoded, valid until the next attempt; NULL: none */
    bool has_retry_info; /* the answer has a RetryInfo */
    uint64_t wait_ns;    /* the wait in it, at most SP_RETRY_AFTER_MAX_S; 0: none */
} sp_grpc_status;

enum { SP_GRPC_RESOURCE_EXHAUSTED = 8, SP_GRPC_UNIMPLEMENTED = 12, SP_GRPC_UNAUTHENTICATED = 16 };

/* Read the status of the call whose transfer on EASY has ended. False when the answer has none. */
bool sp_grpc_status_of(CURL *easy, sp_grpc_status *out);
/* Whether the answer on EASY is one of gRPC, by its content type. */
bool sp_grpc_is_answer(CURL *easy);
/* Whether such an answer ended without a status, which is at the end of each. */
bool sp_grpc_broke_off(CURL *easy);
const char *sp_grpc_status_name(uint32_t code);
/* The wait that a RetryInfo in DETAILS, the value of grpc-status-details-bin, asks for. False when
 * there is none. */
bool sp_grpc_retry_info(const char *details, uint64_t *wait_ns);

/* file.c: one file of one signal. */
typedef struct sp_file {
    int fd;      /* -1: it could not be made, or was given up */
    bool in_use; /* it could not be made, because another process uses it */
    char *path;
    sp_otlp_format format;
    sp_telemetry_signal signal;
    sp_export_counters *counters;
    sp_repeat failure;
    sp_request *first,
        **last; /* records that wait because a FIFO is full; a part of the first may be written */
    sp_allowance allowance;                /* of these records, and of profiles in the inbox */
    uint32_t maximum_bytes, maximum_parts; /* as in sp_export_config */
    uint32_t parts;                        /* the number of the last full part */
    sp_repeat stuck;
} sp_file;

/* Make CONFIG's file for SIGNAL. False when memory is short. When the file cannot be made, fd is -1
 * and there is a warning. A file that another process writes, or that has content, is not changed:
 * fd is -1, in_use is set, and there is no warning. */
bool sp_file_init(sp_file *file, const sp_export_config *config, sp_telemetry_signal signal,
                  sp_export_counters *counters);
/* Records that wait are freed without being counted. */
void sp_file_deinit(sp_file *file);
/* Append BODY (borrowed) with ITEMS as one record, now or as soon as the file takes it, or drop it.
 * Both are counted. SEQUENCE is larger than that of each record before. */
void sp_file_write(sp_file *file, const sp_buffer *body, uint64_t items, uint64_t sequence);
/* Write records that wait. Returns when to call again, UINT64_MAX when none waits. */
uint64_t sp_file_step(sp_file *file, uint64_t now_ns);
/* Whether every record up to SEQUENCE is written or dropped. */
bool sp_file_is_past(const sp_file *file, uint64_t sequence);
/* Drop and count the records that wait. */
void sp_file_abandon(sp_file *file);
/* Remember that FILE's descriptor is in the host's table, because the exporter's thread has no
 * table of its own: then a forked child has a copy. */
void sp_file_is_hosts(const sp_file *file);
/* In a forked child: close its copies of the parent's files. */
void sp_files_after_fork(void);

/* file_parts.c: files that are limited in size. */
enum { SP_FILE_PARTS_MAX = 1000000000 };

/* Keep FILE, which is open and full, as the next part, and make a new file with its name: *FD is
 * open and locked. False, after a warning (at most one a minute), when that fails. */
bool sp_file_begin_part(sp_file *file, int *fd);
/* Remove the file that a process may have left when it was ended in sp_file_begin_part. FILE is
 * locked. */
void sp_file_forget_new(const sp_file *file);

/* file_claim.c: between begin and end no other start takes files in the directory of PREFIX, unless
 * locking it took too long. The result of begin is the argument of end. */
int sp_file_claim_begin(const char *prefix);
void sp_file_claim_end(int claim);

/* file_runs.c: the files of earlier runs with the same prefix. */

/* Rename the files of the run before, of either format, to PREFIX.1, and those of older runs to the
 * next number. Remove the files of a run that wrote nothing. 0, or errno: EWOULDBLOCK when another
 * process writes to one of them. After a failure the run before is still whole. */
int sp_file_runs_keep(const char *prefix);
/* Lock FD, which was opened as PATH, until it is closed. Returns 0, or EWOULDBLOCK when another
 * process has the lock, or has renamed the file. Also 0, without a lock, for a file that is not
 * regular, and on a file system without locks. */
int sp_file_runs_lock(int fd, const char *path);
/* Keep the run before, and make the files of this one. Where that is impossible, this run gets the
 * prefix of sp_file_own_prefix in CONFIG, with one warning. False when memory is short; each file
 * that cannot be made gets a warning. */
bool sp_file_runs_open(sp_file files[2], sp_export_config *config, sp_export_counters *counters);

/* spool.c: requests in a directory, which outlive the process. Zero-initialised is closed. */
typedef struct sp_spool {
    char *folder; /* this process's own; NULL: closed */
    int lock_fd;
    sp_otlp_format formats[2]; /* of requests that are sent, by signal; set before sp_spool_open */
    bool wanted[2];            /* the signal is sent at all; set before sp_spool_open */
    uint64_t used_bytes, maximum_bytes;
    uint64_t last_number; /* the highest number of a request: its time, realtime in ns */
    uint64_t foreign;     /* requests of another format, which were not taken over */
} sp_spool;

typedef enum sp_spool_found {
    SP_SPOOL_WHOLE,
    SP_SPOOL_LOST,  /* the file is gone or damaged */
    SP_SPOOL_LATER, /* memory or descriptors are short */
} sp_spool_found;

/* Make a folder for SERVICE in DIRECTORY, which is made when it is not there, and take over what
 * ended processes of this service have left. False, with one warning, when it cannot be used.
 * MAXIMUM is in bytes; 0: 256 MiB. */
bool sp_spool_open(sp_spool *spool, const char *directory, const char *service, size_t maximum);
/* The requests in it stay, for the next process. */
void sp_spool_close(sp_spool *spool);
/* All requests of SIGNAL in the spool, oldest first, without their bodies. Call it once, after
 * opening. */
sp_request *sp_spool_list(sp_spool *spool, sp_telemetry_signal signal);
/* Keep REQUEST. False, with errno, when there is no room (EDQUOT: the maximum is reached) or it
 * cannot be written. */
bool sp_spool_put(sp_spool *spool, sp_request *request, sp_telemetry_signal signal);
/* Read REQUEST's body back. */
sp_spool_found sp_spool_get(sp_spool *spool, sp_request *request);
/* Remove the file of REQUEST, which is delivered or dropped; without a file do nothing. False, with
 * errno, when the file could not be removed. */
bool sp_spool_remove(sp_spool *spool, sp_request *request);

enum { SP_OUTCOME_TEXT = 512 };

/* Sends the requests of one signal over the network, one after the other. */
typedef struct sp_sender {
    const sp_http_target *target;
    sp_export_counters *counters;
    sp_telemetry_signal signal;
    CURLM *multi;
    CURL *easy;
    struct curl_slist *headers;
    struct curl_slist gzip_header; /* for a compressed body; `headers` follow it */
    char *shown_url;
    sp_secrets secrets;
    char error_text[CURL_ERROR_SIZE];

    sp_request *first, **last; /* the queue; the first is the one under way */
    sp_allowance allowance;
    sp_gzip gzip;
    bool busy;            /* a transfer runs */
    uint64_t begun_ns;    /* when the last transfer began */
    uint32_t failed;      /* attempts of the first request */
    uint64_t deadline_ns; /* of the first request's export, from its first attempt on */
    uint64_t resume_ns;   /* no attempt is made before */
    uint64_t asked_ns;    /* the receiver asked for no attempt before */
    sp_buffer answer;
    sp_buffer message; /* the message in `answer`, unpacked */
    bool answer_too_long;

    sp_spool *spool;    /* NULL: none */
    bool postponed;     /* the first request was given up for now, and is kept in the spool */
    uint32_t postpones; /* in succession */

    bool stopping; /* sp_sender_hurry was called, which set stop_deadline_ns */
    uint64_t stop_deadline_ns;
    bool absent;  /* the last transfer found no receiver */
    bool failing; /* a failure was logged, and nothing was delivered since */
    sp_repeat unreachable, refused, partial, unkept, unremoved, lost, late;
    bool said_not_taken, said_odd_answer;
    char last_text[SP_OUTCOME_TEXT]; /* why the last attempt did not deliver; "": it did, or none */
    bool last_answered;              /* the last attempt was delivered or refused */
    uint64_t unsaid_drops; /* requests given up since the last warning about one, and not said */
} sp_sender;

/* outcome.c: what the end of a transfer means for its request. */
typedef enum sp_outcome_kind {
    SP_DELIVERED,
    SP_TRY_AGAIN,
    SP_REFUSED,
    SP_UNREACHABLE
} sp_outcome_kind;

typedef struct sp_outcome {
    sp_outcome_kind kind;
    bool asked;       /* the receiver asked for wait_ns */
    uint64_t wait_ns; /* before the next attempt */
    bool absent;      /* this transfer found no receiver */
    bool answered;    /* there was an HTTP answer; its status is code */
    long code;
    bool not_taken;             /* the receiver has no service for this signal */
    char text[SP_OUTCOME_TEXT]; /* why, unless SP_DELIVERED; no secrets in it */
} sp_outcome;

/* Judge SENDER's transfer, which ended with CODE and is still in its curl_multi. */
sp_outcome sp_outcome_of(sp_sender *sender, CURLcode code);
/* The answer to SENDER's last attempt, valid until the next one. */
sp_answer sp_outcome_answer(sp_sender *sender);

/* sender.c */

/* False when memory is short. */
bool sp_sender_init(sp_sender *sender, sp_telemetry_signal signal, const sp_http_target *target,
                    CURLM *multi, size_t queue_maximum_bytes, sp_export_counters *counters);
/* Cancels the transfer under way. */
void sp_sender_deinit(sp_sender *sender);
/* Queue REQUEST (taken), whose charged_bytes have been taken from the allowance. */
void sp_sender_add(sp_sender *sender, sp_request *request);
/* Begin the next attempt if it is time. Returns when to call again: UINT64_MAX when nothing happens
 * before a transfer ends or a request is added. */
uint64_t sp_sender_step(sp_sender *sender, uint64_t now_ns);
/* Handle the end of the transfer, with CODE. */
void sp_sender_finish(sp_sender *sender, CURLcode code, uint64_t now_ns);
/* Queue the requests of this signal that are in SPOOL, and keep further ones there. Call it before
 * the first request. */
void sp_sender_use_spool(sp_sender *sender, sp_spool *spool);
/* Whether every request up to SEQUENCE is delivered, dropped, or kept in the spool: because the
 * receiver does not take it now, or because the next attempt is due after DEADLINE_NS. */
bool sp_sender_is_past(const sp_sender *sender, uint64_t sequence, uint64_t deadline_ns);
/* Whether there are requests that cannot be sent by DEADLINE_NS, because the next attempt is due
 * later. */
bool sp_sender_is_late(const sp_sender *sender, uint64_t deadline_ns);
/* Log that a flush does not wait for the next attempt, because it is due too late. */
void sp_sender_say_late(sp_sender *sender, uint64_t now_ns);
/* The exporter stops by DEADLINE_NS: the requests that are left get a last attempt now. When no
 * receiver is found, or the next attempt would be too late, all of them are dropped, or stay in the
 * spool, because waiting would delay the end of the program. Further calls change nothing. */
void sp_sender_hurry(sp_sender *sender, uint64_t deadline_ns);
/* At the stop: drop and count all requests that are not in the spool. Messages name what is lost,
 * and the last error. */
void sp_sender_abandon(sp_sender *sender);

/* export_config.c */
bool sp_export_config_copy(sp_export_config *out, const sp_export_config *config);

enum { SP_DESTINATION_HTTP, SP_DESTINATION_FILE, SP_DESTINATIONS };

/* own_descriptors.c */

/* Give the calling thread, and those that it will start, a descriptor table of their own, without
 * the host's descriptors. False where that is not possible: they use the host's table. */
bool sp_descriptors_unshare(void);

/* log_relay.c: the thread that delivers log messages. Zero-initialised is not running. */
typedef struct sp_log_relay {
    pthread_t thread;
    bool running;
} sp_log_relay;

/* Setup. 0, or errno. */
int sp_log_relay_start(sp_log_relay *relay);
/* Delivers the messages that wait, as far as the deadline allows (sp_log_settle). When the host's
 * log function does not return, its thread is abandoned. */
void sp_log_relay_stop(sp_log_relay *relay, uint64_t deadline_ns);

struct sp_exporter {
    sp_export_config config;
    const sp_resource *resource;
    sp_export_counters counters;
    sp_log_relay log_relay;
    uint8_t profile_destinations[SP_DESTINATIONS]; /* SP_DESTINATION_…, by destination number */
    size_t profile_destination_count;

    /* A wake means that there is a profile, or that spans wait. The lock guards the members up to
     * stop_deadline_ns. An abandoned exporter takes no spans, and frees everything itself. */
    sp_worker worker;
    sp_request *inbox, **inbox_last;
    uint64_t drops_reported; /* by the last flush */
    uint64_t stop_deadline_ns;

    /* Only the exporter's thread uses the members from here on, because their descriptors are in
     * its table; but other threads may take and give the allowances. */
    CURLM *multi; /* NULL: nothing is sent to the network */
    sp_spool spool;
    sp_sender senders[2];
    sp_file files[2];
    sp_span_data **batch; /* room for config.batch_spans */
    uint64_t batch_due_ns;
    uint64_t sequence;
    uint64_t next_ticket;   /* the flush that waits for its turn, when it is not flush_ticket */
    uint64_t next_until_ns; /* the latest deadline of its callers */
    uint64_t flush_ticket;  /* the flush under way, or the last one */
    bool is_flushing;
    uint64_t flush_until_ns; /* the latest deadline of its callers */
    uint64_t flush_spans;    /* spans that it still has to take */
    uint64_t flush_goal; /* one more than the sequence that it waits for; 0: not known while there
                            are flush_spans */
    bool ending;         /* the stop was requested */
    bool stopping;       /* and its flush is under way, or done */
};

/* exporter.c */

/* Open and close EXPORTER's destinations. False when memory is short. */
bool sp_export_open(sp_exporter *exporter);
void sp_export_close(sp_exporter *exporter);

/* loop.c: the thread; OWNER is the exporter. */
void sp_export_loop(void *owner);

/* span_requests.c: spans to requests. */

/* Take and encode one batch if it is time. Returns when to call again. */
uint64_t sp_batch_step(sp_exporter *exporter, uint64_t now_ns);
/* Whether there are enough spans for a request, so that a step would take them before the batch
 * delay has passed. */
bool sp_batch_is_ready(const sp_exporter *exporter);
/* Release spans that will not be sent any more; they count as one dropped request. */
void sp_batch_abandon(sp_exporter *exporter);
/* Write BODY (borrowed) with ITEMS to the file of SIGNAL, and count it. */
void sp_batch_to_file(sp_exporter *exporter, sp_telemetry_signal signal, const sp_buffer *body,
                      uint64_t items);

#endif
