#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# otlp_decode_venv.sh VENV SCRIPT [ARGUMENT...]: run SCRIPT with the Python of VENV, which is made first when it is missing or
# requirements.txt has changed since. Exits 77 when the package registry does not answer.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
venv=$1
shift

# Several tests may come here at once; the first one installs.
mkdir -p "$(dirname "$venv")"
exec 9>"$venv.lock"
flock 9
if ! cmp -s "$here/requirements.txt" "$venv/installed.txt"; then
    echo "otlp_decode: installing tests/peer/requirements.txt into $venv (once)"
    rm -rf "$venv"
    python3 -m venv "$venv"
    if ! "$venv/bin/pip" install --disable-pip-version-check --no-input --retries 2 --timeout 20 --quiet \
            -r "$here/requirements.txt" >"$venv.log" 2>&1; then
        cat "$venv.log"
        if grep -qE 'connection broken|Max retries|timed out|name resolution|ProxyError' "$venv.log"; then
            echo "skipped: the Python package registry does not answer, so there is no peer to compare with"
            exit 77
        fi
        exit 1
    fi
    cp "$here/requirements.txt" "$venv/installed.txt"
fi
flock -u 9
exec 9>&-
exec "$venv/bin/python" "$@"
