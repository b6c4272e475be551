"""Topics of Kafka as URIs: `kafka://host:port,host:port/topic`, and nothing secret in them."""

import re
from dataclasses import dataclass

from contrada.errors import InvalidInput
from contrada.showing import brief

SCHEME = "kafka://"

_PORT = 9092
_PORT_MAX = 65_535
_HOST = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[\w.-]+)(?::(?P<port>\d{1,5}))?", re.ASCII)
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


@dataclass(frozen=True, slots=True)
class KafkaTopic:
    """A topic, and some servers that know where its partitions are."""

    servers: tuple[str, ...]
    topic: str

    def __str__(self) -> str:
        return f"{SCHEME}{','.join(self.servers)}/{self.topic}"

    def sibling(self, topic: str) -> "KafkaTopic":
        """Return another topic of the same servers."""
        return KafkaTopic(self.servers, read_topic(topic))


def is_kafka_uri(text: object) -> bool:
    """Whether something is meant as a topic of Kafka, right or wrong."""
    return isinstance(text, str) and text.lower().startswith(SCHEME)


def read_kafka_uri(uri: str) -> KafkaTopic:
    """Read a URI; who may read the topic is not in it, but in options."""
    if not is_kafka_uri(uri):
        raise InvalidInput(f"{brief(uri)} is not a topic of Kafka: {SCHEME}host:port/topic")
    servers, slash, topic = uri[len(SCHEME) :].partition("/")
    if "@" in uri:
        raise InvalidInput(
            "a Kafka URI has no user and no password: they are options, such as "
            "kafka.security.protocol and kafka.sasl.jaas.config"
        )
    plain = re.split("[?#]", uri, maxsplit=1)[0]
    if plain != uri:  # by what follows, some log in
        raise InvalidInput(
            f"{brief(plain)}: a Kafka URI has no '?' and no '#'; what follows is not shown, since "
            "it may be secret: give options by name"
        )
    if not slash or not topic:
        raise InvalidInput(f"{brief(uri)} names no topic: {SCHEME}host:port/topic")
    try:
        return KafkaTopic(tuple(map(_read_server, servers.split(","))), read_topic(topic))
    except InvalidInput as fault:
        raise fault.within(brief(uri)) from None


def read_topic(name: str) -> str:
    """Check the name of a topic, as a broker does."""
    if not isinstance(name, str) or not _TOPIC.fullmatch(name) or name in {".", ".."}:
        raise InvalidInput(
            f"{brief(name)} is not the name of a topic: at most 249 letters, digits, '.', '_', '-'"
        )
    return name


def _read_server(text: str) -> str:
    found = _HOST.fullmatch(text)
    port = int(found["port"] or _PORT) if found else 0
    if found is None or not 0 < port <= _PORT_MAX:
        raise InvalidInput(f"{brief(text)} is not a server: host:port")
    return f"{found['host']}:{port}"
