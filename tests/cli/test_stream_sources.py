"""Options of Kafka's clients, from the command line and from a file; no error shows a value."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

import pytest

from contrada.cli import main
from contrada.cli.stream_sources import read_kafka_options
from contrada.errors import InvalidInput

if TYPE_CHECKING:
    from pathlib import Path

TOPIC = "kafka://host:9092/topic"


def read(
    *kafka: str, file: Path | None = None, events: str = "in", to: str = TOPIC
) -> dict[str, str]:
    path = None if file is None else str(file)
    return read_kafka_options(Namespace(kafka=kafka, kafka_file=path, events=events, to=to))


def test_options_get_the_prefix_and_go_before_those_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(
        "# who we are\n! and more\n\nsecurity.protocol = SASL_SSL\nkafka.linger.ms=5\n"
        'sasl.jaas.config=Module required \\\n    username="u" \\\n    password="p=#";\n'
    )
    assert read("linger.ms=9", "sasl.mechanism=PLAIN", file=file) == {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.linger.ms": "9",
        "kafka.sasl.jaas.config": 'Module required username="u" password="p=#";',
        "kafka.sasl.mechanism": "PLAIN",
    }


@pytest.mark.parametrize("places", [{"events": TOPIC, "to": "out"}, {"events": "in", "to": TOPIC}])
def test_options_are_for_topics_on_either_side(places: dict[str, Any]) -> None:
    assert read("linger.ms=1", **places) == {"kafka.linger.ms": "1"}
    assert read(events="in", to="out") == {}
    with pytest.raises(InvalidInput, match="--kafka and --kafka-file are for events from or"):
        read("linger.ms=1", events="in", to="out")


@pytest.mark.parametrize("setting", ["sasl.password:hush", "hush", "=hush"])
def test_what_is_not_an_option_is_not_shown(setting: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="must be KEY=VALUE; number 2 is not") as refused:
        read("linger.ms=1", setting)
    assert "hush" not in str(refused.value)
    file = tmp_path / "client.properties"
    file.write_text(f"linger.ms=1\n{setting}\n")
    with pytest.raises(InvalidInput, match=r"client.properties, line 2: must be") as refused:
        read(file=file)
    assert "hush" not in str(refused.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"--kafka-file .*none: No such file"):
        read(file=tmp_path / "none")
    (tmp_path / "bytes").write_bytes(b"sasl.password=\xff")
    with pytest.raises(InvalidInput, match=r"--kafka-file .*bytes: is not UTF-8"):
        read(file=tmp_path / "bytes")


@pytest.mark.parametrize("option", ["events", "to"])
@pytest.mark.parametrize("uri", ["kafka://me:hush@host/topic", "kafka://host/topic?password=hush"])
def test_a_password_in_a_topic_is_refused_before_anything_is_written(
    option: str, uri: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    offsets = tmp_path / "state" / "checkpoint" / "offsets"
    offsets.mkdir(parents=True)
    (offsets / "0").touch()
    stated = '{"format": 1, "events": "elsewhere", "to": "elsewhere"}'  # which would be compared
    (tmp_path / "state" / "stream.json").write_text(stated)
    places = {"subscriptions": "fences.csv", "events": "in", "to": "out", option: uri}
    words = [word for name, place in places.items() for word in (f"--{name}", place)]
    for state in ("state", "new"):
        assert main(["stream", *words, "--state", str(tmp_path / state)]) == 2
        told = capsys.readouterr().err
        assert f"--{option}: " in told
        assert "hush" not in told
    assert (tmp_path / "state" / "stream.json").read_text() == stated
    assert not (tmp_path / "new").exists()
