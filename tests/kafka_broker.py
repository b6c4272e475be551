"""A real Kafka broker on loopback, from what `make kafka` has fetched; it dies with its starter."""

import os
import secrets
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from types import TracebackType
from typing import Self

from contrada.spark import java
from contrada.spark.kafka_jars import BROKER, find_connector

LOOPBACK = "127.0.0.1"
PARTITIONS = 2
MESSAGE_BYTES_MAX = 20 * 2**20
USER, PASSWORD = "watch", "open-sesame-7731"
_LOGIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"

_READY_S = 60.0
_READY = "Kafka Server started"
# The kernel ends the broker when this process is gone, however that ends.
_DIE_TOGETHER = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
os.execv(sys.argv[1], sys.argv[1:])
"""
_PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller}
listeners=PLAINTEXT://{host}:{broker},SASL_PLAINTEXT://{host}:{guarded},CONTROLLER://{host}:{controller}
advertised.listeners=PLAINTEXT://{host}:{broker},SASL_PLAINTEXT://{host}:{guarded}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.sasl_plaintext.plain.sasl.jaas.config={module} required user_{user}="{password}";
controller.listener.names=CONTROLLER
log.dirs={folder}/data
num.partitions={partitions}
log.index.size.max.bytes=1048576
message.max.bytes={bytes_max}
replica.fetch.max.bytes={bytes_max}
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=500
"""
_LOGGING = """
rootLogger.level=warn
rootLogger.appenderRefs=console
rootLogger.appenderRef.console.ref=console
appender.console.type=Console
appender.console.name=console
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=%m%n
logger.ready.name=kafka.server.KafkaRaftServer
logger.ready.level=info
"""


def missing_for_kafka() -> str | None:
    """Say in one line what is missing for tests with Kafka; None where all is there."""
    if not any(BROKER.glob("*.jar")):
        return "there is no Kafka broker: make kafka"
    return None if find_connector() else "there is no connector of Spark's for Kafka: make kafka"


class KafkaBroker:
    """A broker with its data in a folder: stopped and started again, it has what it had.

    As a context manager it is started, and stopped whatever happens. Topics appear when something
    is written to them, with two partitions.
    """

    def __init__(self, folder: Path) -> None:
        """Prepare the folder; nothing runs yet."""
        self._folder = folder
        self._java = java.find().program
        self._port, self._guarded, controller = _find_ports(3)
        self._process: subprocess.Popen[str] | None = None
        (folder / "server.properties").write_text(
            _PROPERTIES.format(
                host=LOOPBACK,
                broker=self._port,
                guarded=self._guarded,
                controller=controller,
                module=_LOGIN_MODULE,
                user=USER,
                password=PASSWORD,
                folder=folder,
                partitions=PARTITIONS,
                bytes_max=MESSAGE_BYTES_MAX,
            )
        )
        (folder / "log4j2.properties").write_text(_LOGGING)

    @property
    def address(self) -> str:
        """The host and port of the broker."""
        return f"{LOOPBACK}:{self._port}"

    def uri(self, topic: str) -> str:
        """The URI of a topic."""
        return f"kafka://{self.address}/{topic}"

    def guarded_uri(self, topic: str) -> str:
        """The URI of a topic where one must log in."""
        return f"kafka://{LOOPBACK}:{self._guarded}/{topic}"

    def start(self) -> None:
        """Start the broker, and wait until it takes messages."""
        if not (self._folder / "data").exists():
            self._format()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _DIE_TOGETHER, *self._command("kafka.Kafka")],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        said: SimpleQueue[str] = SimpleQueue()
        Thread(target=_listen, args=(self._process, said), daemon=True).start()
        lines: list[str] = []
        try:
            while _READY not in (line := said.get(timeout=_READY_S)):
                lines.append(line)
                assert line, "the broker has ended: " + "".join(lines[-20:])
        except (Empty, AssertionError):
            self.kill()
            raise

    def kill(self) -> None:
        """End the broker at once, as a power cut would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    def _format(self) -> None:
        """Make the folder of the data, which a broker does not do itself."""
        data = self._folder / "data"
        data.mkdir()
        cluster, directory = secrets.token_urlsafe(16), secrets.token_urlsafe(16)
        (data / "meta.properties").write_text(
            f"version=1\ncluster.id={cluster}\nnode.id=1\ndirectory.id={directory}\n"
        )

    def _command(self, program: str) -> list[str]:
        return [
            str(self._java),
            "-Xmx256m",
            "-XX:TieredStopAtLevel=1",
            "-cp",
            f"{BROKER}{os.sep}*",
            f"-Dlog4j2.configurationFile={self._folder}/log4j2.properties",
            program,
            f"{self._folder}/server.properties",
        ]


def log_in(password: str = PASSWORD) -> dict[str, str]:
    """The options of a client that logs in."""
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{_LOGIN_MODULE} required username="{USER}" password="{password}";',
    }


def _find_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        servers = [socket.create_server((LOOPBACK, 0)) for _ in range(count)]
        for server in servers:
            stack.enter_context(server)
        return [server.getsockname()[1] for server in servers]


def _listen(process: "subprocess.Popen[str]", said: "SimpleQueue[str]") -> None:
    """Pass on what the broker says, and at its end an empty line; it never has to wait for us."""
    assert process.stdout is not None
    with process.stdout as lines:
        for line in lines:
            said.put(line)
    said.put("")
