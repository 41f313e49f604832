#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# handler_symbols.sh LIST OBJECT… : the undefined symbols of the handler's objects must all stand in LIST, and the objects must exist.
list=$1
shift
found=0
status=0
for object in "$@"; do
    case $object in
    *_sig.c.o) found=$((found + 1)) ;;
    *) continue ;;
    esac
    for symbol in $(nm -u "$object" | awk '{print $2}'); do
        if ! grep -q "^$symbol[[:space:]]" "$list"; then
            echo "FAILED: $(basename "$object") needs $symbol, which is not in $(basename "$list")"
            status=1
        fi
    done
done
if [ "$found" -ne 3 ]; then
    echo "FAILED: expected the objects of handler_sig.c, walk_sig.c and generation_sig.c, found $found"
    status=1
fi
[ "$status" -eq 0 ] && echo "the handler's $found objects need nothing but what the list names"
exit "$status"
