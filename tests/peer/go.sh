# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154  # set by who sources this
# For the scripts that build a peer in Go: sourced with $peer set to what their messages begin with. Programs are kept for all build folders
# and all checkouts below $cache; everything that Go needs on the way is deleted.
cache=${SPANPROF_TEST_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/spanprof-test}
# What Go says when it is the network's fault.
no_answer='dial tcp|i/o timeout|TLS handshake timeout|no such host|connection (refused|reset)|proxyconnect'
no_answer+='|module lookup disabled|50[234] [A-Z]'

say() {
    echo "$peer: $*" >&2
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
        skip "the Go module proxy does not answer, so it cannot be built"
    fi
    say "$1 failed"
    exit 1
}

# Go works in $work from now on, a folder that goes when the script ends. Only for who has the lock.
enter_work() {
    rm -rf "$cache"/work-* # of a build that was killed
    work=$(mktemp -d "$cache/work-XXXXXX")
    # shellcheck disable=SC2064  # the directory of now is meant
    trap "rm -rf '$work'" EXIT
    # The caches are our own, because they are a gigabyte that nobody asked for.
    export GOPATH=$work/go GOMODCACHE=$work/go/pkg/mod GOCACHE=$work/cache GOBIN=$work/bin GOTMPDIR=$work \
        GOFLAGS=-modcacherw GOTOOLCHAIN=local GOWORK=off CGO_ENABLED=0
}

# kept_program PROGRAM MINIMUM_GO: print the path of PROGRAM, after the caller's function `build`, which makes it, unless that has been done.
kept_program() {
    local program=$1 minimum_go=$2 found_go
    if [[ ! -x $program ]]; then
        command -v go >/dev/null || skip "there is no go in the PATH; it needs Go $minimum_go"
        found_go=$(GOTOOLCHAIN=local go env GOVERSION)
        new_enough "$found_go" "$minimum_go" || skip "it needs Go $minimum_go, this is $found_go"
        mkdir -p "$cache"
        exec 9>"$cache/lock"
        flock 9
        if [[ ! -x $program ]]; then
            say "building $program ($found_go; once, takes minutes)"
            enter_work
            build
        fi
    fi
    echo "$program"
}

# kept_main: the same for a program that is main.go, go.mod and go.sum in the folder $here. It is kept by their hash.
kept_main() {
    local program sources=("$here/main.go" "$here/go.mod" "$here/go.sum")
    program=$cache/$peer-$(cat "${sources[@]}" | sha256sum | cut -c 1-16)
    build() {
        cp "${sources[@]}" "$work"
        cd "$work" || return
        run_go "$work/build.log" go build -mod=readonly -trimpath -ldflags='-s -w' -o "$work/program" .
        mv "$work/program" "$program"
    }
    kept_program "$program" "$(sed -n 's/^go //p' "$here/go.mod")"
}
