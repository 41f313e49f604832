# SPDX-License-Identifier: Apache-2.0
"""Makes keys and certificates for tests of TLS by openssl: of a CA, of a server at 127.0.0.1, and of a client."""
import subprocess


def openssl(folder, *arguments):
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


def make_certificate(folder, name, extension, days=1):
    """Makes NAME.key and NAME.pem in FOLDER, signed by the CA in FOLDER."""
    (folder / "extensions").write_text(f"{extension}\n")
    openssl(folder, "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.csr",
            "-subj", f"/CN=spanprof test {name}")
    openssl(folder, "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", str(days),
            "-extfile", "extensions", "-out", f"{name}.pem")


def make_keys(folder):
    openssl(folder, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "ca.key", "-out", "ca.pem",
            "-days", "1", "-subj", "/CN=spanprof test CA")
    make_certificate(folder, "server", "subjectAltName=IP:127.0.0.1")
    make_certificate(folder, "client", "extendedKeyUsage=clientAuth")
