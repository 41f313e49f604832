# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What the scripts share. Sourced, never run; the script that sources it has set -euo pipefail.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
program=$(basename "$0")

# What Debian 12 calls that which each part needs.
build_packages=(build-essential cmake ninja-build pkg-config protobuf-c-compiler libprotobuf-c-dev zlib1g-dev
    libcurl4-openssl-dev libdw-dev libelf-dev libjansson-dev libmicrohttpd-dev libsqlite3-dev libcmocka-dev python3)
test_packages=(python3-venv chromium)
all_packages=(clang-14 clang-format-14 clang-tidy-14 libclang-rt-14-dev util-linux)
demo_packages=(wrk libc6-dbg) # the latter has the names of the C library's functions

if [[ -t 1 ]]; then
    bold=$'\e[1m' plain=$'\e[0m'
else
    bold='' plain=''
fi

# A heading before each step.
say() {
    printf '\n%s== %s%s\n' "$bold" "$*" "$plain"
}

fail() {
    printf '%s: %s\n' "$program" "$*" >&2
    exit 1
}

# A mistake in the call.
wrong() {
    printf '%s: %s\n' "$program" "$*" >&2
    exit 2
}

missing_packages() {
    local package
    for package in "$@"; do
        [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || echo "$package"
    done
}

# need_packages PACKAGE…: install those that are not there.
need_packages() {
    command -v dpkg-query >/dev/null || fail "this is no Debian: install what corresponds to: $*"
    local missing
    mapfile -t missing < <(missing_packages "$@")
    ((${#missing[@]})) || return 0
    say "Installing what is missing: ${missing[*]}"
    [[ $(id -u) == 0 ]] || fail "run as root, or first: apt-get install ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    local log
    log=$(mktemp)
    if ! { apt-get update && apt-get install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        fail "apt-get could not install them; its output is in $log"
    fi
    rm -f "$log"
}

# The page of `spanprof flame --format html` is made with npm; Debian's serves when there is no newer one.
need_npm() {
    command -v npm >/dev/null && command -v node >/dev/null || need_packages nodejs npm
}

# configure PRESET
configure() {
    local log
    log=$(mktemp)
    if ! (cd "$root" && cmake --preset "$1") >"$log" 2>&1; then
        cat "$log" >&2
        rm -f "$log"
        fail "cmake --preset $1 failed"
    fi
    grep -A3 -i 'warning' "$log" || true
    rm -f "$log"
}

# build PRESET [TARGET…]: on a terminal with ninja's progress, elsewhere only what went wrong is said.
build() {
    local preset=$1 quiet=()
    shift
    [[ -t 1 ]] || quiet=(-- --quiet)
    (cd "$root" && cmake --build --preset "$preset" ${1:+--target "$@"} "${quiet[@]}") || fail "the build $preset failed"
}
