#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# build.sh: build the Collector of manifest.yaml with its builder unless that has been done, and print the path of the program.
#
# It takes minutes, so the program is kept for all build folders and all checkouts, by the manifest's hash, below
# $SPANPROF_TEST_CACHE (by default spanprof-test in $XDG_CACHE_HOME or ~/.cache). Everything that Go needs for it is deleted
# afterwards. Exits 77 with the reason when there is no Go of the right age, or the module proxy does not answer.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
manifest=$here/manifest.yaml
cache=${SPANPROF_TEST_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/spanprof-test}
builder_version=$(sed -n 's|.*/receiver/otlpreceiver ||p' "$manifest")
program=$cache/otelcol-$(sha256sum "$manifest" | cut -c 1-16)
minimum_go=1.25
# What Go says when it is the network's fault.
no_answer='dial tcp|i/o timeout|TLS handshake timeout|no such host|connection (refused|reset)|proxyconnect'
no_answer+='|module lookup disabled|50[234] [A-Z]'

say() {
    echo "collector: $*" >&2
}

skip() {
    say "skipped: $*"
    exit 77
}

# True when version $1 (go1.26.8, or 1.26) is not older than $2.
new_enough() {
    [[ $(printf '%s\n%s\n' "$2" "${1#go}" | sort -V | head -n 1) == "$2" ]]
}

# run_go LOG COMMAND…: its output is shown only when it fails.
run_go() {
    local log=$1
    shift
    "$@" >"$log" 2>&1 && return
    tail -n 40 "$log" >&2
    if grep -qE "$no_answer" "$log"; then
        skip "the Go module proxy does not answer, so the Collector cannot be built"
    fi
    say "$1 failed"
    exit 1
}

build() {
    local work
    rm -rf "$cache"/work-* # of a build that was killed: we have the lock
    work=$(mktemp -d "$cache/work-XXXXXX")
    # shellcheck disable=SC2064  # the directory of now is meant
    trap "rm -rf '$work'" EXIT
    # The caches are our own, because they are a gigabyte that nobody asked for.
    export GOPATH=$work/go GOMODCACHE=$work/go/pkg/mod GOCACHE=$work/cache GOBIN=$work/bin GOTMPDIR=$work \
        GOFLAGS=-modcacherw GOTOOLCHAIN=local GOWORK=off CGO_ENABLED=0
    cd "$work"
    run_go "$work/install.log" go install "go.opentelemetry.io/collector/cmd/builder@$builder_version"
    run_go "$work/build.log" "$work/bin/builder" --config="$manifest" --ldflags='-s -w'
    mv "$work/distribution/spanprof-otelcol" "$program"
}

if [[ ! -x $program ]]; then
    command -v go >/dev/null || skip "there is no go in the PATH; the Collector's builder needs Go $minimum_go"
    found_go=$(GOTOOLCHAIN=local go env GOVERSION)
    new_enough "$found_go" "$minimum_go" || skip "the Collector's builder needs Go $minimum_go, this is $found_go"
    mkdir -p "$cache"
    exec 9>"$cache/lock"
    flock 9
    if [[ ! -x $program ]]; then
        say "building $program ($builder_version, $found_go; once, takes minutes)"
        build
    fi
fi
echo "$program"
