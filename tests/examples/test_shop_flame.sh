#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_shop_flame.sh SHOP SPANPROF: the flamegraph of the slowest /report shows the planted bug: more than half of the request's
# samples are in append_row_to_report.
set -euo pipefail
shop=$1 spanprof=$2
# shellcheck source=tests/examples/shop.sh
source "$(dirname "$0")/shop.sh"

export SPANPROF_CPU_HZ=250
start_shop
for ((i = 0; i < 8; i++)); do
    ask GET '/report?month=12' 'Accept-Encoding: gzip' | wc -c
    ask GET '/product?id=7' >/dev/null
done
kill -TERM "$shop_pid"
wait_shop

files=("$work/shop.traces.jsonl" "$work/shop.profiles.jsonl")
slowest=$("$spanprof" spans "${files[@]}" --name 'GET /report' --sort duration --limit 1 --json)
span_id=$(grep -o '"span_id": *"[0-9a-f]*"' <<<"$slowest" | head -n 1 | grep -o '[0-9a-f]\{16\}')
"$spanprof" flame "${files[@]}" --span "$span_id" --format folded >"$work/folded"
awk '{ all += $NF } /append_row_to_report/ { bug += $NF }
     END { printf "append_row_to_report: %d of %d ns\n", bug, all; exit !(all > 0 && 2 * bug > all) }' "$work/folded" ||
    { cat "$work/folded"; fail "the planted bug does not show"; }
