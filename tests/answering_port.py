"""A port at which somebody says the same to every caller, or nothing."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread

LOOPBACK = "127.0.0.1"
SPARK_ANSWER = bytes([0, 0, 0, 0, 0, 0, 0, 9, 8])  # a message of Spark's without a body


@contextmanager
def answering(answer: bytes | None) -> Iterator[int]:
    """Answer the first words of each caller and hang up; or keep the line, with None."""
    is_over = Event()
    links: list[socket.socket] = []

    def answer_all() -> None:
        while not is_over.is_set():
            links.append(server.accept()[0])
            if answer is not None:
                with links.pop() as link, suppress(ConnectionError):
                    link.recv(1000)
                    link.sendall(answer)

    with socket.create_server((LOOPBACK, 0)) as server:
        thread = Thread(target=answer_all, daemon=True)
        thread.start()
        port: int = server.getsockname()[1]
        try:
            yield port
        finally:
            is_over.set()
            socket.create_connection((LOOPBACK, port)).close()
            thread.join()
            for link in links:
                link.close()
