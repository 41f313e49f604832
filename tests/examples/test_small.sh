#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_small.sh FOLDER: hello writes its span and its profile; propagate is one trace in three places.
set -euo pipefail
folder=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

SPANPROF_EXPORTER=file SPANPROF_FILE=hello "$folder/hello"
grep -q '"name":"count primes"' hello.traces.jsonl
[[ -f hello.profiles.jsonl ]]

SPANPROF_EXPORTER=file "$folder/propagate" | tee places
[[ $(awk '{ print $1 }' places | xargs) == 'request thread process' ]]
[[ $(cut -d- -f2 places | sort -u | wc -l) == 1 ]] || { echo "more than one trace"; exit 1; }
[[ $(cut -d- -f3 places | sort -u | wc -l) == 3 ]] || { echo "fewer than three spans"; exit 1; }
request=$(sed -n 's/^request .*-\([0-9a-f]*\)-..$/\1/p' places)
grep -q "\"name\":\"job\".*\"parentSpanId\":\"$request\"\|\"parentSpanId\":\"$request\".*\"name\":\"job\"" propagate.traces.jsonl
grep -q "\"parentSpanId\":\"$request\"" propagate-child.traces.jsonl

code=0
SPANPROF_EXPORTER=none "$folder/propagate" 00-nonsense 2>message || code=$?
((code == 2)) && grep -q '"00-nonsense" is not a traceparent' message
