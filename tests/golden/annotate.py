#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Print protobuf bytes as commented hex: one line a field, named from our .proto files.

The files of this folder were made, in the root of the source tree, by
    golden_otlp --write /tmp          (a program of the build: tests/golden/golden_otlp)
    tests/golden/annotate.py ExportTraceServiceRequest    /tmp/traces.bin   > tests/golden/traces.hex
    tests/golden/annotate.py ExportProfilesServiceRequest /tmp/profiles.bin > tests/golden/profiles.hex
    for f in traces profiles; do python3 -m json.tool --no-ensure-ascii --indent 2 /tmp/$f.json tests/golden/$f.json; done
and protoc, which knows nothing of us, reads them back with
    sed 's/#.*//' tests/golden/traces.hex | xxd -r -p | protoc --decode_raw
"""
import pathlib
import re
import struct
import sys

PROTO = pathlib.Path(__file__).resolve().parent.parent.parent / "proto"
FILES = ("common", "resource", "trace", "profiles", "trace_service", "profiles_service")


def read_types():
    """{full name: {number: (field name, type name, package)}}; enough of the language for our own files."""
    types = {}
    for name in FILES:
        open_names = []
        for line in (PROTO / f"{name}.proto").read_text().splitlines():
            line = line.split("//")[0].strip()
            if found := re.match(r"package ([\w.]+);", line):
                open_names = [found[1]]
            elif found := re.match(r"(message|enum) (\w+) {", line):
                open_names.append(found[2])
                types[".".join(open_names)] = {} if found[1] == "message" else None
            elif found := re.match(r"oneof \w+ {", line):
                open_names.append("")
            elif line == "}":
                open_names.pop()
            elif found := re.match(r"(?:repeated )?([\w.]+) (\w+) = (\d+);", line):
                owner = ".".join(part for part in open_names if part)
                types[owner][int(found[3])] = (found[2], found[1], owner)
    return types


def resolve(types, name, owner):
    """The full name of a message type as seen from OWNER; None for scalars and enums."""
    scope = owner
    while scope:
        if f"{scope}.{name}" in types:
            return f"{scope}.{name}" if types[f"{scope}.{name}"] is not None else None
        scope = scope.rpartition(".")[0]
    return name if types.get(name) is not None else None


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def bytes_value(kind, payload):
    if kind == "string":
        return '"' + payload.decode().replace("\n", "\\n") + '"'
    if kind == "bytes":
        return payload.hex()
    if kind.startswith("fixed64"):
        return list(struct.unpack(f"<{len(payload) // 8}Q", payload))
    values, at = [], 0
    while at < len(payload):
        value, at = varint(payload, at)
        values.append(signed(value))
    return values


def annotate(types, type_name, data, depth=0):
    at = 0
    seen = {}
    while at < len(data):
        start = at
        tag, at = varint(data, at)
        name, kind, owner = types[type_name][tag >> 3]
        inner = resolve(types, kind, owner)
        seen[name] = seen.get(name, -1) + 1
        label = f"{name}[{seen[name]}]" if name in REPEATED else name
        payload = None
        if tag & 7 == 0:
            value, at = varint(data, at)
            value = signed(value)
        elif tag & 7 == 1:
            value = struct.unpack_from("<d" if kind == "double" else "<Q", data, at)[0]
            at += 8
        elif tag & 7 == 5:
            value = hex(struct.unpack_from("<I", data, at)[0])
            at += 4
        else:
            length, at = varint(data, at)
            payload = data[at:at + length]
            head = at
            at += length
        indent = "  " * depth
        if inner:
            print(f"{indent}{data[start:head].hex(' ')}  # {label}: {inner.split('.', 2)[2]}, {len(payload)} bytes")
            annotate(types, inner, payload, depth + 1)
        else:
            shown = value if payload is None else bytes_value(kind, payload)
            print(f"{indent}{data[start:at].hex(' ')}  # {label} = {shown}")


REPEATED = {"resource_spans", "scope_spans", "spans", "links", "attributes", "resource_profiles", "scope_profiles",
            "profiles", "samples", "mapping_table", "location_table", "function_table", "link_table", "string_table",
            "attribute_table", "stack_table", "lines"}


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: annotate.py MESSAGE FILE (MESSAGE: ExportTraceServiceRequest or ExportProfilesServiceRequest)")
    types = read_types()
    data = pathlib.Path(sys.argv[2]).read_bytes()
    print(f"# {sys.argv[1]}, {len(data)} bytes, made by annotate.py from what the encoder gave for golden_data.h.")
    print("# Bytes in hex; behind # what they say. The bytes of a message are the lines indented below it.")
    annotate(types, f"sp.collector.{sys.argv[1]}", data)


if __name__ == "__main__":
    main()
