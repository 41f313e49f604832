#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_install.sh cmake|pkgconfig BUILD COMPILER CXX_COMPILER LIBDIR [FLAG…]: install what is in BUILD into a temporary prefix, move that
# (an installed tree may be moved), and build and run the programs in consumer/, in C and C++, against the shared and the static library.
set -euo pipefail
way=$1 build=$2 compiler=$3 cxx_compiler=$4 libdir=$5
shift 5
flags=("$@")
here=$(cd "$(dirname "$0")" && pwd)

if [[ ! -w $build ]]; then
    echo "skipped: installing writes a list of files into $build, where $(id -un) may not write"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/first" >"$work/install.log" || { cat "$work/install.log"; exit 1; }
mv "$work/first" "$work/prefix"
lib=$work/prefix/$libdir

# A statically linked program has to show the thread record to outside readers; a shared one finds it in the library.
run() {
    local kind=$1 program=$2
    echo "$way, $kind:"
    LD_LIBRARY_PATH=$lib "$program"
    # grep reads all of it: without -q the program before it is not ended by SIGPIPE.
    case $kind in
    shared) readelf -d "$program" | grep 'NEEDED.*libspanprof.so.0' >/dev/null ;;
    static)
        ! readelf -d "$program" | grep 'NEEDED.*libspanprof' >/dev/null &&
            nm -D --defined-only "$program" | grep ' otel_thread_ctx_v1$' >/dev/null
        ;;
    esac || { echo "$program is not linked as it should be"; exit 1; }
}

build_with_cmake() {
    # Words of the flags are one argument of cmake on purpose.
    cmake -S "$here/consumer" -B "$work/out" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_C_COMPILER="$compiler" \
        -DCMAKE_CXX_COMPILER="$cxx_compiler" -DCMAKE_C_FLAGS="${flags[*]}" -DCMAKE_CXX_FLAGS="${flags[*]}" >"$work/log" 2>&1 &&
        cmake --build "$work/out" >>"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
    local program
    for program in consumer classes; do
        run shared "$work/out/${program}_shared"
        run static "$work/out/${program}_static"
    done
}

build_with_pkgconfig() {
    export PKG_CONFIG_PATH=$lib/pkgconfig
    local cflags libs static_libs
    read -ra cflags < <(pkg-config --cflags spanprof)
    read -ra libs < <(pkg-config --libs spanprof)
    read -ra static_libs < <(pkg-config --static --libs spanprof | sed 's/-lspanprof/-l:libspanprof.a/')
    "$compiler" -std=c11 "${flags[@]}" "${cflags[@]}" "$here/consumer/main.c" -o "$work/shared" "${libs[@]}"
    "$compiler" -std=c11 "${flags[@]}" "${cflags[@]}" "$here/consumer/main.c" -o "$work/static" "${static_libs[@]}"
    "$cxx_compiler" -std=c++17 "${flags[@]}" "${cflags[@]}" "$here/consumer/classes.cpp" -o "$work/classes" "${libs[@]}"
    run shared "$work/shared"
    run static "$work/static"
    run shared "$work/classes"
}

build_with_"$way"

# The command finds its library in the tree that was moved, and the library finds libspanprof.so beside itself.
if [[ -x $work/prefix/bin/spanprof ]]; then
    (cd "$work" && prefix/bin/spanprof run --quiet -o run -- true)
    grep '"true"' "$work/run.traces.jsonl" >/dev/null || { echo "spanprof run has recorded nothing"; exit 1; }
fi
