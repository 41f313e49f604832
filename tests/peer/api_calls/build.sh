#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# build.sh: build main.go, which makes the table's calls through OpenTelemetry's SDK for Go, unless that has been done, and print the path of
# the program. It is kept by the hash of what it is made of (go.sh says where). Exits 77 with the reason when there is no Go of the right age,
# or the module proxy does not answer.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
peer=api_calls
# shellcheck source=tests/peer/go.sh
source "$here/../go.sh"
kept_main
