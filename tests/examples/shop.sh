# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154  # set by who sources this
# Start, ask, and stop a shop. Sourced; the test that sources it has set -euo pipefail and names the program in $shop.

work=$(mktemp -d)
shop_pid=''
trap '[[ -z $shop_pid ]] || kill "$shop_pid" 2>/dev/null; rm -rf "$work"' EXIT

fail() {
    echo "FAILED: $*"
    cat "$work/shop.log" 2>/dev/null || true
    exit 1
}

# start_shop [OPTION…]: its files are $work/shop.*, its port is in $port.
start_shop() {
    : >"$work/shop.log" # the background job may come to it later than we do
    SPANPROF_EXPORTER=file SPANPROF_FILE=$work/shop TMPDIR=$work "$shop" --port 0 "$@" >"$work/shop.log" 2>&1 &
    shop_pid=$!
    local tries
    for ((tries = 0; tries < 3000; tries++)); do
        port=$(sed -n 's|^shop: listening on http://127.0.0.1:||p' "$work/shop.log")
        [[ -z $port ]] || return 0
        kill -0 "$shop_pid" 2>/dev/null || break
        sleep 0.1
    done
    fail "the shop did not start"
}

# ask METHOD PATH [HEADER]: the answer with its headers.
ask() {
    exec 3<>"/dev/tcp/127.0.0.1/$port"
    printf '%s %s HTTP/1.0\r\nHost: shop\r\n%s\r\n' "$1" "$2" "${3:+$3$'\r\n'}" >&3
    cat <&3
    exec 3>&-
}

# Waits until the shop ended by itself or by the SIGTERM that was sent; it has to say 0.
wait_shop() {
    local code=0
    wait "$shop_pid" || code=$?
    shop_pid=''
    ((code == 0)) || fail "the shop ended with $code"
}
