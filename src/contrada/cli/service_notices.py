"""What systemd is told: that a service is ready, or that it stops. Elsewhere nobody is told."""

import os
import socket
import sys
from contextlib import suppress


def notify(state: str) -> None:
    """Send a state, such as READY=1, to whom NOTIFY_SOCKET names; nobody waits for an answer."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if sys.platform == "win32" or not address.startswith(("/", "@")):
        return
    place = f"\0{address[1:]}" if address.startswith("@") else address
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(state.encode(), place)
