#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# format.sh TREE: every C and C++ file reads as .clang-format says. Skipped where clang-format-14 is missing, because versions differ.
command -v clang-format-14 >/dev/null || { echo "SKIPPED: clang-format-14 is not installed (Debian: clang-format-14)"; exit 77; }
cd "$1" || exit 1
found=$(find include src examples tests \( -name '*.[ch]' -o -name '*.[ch]pp' \) -exec clang-format-14 --dry-run -Werror {} + 2>&1 |
    grep 'error:' | cut -d: -f1 | sort | uniq -c)
[ -z "$found" ] || { printf 'FAILED: run clang-format-14 -i on (places, file):\n%s\n' "$found"; exit 1; }
