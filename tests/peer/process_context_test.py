#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The process context that spanprof publishes (OTEP 4719), read as OpenTelemetry's eBPF profiler reads it, and decoded by OpenTelemetry's own
generated classes.

usage: process_context_test.py PROGRAM      PROGRAM is outside/target.c"""
import os
import struct
import subprocess
import sys
import time
import unittest

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, unknown_fields
from opentelemetry.proto.common.v1 import common_pb2
from opentelemetry.proto.resource.v1 import resource_pb2

PROGRAM = sys.argv.pop(1)
# That profiler takes no others, and only where the mapping is not executable.
NAMES = ("/memfd:OTEL_CTX", "/memfd:OTEL_CTX (deleted)", "[anon_shmem:OTEL_CTX]", "[anon:OTEL_CTX]")
LARGEST = 65536


def process_context_class():
    """opentelemetry.proto.processcontext.v1development.ProcessContext, which the package does not have yet, of parts that it has."""
    file = descriptor_pb2.FileDescriptorProto(
        name="process_context.proto", package="test", syntax="proto3",
        dependency=[resource_pb2.DESCRIPTOR.name, common_pb2.DESCRIPTOR.name])
    message = file.message_type.add(name="ProcessContext")
    message.field.add(name="resource", number=1, label=1, type=11, type_name=".opentelemetry.proto.resource.v1.Resource")
    message.field.add(name="attributes", number=2, label=3, type=11, type_name=".opentelemetry.proto.common.v1.KeyValue")
    pool = descriptor_pool.Default()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("test.ProcessContext"))


def mappings(pid):
    with open(f"/proc/{pid}/maps") as file:
        for line in file:
            words = line.rstrip("\n").split(None, 5)
            if len(words) == 6 and words[5] in NAMES:
                yield int(words[0].split("-")[0], 16), words[1]


def memory(pid, address, size):
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as file:
        file.seek(address)
        return file.read(size)


class ProcessContext(unittest.TestCase):
    def setUp(self):
        environment = {**os.environ, "SPANPROF_EXPORTER": "none", "OTEL_SERVICE_NAME": "target",
                       "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test,service.version=7"}
        self.process = subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        for line in self.process.stdout:
            if line.strip() == "ready":
                return
        self.fail(f"{PROGRAM} exited with {self.process.wait()}")

    def tearDown(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()

    def test_is_what_readers_of_the_specification_take(self):
        found = list(mappings(self.process.pid))
        self.assertEqual(len(found), 1)
        address, rights = found[0]
        self.assertEqual(rights, "rw-p")
        signature, version, size, published, payload = struct.unpack("=8sIIQQ", memory(self.process.pid, address, 32))
        self.assertEqual((signature, version), (b"OTEL_CTX", 2))
        self.assertIn(size, range(1, LARGEST + 1))
        self.assertIn(published, range(1, time.clock_gettime_ns(time.CLOCK_BOOTTIME)))
        context = process_context_class().FromString(memory(self.process.pid, payload, size))
        for part in (context, context.resource, *context.resource.attributes, *context.attributes):
            self.assertEqual(len(unknown_fields.UnknownFieldSet(part)), 0)
        resource = {a.key: a.value.string_value for a in context.resource.attributes}
        self.assertEqual(resource["service.name"], "target")
        self.assertEqual(resource["service.version"], "7")
        self.assertEqual(resource["deployment.environment.name"], "test")
        self.assertEqual((resource["telemetry.sdk.name"], resource["telemetry.sdk.language"]), ("spanprof", "c"))
        self.assertRegex(resource["service.instance.id"], r"^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$")
        attributes = {a.key: a.value for a in context.attributes}
        self.assertEqual(sorted(attributes), ["threadlocal.attribute_key_map", "threadlocal.schema_version"])
        self.assertEqual(attributes["threadlocal.schema_version"].string_value, "tlsdesc_v1_dev")
        self.assertEqual(attributes["threadlocal.attribute_key_map"].WhichOneof("value"), "array_value")


if __name__ == "__main__":
    unittest.main()
