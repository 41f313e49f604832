#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# stand_aside.sh PRELOAD PROGRAM WITH_ASAN OWN_MALLOC AT_FIXED_ADDRESS: under AddressSanitizer and under valgrind, which replace the allocator, and with a
# malloc of its own, the program runs as it does without libspanprof-preload.so, and one warning says that no allocations are seen, and
# one that no waits for locks are. A program at a fixed address that takes the address of malloc is no such case.
set -euo pipefail
preload=$1 program=$2 with_asan=$3 own_malloc=$4 fixed=$5
export SPANPROF_EXPORTER=none SPANPROF_PROFILES=alloc,heap,lock OTEL_TRACES_EXPORTER=none

expect() {
    local name=$1 count kind
    shift
    "$@" >"$work/out" 2>&1 || { cat "$work/out"; echo "FAILED: under $name the program ends with an error"; exit 1; }
    for kind in $kinds; do
        count=$(grep -c "$kind are not seen: $name" "$work/out" || true)
        ((count == 1)) || { cat "$work/out"; echo "FAILED: $count warnings name $name for $kind"; exit 1; }
    done
    echo "ok: $name"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for seen in "$program" "$fixed"; do
    LD_PRELOAD=$preload "$seen" >"$work/out" 2>&1
    if grep "are not seen" "$work/out"; then
        echo "FAILED: $seen"
        exit 1
    fi
done
kinds=allocations
expect "another library's or the program's own function" env LD_PRELOAD="$preload" "$own_malloc"
kinds="allocations locks"
expect "libspanprof-preload.so is not loaded" "$program"
# ASan demands to be the first library; told not to, it works behind ours.
expect AddressSanitizer env ASAN_OPTIONS=verify_asan_link_order=0 LD_PRELOAD="$preload" "$with_asan"
if command -v valgrind >/dev/null; then
    expect valgrind env LD_PRELOAD="$preload" valgrind --error-exitcode=9 -q "$program"
else
    echo "skipped: valgrind is not installed"
fi
