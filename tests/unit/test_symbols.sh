#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_symbols.sh COMPILER INCLUDE LIBRARY: the shared LIBRARY exports exactly these symbols: those that the headers in INCLUDE mark SPANPROF_API, the
# thread record, which outside readers find by its name, and those that libspanprof-run.so uses.
set -euo pipefail
export LC_ALL=C
compiler=$1 include=$2 library=$3

# Preprocesses the headers and puts each declaration on one line. A declaration begins with the mark, and the name is before the first parenthesis.
declared() {
    local header
    for header in "$include"/spanprof/*.h; do
        "$compiler" -E -P -I"$include" "$header"
    done | tr '\n' ' ' | tr ';{}' '\n\n\n' |
        sed -nE 's/.*__attribute__ ?\(\(visibility\("default"\)\)\)[^(]*[ *]([A-Za-z_][A-Za-z0-9_]*) ?\(.*/\1/p'
    printf '%s\n' otel_thread_ctx_v1 sp_host_sigaction sp_host_sigaction_begin sp_host_tick_signal sp_env sp_env_keep sp_file_own_prefix
}

visible() {
    nm -D --defined-only "$library" | awk '{ print $3 }' | sed 's/@.*//'
}

want=$(declared | sort -u)
have=$(visible | sort -u)
[[ $(wc -l <<<"$want") -gt 20 ]] || { echo "found only: $want; can the headers still be read?" >&2; exit 1; }
if ! diff <(echo "$want") <(echo "$have") >/dev/null; then
    echo "declared, but not in $library:" && comm -23 <(echo "$want") <(echo "$have")
    echo "visible, but not declared:" && comm -13 <(echo "$want") <(echo "$have")
    exit 1
fi
echo "$(wc -l <<<"$have") symbols, all declared"
