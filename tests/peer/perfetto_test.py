#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `spanprof flame --format perfetto` writes, read by Perfetto's own classes, is what `--format json` tells. (The program that opens traces,
trace_processor, is in no package registry.)

usage: perfetto_test.py SPANPROF
"""
import collections
import os
import pathlib
import sys
import unittest

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import StackSample, Trace

os.environ["SPANPROF_TEST_TOOL"] = os.path.abspath(sys.argv.pop(1))
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "unit" / "tool"))
from otlp import *


class Reader:
    """The samples of a trace: {(frames leaf first, name of the span or None): weight}, and times by span. A number that no packet has explained before,
    or one that is explained twice, is an error."""

    def __init__(self, data):
        trace = Trace()
        trace.ParseFromString(data)
        self.tables = collections.defaultdict(dict)
        self.samples, self.times, self.defaults = collections.Counter(), {}, None
        for packet in trace.packet:
            self.intern(packet)
            if packet.HasField("trace_packet_defaults"):
                self.defaults = packet.trace_packet_defaults.stack_sample_defaults
            if packet.HasField("stack_sample"):
                self.add(packet)
        assert trace.SerializeToString(), "something is there"

    def intern(self, packet):
        for field, entries in packet.interned_data.ListFields():
            for entry in entries:
                assert entry.iid not in self.tables[field.name], f"{field.name} {entry.iid} is explained twice"
                self.tables[field.name][entry.iid] = entry

    def add(self, packet):
        sample = packet.stack_sample
        stack = self.tables["callstacks"][sample.callstack_iid]
        frames = [self.tables["frames"][iid] for iid in stack.frame_ids]
        assert all(frame.mapping_id in self.tables["mappings"] for frame in frames)
        names = tuple(self.tables["function_names"][frame.function_name_id].str.decode() for frame in reversed(frames))
        task = self.tables["stack_sample_task_contexts"][sample.task_context_iid]
        span = self.tables["stack_sample_async_context_descriptors"][task.async_id] if task.async_id else None
        self.samples[names, span.name if span else None] += sample.primary_weight
        self.times.setdefault(span.name if span else None, set()).add(packet.timestamp)
        assert packet.sequence_flags == 2 and packet.trusted_packet_sequence_id == 1


class Perfetto(ToolTest):
    def read(self, *arguments):
        self.answer("flame", *arguments, "-o", "out.pftrace")
        return Reader((self.folder / "out.pftrace").read_bytes())

    def expected(self, *arguments):
        names = {span["span_id"]: (span["name"], span["start_time_ns"]) for span in self.answer_json("spans", "shop", "--json")["spans"]}
        samples, times = collections.Counter(), {}
        for stack in self.answer_json("flame", *arguments, "--format", "json")["stacks"]:
            name, start = names.get(stack["span_id"], (None, None))
            samples[tuple(stack["frames"]), name] += stack["value"]
            if name:
                times.setdefault(name, set()).add(start)
        return samples, times

    def test_samples_are_those_of_json(self):
        self.write_shop()
        for arguments in (["shop"], ["shop", "--span", REPORT], ["shop", "--names", "full"]):
            trace = self.read(*arguments)
            samples, times = self.expected(*arguments)
            self.assertEqual(trace.samples, samples)
            self.assertEqual({name: at for name, at in trace.times.items() if name}, times)
            self.assertEqual((trace.defaults.primary_descriptor.name, trace.defaults.primary_descriptor.unit), ("cpu", StackSample.UNIT_NANOSECONDS))

    def test_format_is_chosen(self):
        self.write_shop()
        self.answer("flame", "shop", "--format", "perfetto", "-o", "one")
        self.answer("flame", "shop", "-o", "two.pftrace")
        self.assertEqual((self.folder / "one").read_bytes(), (self.folder / "two.pftrace").read_bytes())


if __name__ == "__main__":
    unittest.main()
