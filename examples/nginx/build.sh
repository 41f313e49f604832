#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# build.sh OUT [FOLDER]: builds the module whose `config` is in FOLDER (this one) for the nginx of this system, into the folder OUT. Needs
# Debian's nginx-dev, and spanprof as pkg-config or SPANPROF_CFLAGS and SPANPROF_LIBS know it.
set -euo pipefail
mkdir -p "${1:?usage: build.sh OUT [FOLDER]}"
out=$(cd "$1" && pwd)
folder=$(cd "${2:-$(dirname "$0")}" && pwd)
cd /usr/share/nginx/src
# shellcheck source=/dev/null
source ./conf_flags # how nginx was built: modules have to fit
./configure "${NGX_CONF_FLAGS[@]}" --with-cc-opt='-g -O2' --add-dynamic-module="$folder" --builddir="$out" >"$out/configure.log" 2>&1 ||
    { cat "$out/configure.log"; exit 1; }
make --silent -f "$out/Makefile" modules
