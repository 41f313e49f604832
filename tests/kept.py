# SPDX-License-Identifier: Apache-2.0
"""Keeps programs and environments that take long to make between runs, in SPANPROF_TEST_CACHE."""
import fcntl, hashlib, os, pathlib, shutil

CACHE = pathlib.Path(os.environ.get("SPANPROF_TEST_CACHE")
                     or pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "spanprof-test")


def kept(name, sources, make, *also):
    """The path of a folder that MAKE(folder) has filled from the files SOURCES. The folder's name has the hash of these files and of the texts ALSO
    (such as a compiler's version, and options), so a changed source makes a new folder. One process makes the folder, and others wait for it."""
    text = b"".join(pathlib.Path(source).read_bytes() for source in sources) + "\0".join(also).encode()
    path = CACHE / f"{name}-{hashlib.sha256(text).hexdigest()[:16]}"
    if not (path / "whole").exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with open(CACHE / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (path / "whole").exists():
                print(f"building {path} (once)", flush=True)
                shutil.rmtree(path, ignore_errors=True)
                path.mkdir()
                make(path)
                (path / "whole").touch()
    return path
