#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_small.sh FOLDER: hello writes its span and its profile; propagate is one trace in three places; cplusplus records what it throws, and
# the CPU time of its threads.
set -euo pipefail
folder=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

SPANPROF_EXPORTER=file SPANPROF_FILE="hello" "$folder/hello"
grep -q '"name":"count primes"' hello.traces.jsonl
[[ -f hello.profiles.jsonl ]]

SPANPROF_EXPORTER="file" "$folder/propagate" | tee places
[[ $(awk '{ print $1 }' places | xargs) == 'request thread process' ]]
[[ $(cut -d- -f2 places | sort -u | wc -l) == 1 ]] || { echo "more than one trace"; exit 1; }
[[ $(cut -d- -f3 places | sort -u | wc -l) == 3 ]] || { echo "fewer than three spans"; exit 1; }
request=$(sed -n 's/^request .*-\([0-9a-f]*\)-..$/\1/p' places)
grep -q "\"name\":\"job\".*\"parentSpanId\":\"$request\"\|\"parentSpanId\":\"$request\".*\"name\":\"job\"" propagate.traces.jsonl
grep -q "\"parentSpanId\":\"$request\"" propagate-child.traces.jsonl

code=0
SPANPROF_EXPORTER=none "$folder/propagate" 00-nonsense 2>message || code=$?
((code == 2)) && grep -q '"00-nonsense" is not a traceparent' message

SPANPROF_EXPORTER=file SPANPROF_FILE=cplusplus SPANPROF_CPU_TIME=root "$folder/cplusplus" >said
[[ $(<said) == $'elsewhere: 0.5\nhere: the mean of nothing' ]] || { cat said; exit 1; }
python3 - cplusplus.traces.jsonl <<'EOF'
import json, sys

spans = []
for line in open(sys.argv[1]):
    for resource in json.loads(line)["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            assert scope["scope"]["name"] == "example.cplusplus", scope["scope"]
            spans += scope["spans"]
request = next(s for s in spans if s["name"] == "request")
means = [s for s in spans if s["name"] == "mean"]
assert len(spans) == 3 and all(s["parentSpanId"] == request["spanId"] for s in means), spans
attributes = {a["key"]: a["value"] for a in request["attributes"]}
assert attributes["line"] == {"stringValue": "GET /mean"}, attributes
assert int(attributes["spanprof.cpu_time_ns"]["intValue"]) > 0, attributes
event = {a["key"]: a["value"]["stringValue"] for a in request["events"][0]["attributes"]}
assert event == {"exception.type": "std::invalid_argument", "exception.message": "the mean of nothing"}, event
assert request["status"] == {"code": 2, "message": "the mean of nothing"}, request["status"]
EOF
