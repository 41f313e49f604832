#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# build.sh OUT [FOLDER]: builds the module whose `config` is in FOLDER (this one) for the nginx of this system, into the folder OUT, where
# nothing else is left. Needs Debian's nginx-dev, and spanprof as pkg-config or SPANPROF_CFLAGS and SPANPROF_LIBS know it.
set -euo pipefail
mkdir -p "${1:?usage: build.sh OUT [FOLDER]}"
out=$(cd "$1" && pwd)
folder=$(cd "${2:-$(dirname "$0")}" && pwd)
build=$(mktemp -d /tmp/spanprof-nginx-XXXXXXXX) # to nginx a path with ".c" or ".S" in it is a source file: TMPDIR may be in ".cache"
trap 'rm -rf "$build"' EXIT
cd /usr/share/nginx/src
# shellcheck source=/dev/null
source ./conf_flags # how nginx was built: modules have to fit
./configure "${NGX_CONF_FLAGS[@]}" --with-cc-opt='-g -O2' --add-dynamic-module="$folder" --builddir="$build" >"$build/configure.log" 2>&1 ||
    { cat "$build/configure.log"; exit 1; }
make --silent -f "$build/Makefile" modules
install -m 644 "$build"/*.so "$out" # a new file: nginx may run with the old one
