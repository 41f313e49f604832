#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# build.sh: build Go's pprof unless that has been done, and print the path of the program. Its source comes with Go, so no network is needed. It is
# kept (go.sh says where). Exits 77 with the reason when there is no Go, or one without it.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
peer=pprof
# shellcheck source=tests/peer/go.sh
source "$here/../go.sh"

build() {
    [[ -e $(go env GOROOT)/src/cmd/pprof ]] || skip "this Go comes without the source of pprof"
    run_go "$work/build.log" go build -trimpath -ldflags='-s -w' -o "$work/program" cmd/pprof
    mv "$work/program" "$cache/go-pprof"
}
kept_program "$cache/go-pprof" 1.21
