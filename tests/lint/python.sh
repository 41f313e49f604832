#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# python.sh TREE: pyflakes finds nothing in the Python programs. What a file gets by `import *` it cannot judge.
command -v pyflakes3 >/dev/null || { echo "SKIPPED: pyflakes3 is not installed (Debian: pyflakes3)"; exit 77; }
cd "$1" || exit 1
found=$(find scripts tests examples -name '*.py' -exec pyflakes3 {} + | grep -vE 'from star imports|unable to detect undefined names')
[ -z "$found" ] || { echo "$found"; exit 1; }
