# SPDX-License-Identifier: MIT
"""Certificates by openssl: one CA, and what it signs."""

import os
import subprocess


def _openssl(*args, **kw):
    return subprocess.run(["openssl", *args], check=True, capture_output=True, **kw)


class Authority:
    """A CA whose files lie in DIRECTORY: ca.crt, ca.key, and NAME.crt and NAME.key of each certificate."""

    def __init__(self, directory):
        self.dir = directory
        os.makedirs(directory, mode=0o700, exist_ok=True)
        self.ca = self.path("ca.crt")
        _openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
                 "-keyout", self.path("ca.key"), "-out", self.ca, "-subj", "/CN=tec-test-nodes CA",
                 "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign,cRLSign")

    def path(self, name):
        return os.path.join(self.dir, name)

    def issue(self, name, subject, names=()):
        """(certificate file, key file). NAMES: as in a subjectAltName, "IP:10.0.0.1"."""
        crt, key, csr, ext = (self.path(f"{name}.{end}") for end in ("crt", "key", "csr", "ext"))
        with open(ext, "w", encoding="ascii") as f:
            f.write("basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\n"
                    "extendedKeyUsage=serverAuth,clientAuth\n")
            if names:
                f.write(f"subjectAltName={','.join(names)}\n")
        _openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", csr,
                 "-subj", subject)
        _openssl("x509", "-req", "-in", csr, "-CA", self.ca, "-CAkey", self.path("ca.key"), "-CAcreateserial",
                 "-out", crt, "-days", "30", "-extfile", ext)
        return crt, key
