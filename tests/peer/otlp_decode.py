#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Decode OTLP files with OpenTelemetry's own generated classes (package opentelemetry-proto), and print their content.

usage: otlp_decode.py FILE...

FILE is .jsonl (one JSON request on each line), .json (one JSON request), .binpb (protobuf requests, each after its length, which is
a varint), .hex (one of our golden files), or anything else: one protobuf request. Each may be gzipped. Traces and profiles are
recognized by their content.

Prints one JSON object with sorted keys: {"spans": [...], "profiles": [...]}. Ids are in lower-case hex, or "" when there is none.
The types of a profile are strings. Its "stacks" are [{frames (leaf first), value, count, trace_id, span_id, attributes}], one entry
for each Sample, in the order of the file; count is the number of the Sample's timestamps or values. A location without lines is the
frame "MAPPING+0xADDRESS".
"""
import base64
import gzip
import json
import pathlib
import sys

from google.protobuf import json_format
from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import ExportProfilesServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

ID_KEYS = {"traceId", "spanId", "parentSpanId", "profileId"}


class BadInput(Exception):
    """A file that cannot be read as OTLP. The text says why."""


# ---- files to messages ----

def ids_to_base64(node):
    """NODE with its ids in base64, as protobuf's own JSON has them. OTLP/JSON has ids in hex."""
    if isinstance(node, list):
        return [ids_to_base64(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {key: base64.b64encode(bytes.fromhex(value)).decode() if key in ID_KEYS else ids_to_base64(value)
            for key, value in node.items()}


def message_of_json(text):
    node = json.loads(text)
    kind = ExportProfilesServiceRequest if "resourceProfiles" in node or "dictionary" in node else ExportTraceServiceRequest
    return json_format.ParseDict(ids_to_base64(node), kind())


def message_of_bytes(data):
    """The request in DATA. A profiles request is recognized by its dictionary, which it always has. A traces request has no such field."""
    profiles = ExportProfilesServiceRequest()
    try:
        profiles.ParseFromString(data)
        if profiles.HasField("dictionary"):
            return profiles
    except Exception:  # a traces request may not parse as a profiles request
        pass
    traces = ExportTraceServiceRequest()
    traces.ParseFromString(data)
    return traces


def split_delimited(data):
    at = 0
    while at < len(data):
        length = shift = 0
        while True:
            if at == len(data):
                raise BadInput("the file ends within a length")
            byte = data[at]
            at += 1
            length |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        if length > len(data) - at:
            raise BadInput(f"a message of {length} bytes begins at byte {at}, but the file ends {len(data) - at} bytes later")
        yield data[at:at + length]
        at += length


def bytes_of_hex(text):
    return bytes.fromhex("".join(line.split("#")[0] for line in text.splitlines()))


def messages_of_file(path):
    data = pathlib.Path(path).read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    name = str(path).removesuffix(".gz")
    if name.endswith(".jsonl"):
        return [message_of_json(line) for line in data.decode().splitlines() if line.strip()]
    if name.endswith(".json"):
        return [message_of_json(data.decode())]
    if name.endswith(".binpb"):
        return [message_of_bytes(piece) for piece in split_delimited(data)]
    if name.endswith(".hex"):
        return [message_of_bytes(bytes_of_hex(data.decode()))]
    return [message_of_bytes(data)]


# ---- messages to plain values ----

def plain_value(value, strings=()):
    """VALUE as a plain Python value. STRINGS is the dictionary's string table, to which values of a profiles request may refer."""
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    if kind == "array_value":
        return [plain_value(item, strings) for item in value.array_value.values]
    if kind == "kvlist_value":
        return plain_attributes(value.kvlist_value.values, strings)
    if kind == "bytes_value":
        return value.bytes_value.hex()
    if kind == "string_value_strindex":
        return strings[value.string_value_strindex]
    return getattr(value, kind)


def plain_attributes(attributes, strings=()):
    return {strings[item.key_strindex] if item.key_strindex else item.key: plain_value(item.value, strings)
            for item in attributes}


def plain_scope(scope, schema_url):
    return {"name": scope.name, "version": scope.version, "attributes": plain_attributes(scope.attributes),
            "dropped_attributes_count": scope.dropped_attributes_count, "schema_url": schema_url}


def plain_event(event):
    return {"time_unix_nano": event.time_unix_nano, "name": event.name, "attributes": plain_attributes(event.attributes),
            "dropped_attributes_count": event.dropped_attributes_count}


def plain_link(link):
    return {"trace_id": link.trace_id.hex(), "span_id": link.span_id.hex(), "flags": link.flags,
            "attributes": plain_attributes(link.attributes), "dropped_attributes_count": link.dropped_attributes_count}


def plain_span(span, scope_spans, resource):
    return {
        "trace_id": span.trace_id.hex(), "span_id": span.span_id.hex(), "parent_span_id": span.parent_span_id.hex(),
        "trace_state": span.trace_state, "name": span.name, "kind": span.kind, "flags": span.flags,
        "start_time_unix_nano": span.start_time_unix_nano, "end_time_unix_nano": span.end_time_unix_nano,
        "status": {"code": span.status.code, "message": span.status.message},
        "attributes": plain_attributes(span.attributes),
        "events": [plain_event(event) for event in span.events], "links": [plain_link(link) for link in span.links],
        "dropped": {"attributes": span.dropped_attributes_count, "events": span.dropped_events_count,
                    "links": span.dropped_links_count},
        "scope": plain_scope(scope_spans.scope, scope_spans.schema_url), "resource": plain_attributes(resource.attributes),
    }


def spans_of(request):
    for resource_spans in request.resource_spans:
        for scope_spans in resource_spans.scope_spans:
            for span in scope_spans.spans:
                yield plain_span(span, scope_spans, resource_spans.resource)


class Dictionary:
    """The tables of one profiles request. An index that is out of range raises IndexError."""

    def __init__(self, tables):
        self.tables = tables

    def string(self, index):
        return self.tables.string_table[index]

    def attributes(self, indices):
        entries = [self.tables.attribute_table[index] for index in indices]
        return {self.string(entry.key_strindex): plain_value(entry.value, self.tables.string_table) for entry in entries}

    def frames(self, stack_index):
        for location_index in self.tables.stack_table[stack_index].location_indices:
            location = self.tables.location_table[location_index]
            for line in location.lines:
                yield self.string(self.tables.function_table[line.function_index].name_strindex)
            if not location.lines:
                mapping = self.tables.mapping_table[location.mapping_index]
                name = self.string(mapping.filename_strindex).rpartition("/")[2]
                yield f"{name}+{location.address:#x}"

    def sample(self, sample):
        link = self.tables.link_table[sample.link_index]
        return {
            "frames": list(self.frames(sample.stack_index)),
            "value": sum(sample.values) if sample.values else len(sample.timestamps_unix_nano),
            "count": len(sample.timestamps_unix_nano) or len(sample.values),
            "trace_id": link.trace_id.hex(), "span_id": link.span_id.hex(),
            "attributes": self.attributes(sample.attribute_indices),
        }

    def profile(self, profile, scope, resource):
        return {
            "type": self.string(profile.sample_type.type_strindex), "unit": self.string(profile.sample_type.unit_strindex),
            "period_type": self.string(profile.period_type.type_strindex),
            "period_unit": self.string(profile.period_type.unit_strindex), "period": profile.period,
            "time_unix_nano": profile.time_unix_nano, "duration_nano": profile.duration_nano,
            "profile_id": profile.profile_id.hex(), "attributes": self.attributes(profile.attribute_indices),
            "scope": {"name": scope.name, "version": scope.version},
            "resource": plain_attributes(resource.attributes, self.tables.string_table),
            "stacks": [self.sample(sample) for sample in profile.samples],
        }


def profiles_of(request):
    dictionary = Dictionary(request.dictionary)
    for resource_profiles in request.resource_profiles:
        for scope_profiles in resource_profiles.scope_profiles:
            for profile in scope_profiles.profiles:
                yield dictionary.profile(profile, scope_profiles.scope, resource_profiles.resource)


def decode(paths):
    """{"spans": [...], "profiles": [...]} of all files together."""
    result = {"spans": [], "profiles": []}
    for path in paths:
        for message in messages_of_file(path):
            if isinstance(message, ExportTraceServiceRequest):
                result["spans"].extend(spans_of(message))
            else:
                result["profiles"].extend(profiles_of(message))
    return result


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for path in sys.argv[1:]:
        try:
            decode([path])
        except Exception as error:
            print(f"otlp_decode: {path}: {type(error).__name__}: {error}", file=sys.stderr)
            sys.exit(2)
    json.dump(decode(sys.argv[1:]), sys.stdout, indent=1, sort_keys=True, ensure_ascii=False)
    print()


if __name__ == "__main__":
    main()
