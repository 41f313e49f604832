#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# build.sh OUT [FOLDER]: builds the module whose `config` is in FOLDER (default: this folder) for the nginx of this system, and installs it into the
# folder OUT. Needs Debian's nginx-dev, and spanprof, which pkg-config or SPANPROF_CFLAGS and SPANPROF_LIBS have to find.
set -euo pipefail
mkdir -p "${1:?usage: build.sh OUT [FOLDER]}"
out=$(cd "$1" && pwd)
folder=$(cd "${2:-$(dirname "$0")}" && pwd)
build=$(mktemp -d /tmp/spanprof-nginx-XXXXXXXX) # not in TMPDIR, which may be in ".cache": nginx takes a path with ".c" or ".S" for a source file
trap 'rm -rf "$build"' EXIT
cd /usr/share/nginx/src
# shellcheck source=/dev/null
source ./conf_flags # the options that nginx was built with, which modules have to match
./configure "${NGX_CONF_FLAGS[@]}" --with-cc-opt='-g -O2' --add-dynamic-module="$folder" --builddir="$build" >"$build/configure.log" 2>&1 ||
    { cat "$build/configure.log"; exit 1; }
make --silent -f "$build/Makefile" modules
install -m 644 "$build"/*.so "$out" # install makes a new file, because nginx may run with the old one
