#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# handler_tidy.sh SOURCE_DIRECTORY: clang-tidy's bugprone-signal-handler on the handler's whole call tree. What it may call: itself, and
# instructions that the compiler has functions for.
source=$1
tidy=$(command -v clang-tidy-14 || command -v clang-tidy) || {
    echo "SKIPPED: no clang-tidy here"
    exit 77
}
# The functions that the check thinks unsafe, a line each.
unsafe() {
    "$tidy" --quiet --checks='-*,bugprone-signal-handler' "$source/tests/signal/handler_stub.c" -- -D_GNU_SOURCE -std=gnu11 \
        -I"$source/src" -I"$source/include" "$@" 2>&1 |
        sed -n "s/.*warning: '\([^']*\)' may not be asynchronous-safe.*/\1/p" |
        grep -vE '^(__builtin_expect|__builtin_frame_address|__builtin_ia32_rdtsc|__c11_atomic_thread_fence)$'
}
broken=$(unsafe -DBREAK_THE_CHARTER | sort -u | tr '\n' ' ')
[ "$broken" = "free malloc " ] || {
    echo "FAILED: the check does not see what it should: found '$broken' where malloc and free are called"
    exit 1
}
found=$(unsafe | sort -u)
[ -z "$found" ] || {
    echo "FAILED: a tick may call what is not safe in a signal handler:"
    echo "$found"
    exit 1
}
echo "clang-tidy finds nothing in the handler's call tree that is not safe in a signal handler"
