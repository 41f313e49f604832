#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_shop.sh SHOP: pages, wrong requests, wrong options, a caller's trace, and both ways to end.
set -euo pipefail
shop=$1
# shellcheck source=tests/examples/shop.sh
source "$(dirname "$0")/shop.sh"

expect() {
    local status=$1 pattern=$2 answer
    shift 2
    answer=$(ask "$@" | tr -d '\0')
    [[ $answer == "HTTP/1."?" $status "* ]] || fail "$*: expected $status, got: ${answer%%$'\r'*}"
    grep -q -- "$pattern" <<<"$answer" || fail "$*: no '$pattern' in: $answer"
}

expect_refused() {
    local code=0
    timeout 120 "$shop" "$@" >"$work/refused" 2>&1 || code=$?
    ((code == 2)) && grep -q '^\(shop: \|Usage: \|.*unrecognized option\)' "$work/refused" ||
        fail "shop $*: exit code $code: $(cat "$work/refused")"
}

expect_refused --port 65536
expect_refused --port x
expect_refused --threads 0
expect_refused --requests -1
expect_refused --nonsense
expect_refused leftover

start_shop --threads 2
code=0
SPANPROF_EXPORTER=none "$shop" --port "$port" >"$work/second" 2>&1 || code=$?
((code == 1)) && grep -q "cannot listen on 127.0.0.1:$port" "$work/second" || fail "a second shop on $port: $(cat "$work/second")"

expect 200 '^ok' GET /healthz
expect 200 'Lamp &amp; shade, model 7<' GET '/product?id=7'
expect 200 'Cart of user 5' GET '/cart?user=5'
expect 200 'Receipt of user 5' GET '/checkout?user=5'
expect 200 'Customer &lt;' GET '/report?month=1'
expect 200 'Content-Encoding: gzip' GET '/report?month=1' 'Accept-Encoding: gzip'
expect 400 'wants ?id=NUMBER' GET '/product'
expect 400 'wants ?id=NUMBER' GET '/product?id=7x'
expect 400 'wants ?id=NUMBER' GET '/product?id=99999999999999999999'
expect 404 'no such thing' GET '/product?id=999999'
expect 404 'no such thing' GET '/report?month=-1'
expect 404 'no such page' GET '/nowhere'
expect 405 'Only GET' POST '/product?id=7'

caller=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
expect 200 'Cart of user 6' GET '/cart?user=6' "traceparent: $caller"
expect 200 'Cart of user 7' GET '/cart?user=7' "traceparent: not one"
kill -TERM "$shop_pid"
wait_shop
continued=$(grep -o '"traceId":"0af7651916cd43dd8448eb211c80319c"' "$work/shop.traces.jsonl" | wc -l)
children=$(grep -o '"parentSpanId":"b7ad6b7169203331"' "$work/shop.traces.jsonl" | wc -l)
# The request, its query and its rendering.
((continued == 3 && children == 1)) || fail "of the caller's trace there are $continued spans, of its span $children children"
[[ -z $(ls -d "$work"/shop-* 2>/dev/null) ]] || fail "the database was left behind"

start_shop --requests 3
for ((i = 0; i < 3; i++)); do
    expect 200 '^ok' GET /healthz
done
wait_shop
grep -q '^shop: 3 requests answered' "$work/shop.log" || fail "--requests 3"
echo "the shop answers, continues traces, and ends as it should"
