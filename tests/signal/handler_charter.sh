#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# handler_charter.sh LIST LIBRARY OBJECT… : what runs in the signal handler (the *_sig.c objects) needs nothing from elsewhere but what LIST
# names, has no thread-local variable (a dlopened library's are made lazily, with malloc), and in LIBRARY nothing is bound lazily.
list=$1
library=$2
shift 2
found=0
status=0
complain() {
    echo "FAILED: $*"
    status=1
}
for object in "$@"; do
    case $object in
    *_sig.c.o) found=$((found + 1)) ;;
    *) continue ;;
    esac
    for symbol in $(nm -u "$object" | awk '{print $2}'); do
        grep -q "^${symbol}[[:space:]]" "$list" || complain "$(basename "$object") needs $symbol, which is not in $(basename "$list")"
    done
    readelf -rW "$object" | grep -qE 'R_[A-Z0-9_]*(TLS|TPOFF|DTP)' && complain "$(basename "$object") uses a thread-local variable"
done
[ "$found" -eq 4 ] || complain "expected the objects of handler_sig.c, host_action_sig.c, walk_sig.c and generation_sig.c, found $found"
readelf -dW "$library" | grep -q BIND_NOW || complain "$library is not linked with -z now: its symbols are bound lazily"
[ "$status" -eq 0 ] && echo "the handler's $found objects need nothing but what the list names, no TLS; the library is bound at load"
exit "$status"
