"""TLS: the context of a certificate and its key, which may be read again while connections last."""

import ssl
from pathlib import Path

from contrada.errors import InvalidInput, blame


class Certificate:
    """A certificate in a file; handshakes use what was read last, whoever is connected stays."""

    def __init__(self, certificate: Path, key: Path) -> None:
        """Read it; TLS 1.2 is the oldest that is spoken."""
        self.context = _read(certificate, key)

    def read_again(self, certificate: Path, key: Path) -> None:
        """Read it anew; what cannot be used is refused, and the one before stays."""
        _read(certificate, key)
        self.context.load_cert_chain(certificate, key, _refuse_password)


def _read(certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["http/1.1"])
    places = f"{certificate} with {key}"
    try:
        context.load_cert_chain(certificate, key, _refuse_password)
    except ssl.SSLError as fault:  # which is an OSError, too
        reason = (fault.reason or str(fault)).replace("_", " ").lower()
        words = f"{places}: this is not a certificate in PEM with its key: {reason}"
        raise InvalidInput(words) from fault
    except OSError as fault:
        raise blame(fault, f"{places}: cannot be read: {fault.strerror or fault}") from fault
    return context


def _refuse_password() -> str:
    """Decline to ask a terminal for the password of a key: nobody sits there."""
    raise InvalidInput("the key of the certificate has a password; store it without one")
