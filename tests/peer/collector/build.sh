#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# build.sh [CORE STABLE CONTRIB]: build the Collector of manifest.yaml with its builder unless that has been done, and print the path of
# the program. The versions (as 0.165.0 1.71.0 0.165.1) replace those of the manifest: of the 0.x modules, of the 1.x modules, and of those
# of opentelemetry-collector-contrib.
#
# It takes minutes, so the program is kept by the manifest's hash (go.sh says where). Exits 77 with the reason when there is no Go of
# the right age, or the module proxy does not answer.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
peer=collector
# shellcheck source=tests/peer/go.sh
source "$here/../go.sh"
manifest=$(cat "$here/manifest.yaml")
minimum_go=1.25
# The file exporter's own tests, in 0.165, import this module, which the proxy does not have. Go wants to know it, and builds nothing of it.
tests_only=github.com/open-telemetry/opentelemetry-collector-contrib/extension/encoding/otlpencodingextension
if (($# == 3)); then
    manifest=$(sed -E "/contrib/s/ v0\.[0-9.]+$/ v$3/; /contrib/!s/ v0\.[0-9.]+$/ v$1/; s/ v1\.[0-9.]+$/ v$2/" <<<"$manifest")
    minimum_go=1.26
    manifest+=$'\n'"replaces: [ $tests_only => ../tests_only ]"
fi
builder_version=$(sed -n 's|.*/receiver/otlpreceiver ||p' <<<"$manifest")
program=$cache/otelcol-$(sha256sum <<<"$manifest" | cut -c 1-16)

build() {
    cd "$work"
    echo "$manifest" >manifest.yaml
    mkdir tests_only
    echo "module $tests_only" >tests_only/go.mod
    echo "package ${tests_only##*/}" >tests_only/empty.go
    run_go "$work/install.log" go install "go.opentelemetry.io/collector/cmd/builder@$builder_version"
    run_go "$work/build.log" "$work/bin/builder" --config=manifest.yaml --ldflags='-s -w'
    mv "$work/distribution/spanprof-otelcol" "$program"
}

kept_program "$program" "$minimum_go"
