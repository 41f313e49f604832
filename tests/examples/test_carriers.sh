#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_carriers.sh FOLDER EXAMPLE…: each serves 40 requests, ends, and has said which span is which request's. (Whose samples are whose is
# asked in tests/truth.)
set -euo pipefail
folder=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

for example in "$@"; do
    SPANPROF_EXPORTER=file SPANPROF_FILE=$example "$folder/$example" 40
    for request in 0 17 39; do
        grep -q "\"request.number\",\"value\":{\"intValue\":\"$request\"}" "$example".*traces.jsonl ||
            { echo "$example: no span of request $request"; exit 1; }
    done
done
