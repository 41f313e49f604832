#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_format.sh TREE : every C and C++ file reads as .clang-format says. Skipped aloud where clang-format-14 is missing: versions differ.
command -v clang-format-14 >/dev/null || { echo "SKIPPED: clang-format-14 is not installed"; exit 77; }
cd "$1" || exit 1
found=$(mktemp) || exit 1
trap 'rm -f "$found"' EXIT
find include src examples tests \( -name '*.[ch]' -o -name '*.[ch]pp' \) -exec clang-format-14 --dry-run -Werror {} + 2>&1 | grep 'error:' | cut -d: -f1 | sort | uniq -c >"$found"
status=0
if [ -s "$found" ]; then
    echo "FAILED: run clang-format-14 -i on (places, file):"
    cat "$found"
    status=1
fi
exit "$status"
