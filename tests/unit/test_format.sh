#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_format.sh TREE : every C and C++ file reads as .clang-format says. Skipped aloud where clang-format-14 is missing: versions differ.
command -v clang-format-14 >/dev/null || { echo "SKIPPED: clang-format-14 is not installed"; exit 77; }
cd "$1" || exit 1
find include src examples tests \( -name '*.[ch]' -o -name '*.[ch]pp' \) -exec clang-format-14 --dry-run -Werror {} + 2>&1 | grep 'error:' | cut -d: -f1 | sort | uniq -c >"${TMPDIR:-/tmp}/format.$$"
status=0
if [ -s "${TMPDIR:-/tmp}/format.$$" ]; then
    echo "FAILED: run clang-format-14 -i on (places, file):"
    cat "${TMPDIR:-/tmp}/format.$$"
    status=1
fi
rm -f "${TMPDIR:-/tmp}/format.$$"
exit "$status"
