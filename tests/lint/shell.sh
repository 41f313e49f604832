#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# shell.sh TREE: shellcheck finds no error and no warning in the scripts.
command -v shellcheck >/dev/null || { echo "SKIPPED: shellcheck is not installed (Debian: shellcheck)"; exit 77; }
cd "$1" || exit 1
scripts=$(find scripts tests examples .ci -type f -exec grep -lE '^#!/bin/(ba)?sh|shellcheck shell=' {} +)
[ -n "$scripts" ] || { echo "no scripts in $1"; exit 1; }
# shellcheck disable=SC2086  # their names have no blanks
shellcheck --external-sources --severity=warning $scripts || exit 1
echo "$scripts" | wc -l
