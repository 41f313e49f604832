#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a recording of any size, the same on each run, for the benchmarks of the command: a service with requests of ten spans each
and stacks that link to them. Usage: large_recording.py PREFIX [--spans N] [--samples N] [--json]
Writes PREFIX.traces.binpb and PREFIX.profiles.binpb, each message behind its length; with --json the same as PREFIX.traces.jsonl and
PREFIX.profiles.jsonl, a message a line, as the SDK writes them."""

import argparse
import json
import random

NAMES = [b"GET /cart", b"GET /report", b"POST /checkout", b"query", b"render", b"compress", b"authorize", b"lookup", b"send", b"log"]
FUNCTIONS, STACKS, SPANS_A_REQUEST, SAMPLES_A_WINDOW, SPANS_A_MESSAGE = 2000, 4000, 10, 10_000, 512
START_NS = 1_700_000_000_000_000_000


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def fixed(field, value):
    return varint(field << 3 | 1) + value.to_bytes(8, "little")


def block(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


def text_attribute(key, value):
    return block(1, key) + block(2, block(1, value))


RESOURCE = block(1, block(1, text_attribute(b"service.name", b"shop")) +
                 block(1, text_attribute(b"service.instance.id", b"627cc493-f310-47de-96bd-71410b7dec09")))


def ids_of_span(index):
    request = index // SPANS_A_REQUEST
    return (request + 1).to_bytes(16, "big"), (index + 1).to_bytes(8, "big")


def span(index):
    trace_id, span_id = ids_of_span(index)
    place = index % SPANS_A_REQUEST
    start = START_NS + index // SPANS_A_REQUEST * 1_000_000 + place * 1000
    length = 40_000_000 - place * 4000 + index * 7919 % 1_000_000
    name = NAMES[place] if place else NAMES[index // SPANS_A_REQUEST % 3]
    parent = block(4, ids_of_span(index - place)[1]) if place else b""
    return (block(1, trace_id) + block(2, span_id) + parent + block(5, name) + number(6, 1 if place else 2) +
            fixed(7, start) + fixed(8, start + length) +
            block(9, text_attribute(b"http.request.method", b"GET")) +
            block(9, text_attribute(b"user.id", b"user-%d" % (index % 977))) +
            block(9, block(1, b"http.response.status_code") + block(2, number(3, 500 if index % 97 == 0 else 200))))


def resource_json():
    return {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}},
                           {"key": "service.instance.id", "value": {"stringValue": "627cc493-f310-47de-96bd-71410b7dec09"}}]}


def span_json(index):
    trace_id, span_id = ids_of_span(index)
    place = index % SPANS_A_REQUEST
    start = START_NS + index // SPANS_A_REQUEST * 1_000_000 + place * 1000
    length = 40_000_000 - place * 4000 + index * 7919 % 1_000_000
    name = NAMES[place] if place else NAMES[index // SPANS_A_REQUEST % 3]
    parent = {"parentSpanId": ids_of_span(index - place)[1].hex()} if place else {}
    return {"traceId": trace_id.hex(), "spanId": span_id.hex(), **parent, "name": name.decode(), "kind": 1 if place else 2,
            "startTimeUnixNano": str(start), "endTimeUnixNano": str(start + length),
            "attributes": [{"key": "http.request.method", "value": {"stringValue": "GET"}},
                           {"key": "user.id", "value": {"stringValue": f"user-{index % 977}"}},
                           {"key": "http.response.status_code", "value": {"intValue": "500" if index % 97 == 0 else "200"}}]}


def write_traces_json(path, spans):
    with open(path, "w", encoding="utf-8") as file:
        for first in range(0, spans, SPANS_A_MESSAGE):
            made = [span_json(i) for i in range(first, min(first + SPANS_A_MESSAGE, spans))]
            scope = {"scope": {"name": "shop"}, "spans": made}
            json.dump({"resourceSpans": [{"resource": resource_json(), "scopeSpans": [scope]}]}, file, separators=(",", ":"))
            file.write("\n")


def write_traces(path, spans):
    with open(path, "wb") as file:
        for first in range(0, spans, SPANS_A_MESSAGE):
            made = b"".join(block(2, span(i)) for i in range(first, min(first + SPANS_A_MESSAGE, spans)))
            message = block(1, RESOURCE + block(2, block(1, block(1, b"shop")) + made))
            file.write(varint(len(message)) + message)


def packed(field, values):
    return block(field, b"".join(map(varint, values)))


STRINGS = [b"", b"cpu", b"nanoseconds", b"samples", b"count"] + [b"shop_function_number_%d" % i for i in range(FUNCTIONS)]


def location_lists():
    """Of all stacks but the first."""
    rng = random.Random(7)
    return [[rng.randrange(1, FUNCTIONS + 1) for _ in range(rng.randrange(5, 35))] for _ in range(STACKS)]


def dictionary_tables():
    """All but the links: the strings, functions, locations and stacks of one program."""
    strings, stacks = STRINGS, [b""] + [packed(1, places) for places in location_lists()]
    return (block(1, b"") + block(2, b"") + b"".join(block(2, number(2, 4096 * i + 64) + block(3, number(1, i)))
                                                     for i in range(1, FUNCTIONS + 1)) +
            block(3, b"") + b"".join(block(3, number(1, 4 + i)) for i in range(1, FUNCTIONS + 1)) +
            b"".join(block(5, text) for text in strings) + block(6, b"") + b"".join(block(7, stack) for stack in stacks))


def dictionary_tables_json():
    return {"mappingTable": [{}], "functionTable": [{}] + [{"nameStrindex": 4 + i} for i in range(1, FUNCTIONS + 1)],
            "locationTable": [{}] + [{"address": str(4096 * i + 64), "lines": [{"functionIndex": i}]} for i in range(1, FUNCTIONS + 1)],
            "stringTable": [text.decode() for text in STRINGS], "attributeTable": [{}],
            "stackTable": [{}] + [{"locationIndices": places} for places in location_lists()]}


def write_profiles_json(path, spans, samples):
    tables = dictionary_tables_json()
    rng = random.Random(11)
    with open(path, "w", encoding="utf-8") as file:
        for window, first in enumerate(range(0, samples, SAMPLES_A_WINDOW)):
            count = min(SAMPLES_A_WINDOW, samples - first)
            low, near = spans * first // samples, max(1, spans * count // samples)
            start = START_NS + window * 1_000_000_000
            links = [dict(zip(("traceId", "spanId"), (own.hex() for own in ids_of_span(low + i)))) for i in range(near)]
            made = [{"stackIndex": rng.randrange(1, STACKS + 1), "linkIndex": rng.randrange(1, near + 1), "values": ["10000000"],
                     "timestampsUnixNano": [str(start + i * 100_000)]} for i in range(count)]
            profile = {"sampleType": {"typeStrindex": 1, "unitStrindex": 2}, "samples": made, "timeUnixNano": str(start),
                       "durationNano": "1000000000", "periodType": {"typeStrindex": 1, "unitStrindex": 2}, "period": "10000000",
                       "profileId": f"{window + 1:032x}"}
            json.dump({"resourceProfiles": [{"resource": resource_json(), "scopeProfiles": [{"profiles": [profile]}]}],
                       "dictionary": {**tables, "linkTable": [{}] + links}}, file, separators=(",", ":"))
            file.write("\n")


def write_profiles(path, spans, samples):
    tables = dictionary_tables()
    rng = random.Random(11)
    with open(path, "wb") as file:
        for window, first in enumerate(range(0, samples, SAMPLES_A_WINDOW)):
            count = min(SAMPLES_A_WINDOW, samples - first)
            low = spans * first // samples
            near = max(1, spans * count // samples)
            links = [ids_of_span(low + i) for i in range(near)]
            start = START_NS + window * 1_000_000_000
            made = b"".join(block(2, number(1, rng.randrange(1, STACKS + 1)) + number(3, rng.randrange(1, near + 1)) +
                                  packed(4, [10_000_000]) +
                                  block(5, (start + i * 100_000).to_bytes(8, "little"))) for i in range(count))
            profile = (block(1, number(1, 1) + number(2, 2)) + made + fixed(3, start) + number(4, 1_000_000_000) +
                       block(5, number(1, 1) + number(2, 2)) + number(6, 10_000_000) +
                       block(7, (window + 1).to_bytes(16, "big")))
            dictionary = tables + block(4, b"") + b"".join(block(4, block(1, a) + block(2, b)) for a, b in links)
            message = block(1, RESOURCE + block(2, block(2, profile))) + block(2, dictionary)
            file.write(varint(len(message)) + message)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("prefix")
    parser.add_argument("--spans", type=int, default=100_000)
    parser.add_argument("--samples", type=int, default=500_000)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if arguments.json:
        write_traces_json(arguments.prefix + ".traces.jsonl", arguments.spans)
        write_profiles_json(arguments.prefix + ".profiles.jsonl", arguments.spans, arguments.samples)
        return
    write_traces(arguments.prefix + ".traces.binpb", arguments.spans)
    write_profiles(arguments.prefix + ".profiles.binpb", arguments.spans, arguments.samples)


main()
