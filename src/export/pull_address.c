/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "core/env.h"
#include "export/pull_server.h"

static bool read_port(const char *text, in_port_t *out)
{
    uint64_t port;
    if (!sp_parse_u64(text, &port) || port > UINT16_MAX)
        return false;
    *out = htons((uint16_t)port);
    return true;
}

static bool read_v4(sp_pull_address *out, const char *host, const char *port)
{
    struct sockaddr_in *address = &out->of.v4;
    const char *number = !*host || strcmp(host, "localhost") == 0 ? "127.0.0.1" : host;
    address->sin_family = AF_INET;
    out->length = sizeof *address;
    if (inet_pton(AF_INET, number, &address->sin_addr) != 1)
        return false;
    out->is_loopback = ntohl(address->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    return read_port(port, &address->sin_port);
}

static bool read_v6(sp_pull_address *out, const char *host, const char *port)
{
    struct sockaddr_in6 *address = &out->of.v6;
    address->sin6_family = AF_INET6;
    out->length = sizeof *address;
    if (inet_pton(AF_INET6, host, &address->sin6_addr) != 1)
        return false;
    out->is_loopback = IN6_IS_ADDR_LOOPBACK(&address->sin6_addr);
    return read_port(port, &address->sin6_port);
}

bool sp_pull_address_parse(sp_pull_address *out, const char *text)
{
    char host[sizeof out->text];
    const char *colon = strrchr(text, ':');
    size_t length = colon ? (size_t)(colon - text) : 0;
    *out = (sp_pull_address){0};
    if (!colon || strlen(text) >= sizeof out->text)
        return false;
    snprintf(out->text, sizeof out->text, "%s", text);
    snprintf(host, sizeof host, "%.*s", (int)length, text);
    if (length > 2 && host[0] == '[' && host[length - 1] == ']') {
        host[length - 1] = 0;
        return read_v6(out, host + 1, colon + 1);
    }
    return read_v4(out, host, colon + 1);
}
