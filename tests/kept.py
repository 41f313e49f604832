# SPDX-License-Identifier: Apache-2.0
"""Programs and environments that take long to make are kept between runs, in SPANPROF_TEST_CACHE."""
import fcntl, hashlib, os, pathlib, shutil

CACHE = pathlib.Path(os.environ.get("SPANPROF_TEST_CACHE")
                     or pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "spanprof-test")


def kept(name, sources, make, *also):
    """The path of a folder that MAKE(the folder) has filled from SOURCES. It is kept by the hash of these files and of the texts ALSO (a
    compiler's version, options). One process makes it, others wait."""
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
