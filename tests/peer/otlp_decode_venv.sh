#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# otlp_decode_venv.sh SCRIPT [ARGUMENT...]: run SCRIPT with the Python of an environment that has requirements.txt. It is made once and kept
# in SPANPROF_TEST_CACHE. Exits 77 when the package registry does not answer.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cache=${SPANPROF_TEST_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/spanprof-test}
version=$({ cat "$here/requirements.txt"; python3 --version; } | sha256sum | cut -c1-16)
venv=$cache/peer-python-$version

# Several tests may come here at once; the first one installs.
mkdir -p "$cache"
exec 9>"$cache/peer-python.lock"
flock 9
if ! [ -e "$venv/whole" ]; then
    echo "otlp_decode: installing tests/peer/requirements.txt into $venv (once)"
    rm -rf "$venv"
    python3 -m venv "$venv"
    if ! "$venv/bin/pip" install --disable-pip-version-check --no-input --retries 2 --timeout 20 --quiet \
            -r "$here/requirements.txt" >"$venv.log" 2>&1; then
        cat "$venv.log"
        if grep -qE 'connection broken|Max retries|timed out|name resolution|ProxyError' "$venv.log"; then
            echo "SKIPPED: the Python package registry does not answer, so there is no peer to compare with"
            exit 77
        fi
        exit 1
    fi
    touch "$venv/whole"
fi
flock -u 9
exec 9>&-
exec "$venv/bin/python" "$@"
