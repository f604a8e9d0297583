"""A throw-away certificate for a server on the loopback interface."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple

from .errors import ServerFailed
from .programs import openssl_program

_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
_DAYS = ("-days", "2")

# Python checks these strictly from 3.13 on.
_EXTENSIONS = """
[request]
distinguished_name = name
[name]
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[server]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
subjectAltName = IP:127.0.0.1, DNS:localhost
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
"""


class Certificate(NamedTuple):
    """The files of a server's certificate and of the authority that has signed it."""

    authority: Path
    certificate: Path
    key: Path


def make_certificate(directory: Path) -> Certificate:
    """Make an authority and let it sign a certificate for 127.0.0.1 and localhost."""
    made = Certificate(directory / "ca.crt", directory / "server.crt", directory / "server.key")
    settings = directory / "openssl.cnf"
    settings.write_text(_EXTENSIONS)
    config = ("-config", settings.name)
    authority = ("-keyout", "ca.key", "-out", made.authority.name, "-subj", "/CN=holdfast test CA")
    own = ("-keyout", made.key.name, "-out", "server.csr", "-subj", "/CN=127.0.0.1")
    signed = ("-in", "server.csr", "-out", made.certificate.name, *_DAYS)
    signer = ("-CA", made.authority.name, "-CAkey", "ca.key", "-CAcreateserial")
    extensions = ("-extfile", settings.name, "-extensions", "server")
    _openssl(
        directory,
        "req",
        "-x509",
        *_NEW_KEY,
        *_DAYS,
        *authority,
        *config,
        "-extensions",
        "authority",
    )
    _openssl(directory, "req", "-new", *_NEW_KEY, *own, *config)
    _openssl(directory, "x509", "-req", *signed, *signer, *extensions)
    return made


def _openssl(directory: Path, *arguments: str) -> None:
    command = [openssl_program(), *arguments]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True)
    if done.returncode:
        raise ServerFailed(f"openssl {arguments[0]} failed: {done.stderr.strip()}")
