# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What the scripts share. Sourced, never run; the script that sources it has set -euo pipefail.

# shellcheck disable=SC2034  # the scripts that source this use what is set here

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
program=$(basename "$0")

# What Debian 12 calls that which each part needs.
build_packages=(build-essential cmake ninja-build pkg-config protobuf-c-compiler libprotobuf-c-dev zlib1g-dev
    libcurl4-openssl-dev libdw-dev libelf-dev liblzma-dev libjansson-dev libsimdjson-dev libmicrohttpd-dev libsqlite3-dev libcmocka-dev python3)
test_packages=(ccache clang-format-14 clang-tidy-14 shellcheck pyflakes3 util-linux python3-venv chromium dwz xz-utils libdebuginfod1 libunwind-dev gdb libuv1-dev nginx-dev wrk curl libjemalloc2 libtcmalloc-minimal4 groff-base zsh fish postgresql-15
    postgresql-server-dev-15)
all_packages=(clang-14 libclang-rt-14-dev mold)
aarch64_packages=(gcc-aarch64-linux-gnu g++-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user)
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

# What the cross build for aarch64 links with: Debian's packages for arm64, with all that they need, unpacked in a tree of their own. This
# system stays as it is: beside each other, the packages of two architectures have to be of the same version, so that installing some
# would change others. It is kept in SPANPROF_TEST_CACHE. Returns false, with the reason said, when the packages cannot be fetched.
make_sysroot() {
    local tree=$SPANPROF_TEST_CACHE/aarch64-sysroot packages=(libc6-dev zlib1g-dev liblzma-dev libprotobuf-c-dev libdw-dev libcurl4-openssl-dev
        libcmocka-dev libsqlite3-dev)
    mkdir -p "$root/build"
    rm -rf "$root/build/aarch64-sysroot"
    ln -s "$tree" "$root/build/aarch64-sysroot"
    [[ $(cat "$tree/packages" 2>/dev/null) != "${packages[*]}" ]] || return 0
    say "Fetching Debian's arm64 packages: ${packages[*]}"
    rm -rf "$tree"
    mkdir -p "$tree"/apt/{state/lists,cache/archives}/partial
    : >"$tree/apt/status"
    local log=$tree/apt/log deb link
    local apt=(apt-get -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State="$tree/apt/state"
        -o Dir::State::status="$tree/apt/status" -o Dir::Cache="$tree/apt/cache" -o Debug::NoLocking=1
        -o APT::Sandbox::User="$(id -un)")
    if ! { "${apt[@]}" update && "${apt[@]}" install -y --download-only --no-install-recommends "${packages[@]}"; } >"$log" 2>&1; then
        tail -n 5 "$log"
        return 1
    fi
    for deb in "$tree"/apt/cache/archives/*.deb; do
        dpkg -x "$deb" "$tree" || return 1
    done
    find "$tree" -type l -lname '/*' | while read -r link; do # absolute links mean this tree's root
        ln -sfr "$tree$(readlink "$link")" "$link"
    done
    rm -rf "$tree/apt"
    echo "${packages[*]}" >"$tree/packages"
}

# Objects that were compiled before come from ccache, also for another clone of this repository: their debug information then names the
# folder of the clone that compiled them first.
use_ccache() {
    export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1
}

# The page of `spanprof flame --format html` is made with npm; Debian's serves when there is no newer one.
need_npm() {
    if ! command -v npm >/dev/null || ! command -v node >/dev/null; then
        need_packages nodejs npm
    fi
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
