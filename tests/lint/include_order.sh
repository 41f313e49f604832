#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# include_order.sh SRC: a folder of SRC includes only itself and folders before it in the order of docs/design/words.md, in which
# who calls is below what it calls. Proves on a small tree of its own that it would see a violation.
set -euo pipefail

# proto is the generated code, which belongs to the wire formats and what comes after them.
order=(core context trace unwind cpu wall symbol profile proto wire export collect sdk outside tool/text tool/read tool/model tool/draw tool/check tool/command)

place_of() {
    local i
    for i in "${!order[@]}"; do
        if [[ ${order[i]} == "$1" ]]; then
            echo "$i"
            return
        fi
    done
    echo -1
}

# The folder of FILE; the tool's have an order of their own.
folder_of() {
    case $1 in
    tool/*/*) echo "${1%/*}" ;;
    *) echo "${1%%/*}" ;;
    esac
}

# Prints a line for each include that goes down the list, and for folders that the list does not know.
violations() {
    local src=$1 file number line folder target included
    while IFS=: read -r file number line; do
        folder=$(folder_of "${file#"$src"/}")
        target=$(sed -E 's/^[^"<]*["<]([^">]*)[">].*/\1/' <<<"$line")
        # A name without a folder is beside the file that includes it; spanprof/ is the public contract.
        if [[ $target == ../* ]]; then
            echo "$file:$number: includes \"$target\": name it by its folder"
            continue
        fi
        [[ $target == */* && $target != spanprof/* ]] || continue
        included=$(folder_of "$target")
        if [[ $(place_of "$folder") == -1 ]]; then
            echo "$file:$number: the folder $folder has no place in the order"
        elif [[ $(place_of "$included") == -1 ]]; then
            echo "$file:$number: includes \"$target\", whose folder has no place in the order"
        elif (($(place_of "$included") > $(place_of "$folder"))); then
            echo "$file:$number: $folder includes \"$target\", which comes after it"
        fi
    done < <(grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' --include='*.[ch]' "$src" || true)
}

expect() {
    local tree=$1 pattern=$2 found
    found=$(violations "$tree")
    if [[ -z $pattern && -n $found ]] || ! grep -q -- "$pattern" <<<"$found"; then
        echo "self-check: expected '$pattern', found '$found'" >&2
        exit 1
    fi
}

self_check() {
    local tree
    tree=$(mktemp -d)
    # shellcheck disable=SC2064  # the directory of now is meant
    trap "rm -rf '$tree'" EXIT
    mkdir "$tree"/core "$tree"/sdk
    printf '#include "core/a.h"\n#include "b.h"\n#include <sys/types.h>\n' >"$tree/sdk/good.c"
    expect "$tree" ''
    printf '#include <stdio.h>\n#  include "sdk/x.h"\n' >"$tree/core/bad.c"
    expect "$tree" 'core/bad.c:2: core includes "sdk/x.h"'
    printf '#include "elsewhere/x.h"\n' >"$tree/core/bad.c"
    expect "$tree" 'whose folder has no place'
    printf '#include "../sdk/x.h"\n' >"$tree/core/bad.c"
    expect "$tree" 'name it by its folder'
}

src=$1
self_check
found=$(violations "$src")
if [[ -n $found ]]; then
    printf '%s\n' "$found"
    exit 1
fi
count=$(find "$src" -name '*.[ch]' | wc -l)
((count > 0)) || { echo "no sources in $src" >&2; exit 1; }
echo "$count files include in order"
