"""Certificates for tests, made by openssl on the spot."""

import shutil
import subprocess
from pathlib import Path

import pytest

OPENSSL = shutil.which("openssl")
needs_openssl = pytest.mark.skipif(OPENSSL is None, reason="openssl is not on this machine")


def make_certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """Make a certificate for 127.0.0.1 by a name, with its key, anew at every call."""
    folder.mkdir(exist_ok=True)
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
    words += f" -subj /CN={name} -addext subjectAltName=IP:127.0.0.1"
    words += f" -keyout {key} -out {certificate}"
    assert OPENSSL is not None
    subprocess.run([OPENSSL, *words.split()], check=True, capture_output=True)
    return certificate, key
