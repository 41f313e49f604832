#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_shop_plants.sh SHOP SPANPROF PRELOAD: the planted leak and the planted convoy are each found by name with one command.
set -euo pipefail
shop=$1 spanprof=$2 preload=$3
# shellcheck source=tests/examples/shop.sh
source "$(dirname "$0")/shop.sh"

# The shop alone has the library in front of its allocator.
shop_with_preload() {
    LD_PRELOAD=$preload SPANPROF_PROFILES=heap,lock exec "$shop_program" "$@"
}
shop_program=$shop
shop=shop_with_preload

start_shop
ask GET '/visit?user=7' | grep -q ' 404 ' || fail "without --plants there is a /visit"
kill -TERM "$shop_pid"
wait_shop
rm "$work"/shop.*

start_shop --plants
for ((i = 0; i < 16; i++)); do
    ask GET "/visit?user=$i" >/dev/null
done
ask GET '/rebuild?rounds=0' | grep -q ' 400 ' || fail "/rebuild took 0 rounds"
for ((i = 0; i < 8; i++)); do
    asking=()
    ask GET '/rebuild?rounds=1000' >/dev/null &
    asking+=($!)
    for word in 1 2 3; do
        ask GET "/search?word=$word" >/dev/null &
        asking+=($!)
    done
    wait "${asking[@]}"
done
kill -TERM "$shop_pid"
wait_shop

"$spanprof" flame "$work/shop" --type inuse --outlived --format folded >"$work/leak"
grep -q 'remember_visit' "$work/leak" || { cat "$work/leak"; fail "the leak does not show"; }
"$spanprof" spans "$work/shop" --holders >"$work/convoy"
cat "$work/convoy"
grep -q 'GET /search .* look_up  *index_lock .* GET /rebuild .* rebuild_index' "$work/convoy" || fail "the convoy does not show"
