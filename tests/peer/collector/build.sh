#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# build.sh: build the Collector of manifest.yaml with its builder unless that has been done, and print the path of the program.
#
# It takes minutes, so the program is kept by the manifest's hash (go.sh says where). Exits 77 with the reason when there is no Go of
# the right age, or the module proxy does not answer.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
peer=collector
# shellcheck source=tests/peer/go.sh
source "$here/../go.sh"
manifest=$here/manifest.yaml
builder_version=$(sed -n 's|.*/receiver/otlpreceiver ||p' "$manifest")
program=$cache/otelcol-$(sha256sum "$manifest" | cut -c 1-16)

build() {
    cd "$work"
    run_go "$work/install.log" go install "go.opentelemetry.io/collector/cmd/builder@$builder_version"
    run_go "$work/build.log" "$work/bin/builder" --config="$manifest" --ldflags='-s -w'
    mv "$work/distribution/spanprof-otelcol" "$program"
}

kept_program "$program" 1.25
