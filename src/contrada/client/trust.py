"""Which certificates a client trusts: those it is given, of the environment, or known to all."""

import os
import ssl
from pathlib import Path
from typing import TypeAlias

from contrada.errors import InvalidInput
from contrada.showing import brief

Verify: TypeAlias = ssl.SSLContext | str | os.PathLike[str] | bool

_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR")  # in the order of httpx
_CAUSES_MAX = 20
_NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE")  # of OpenSSL before 3.2 and since


def read_trust(verify: Verify, *, is_secure: bool) -> ssl.SSLContext | bool:
    """Return what httpx is to verify with.

    A path is to a file of certificates, or a folder as OpenSSL has them. What the environment names
    counts also for a broker on loopback, whose clients take nothing else from there.
    """
    if isinstance(verify, str | os.PathLike):
        return _load(os.fspath(verify), "")
    if not isinstance(verify, bool | ssl.SSLContext):
        raise InvalidInput(f"verify takes a path, an ssl.SSLContext or False, not {brief(verify)}")
    if verify is not True:
        return verify
    if not is_secure:
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # for nobody, and nothing is read for it
    import httpx

    for name in _VARIABLES:
        if path := os.environ.get(name):
            return _load(path, f"{name}: ")
    return httpx.create_ssl_context(trust_env=False)


def _load(path: str, place: str) -> ssl.SSLContext:
    try:
        if Path(path).is_dir():
            return ssl.create_default_context(capath=path)
        return ssl.create_default_context(cafile=path)
    except (OSError, ValueError) as fault:
        reason = fault.strerror if isinstance(fault, OSError) and fault.strerror else fault
        raise InvalidInput(
            f"{place}{path}: no certificates to trust can be read: {reason}"
        ) from fault


def find_refusal(fault: BaseException) -> str | None:
    """Return what is wrong where it is a certificate that is not trusted, or no TLS at all."""
    cause: BaseException | None = fault
    for _ in range(_CAUSES_MAX):
        if cause is None or isinstance(cause, ssl.SSLError):
            break
        cause = cause.__cause__ or cause.__context__
    if isinstance(cause, ssl.SSLCertVerificationError):
        return (
            f"its certificate is not trusted here: {cause.verify_message or cause}; verify=… of a "
            "client, --cacert of contrada publish, or SSL_CERT_FILE names the certificates to trust"
        )
    if isinstance(cause, ssl.SSLError) and cause.reason in _NO_TLS:
        return "what answers there does not speak TLS; its address may begin with http://"
    return None
