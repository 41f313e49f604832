#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Samples under opentelemetry-cpp are linked to the span that was active, in all the ways in which its contexts travel.

  opentelemetry_cpp_test.py PROGRAM [--seconds N] [options of truth.py]"""
import pathlib, sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import tracers
import truth
from truth import verdict

parser = truth.arguments(__doc__)
parser.add_argument("program")
parser.add_argument("--seconds", type=verdict.seconds, default="1")
arguments = parser.parse_args()
tracers.check_marks([arguments.program, "0"])
run = tracers.run([arguments.program, str(arguments.seconds)], arguments)
if "misuse 0" not in run.output:
    verdict.fail(f"scopes were misused: {run.output[-200:]}")
tracers.finish("opentelemetry-cpp", run, arguments)
