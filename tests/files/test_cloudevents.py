"""CloudEvents come and go in structured mode, come in binary mode, and lie about nothing."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.errors import InvalidInput
from contrada.files.cloudevents import (
    CloudEvent,
    frame_texts,
    is_structured,
    read_binary,
    read_structured,
    write_structured,
)
from contrada.limits import MESSAGE_BYTES_MAX, MESSAGE_DEPTH_MAX

NAMES = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}


def dump(**members: Any) -> bytes:
    return json.dumps({**NAMES, **members}).encode()


def test_a_structured_event_has_its_names_data_and_other_attributes() -> None:
    event = read_structured(
        dump(data={"wind": 12}, subject="van", count=3, urgent=True, trace=None)
    )
    assert event == CloudEvent(
        "1", "/s", "t", {"wind": 12}, {"subject": "van", "count": 3, "urgent": True}
    )


def test_data_in_base64_is_json_if_its_type_is_and_else_bytes() -> None:
    encoded = base64.b64encode(b'{"wind": 12}').decode()
    assert read_structured(dump(data_base64=encoded)).data == {"wind": 12}
    geojson = dump(data_base64=encoded, datacontenttype="application/geo+json; charset=UTF-8")
    assert read_structured(geojson).data == {"wind": 12}
    assert read_structured(dump(data_base64="AAE=", datacontenttype="image/png")).data == b"\0\1"


def test_in_binary_mode_the_body_is_the_data() -> None:
    others = {**NAMES, "subject": "van"}
    event = read_binary(others, "application/geo+json", b'{"wind": 12}')
    assert event.data == {"wind": 12}
    assert event.others == {"subject": "van", "datacontenttype": "application/geo+json"}
    assert read_binary(NAMES, "text/plain", b"hello").data == b"hello"
    assert read_binary(NAMES, None, b"[1]").data == [1]
    assert read_binary(NAMES, None, None).data is None


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [
        ("application/cloudevents+json", True),
        ("application/CloudEvents+JSON; charset=UTF-8", True),
        ("application/cloudevents-batch+json", False),
        ("application/json", False),
        (None, False),
    ],
)
def test_the_type_of_a_message_tells_the_mode(content_type: str | None, expected: bool) -> None:
    assert is_structured(content_type) is expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"[1]", "a CloudEvent is a JSON object, not [1]"),
        (dump(specversion="0.3"), '"specversion" is \'0.3\': only "1.0" is read'),
        (b"{}", '"specversion" is None'),
        (dump(id=""), "\"id\" of a CloudEvent is a text that is not empty: ''"),
        (dump(id=7), '"id" of a CloudEvent is a text that is not empty: 7'),
        (dump(source=None), '"source" of a CloudEvent'),
        (dump(type="\ud800"), '"type" of a CloudEvent'),
        (dump(data=1, data_base64="AAE="), '"data" and "data_base64" are both there'),
        (dump(data_base64="???"), "\"data_base64\" is not base64: '???'"),
        (dump(data_base64=7), '"data_base64" is not base64: 7'),
        (dump(trace=[1]), "attribute 'trace' of a CloudEvent is a text"),
        (dump(trace="\ud800"), "attribute 'trace' of a CloudEvent is a text"),
        (b'{"id": nothing}', "not JSON at line 1, column 8: Expecting value, near 'nothing}'"),
        (b'{"id": "\xff"}', "not UTF-8 at byte 8"),
        (b"", "not JSON at line 1, column 1: Expecting value"),
        (b'{"n": ' + b"9" * 5_000 + b"}", "more than 4,300 digits (DIGITS_MAX)"),
        (b'{"data_base64": "YQ==", "specversion": "1.0"}', '"id" of a CloudEvent'),
    ],
)
def test_what_is_not_a_cloud_event_is_refused_with_its_place(text: bytes, message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_structured(text)
    assert message in str(refused.value)


def test_damaged_data_in_base64_is_refused_as_if_it_were_the_message() -> None:
    with pytest.raises(InvalidInput, match="not JSON at line 1, column 1"):
        read_structured(dump(data_base64=base64.b64encode(b"?").decode()))


def test_a_message_beyond_the_limits_is_refused_by_their_name() -> None:
    with pytest.raises(InvalidInput, match=r"longer than 16,777,216 \(MESSAGE_BYTES_MAX\)"):
        read_structured(b" " * (MESSAGE_BYTES_MAX + 1))
    nested = "[" * (MESSAGE_DEPTH_MAX - 1) + "]" * (MESSAGE_DEPTH_MAX - 1)
    assert read_structured(dump(data=json.loads(nested))).data
    for depth in (MESSAGE_DEPTH_MAX, 100_000):
        deeper = dump(data=0).replace(b'"data": 0', b'"data": ' + b"[" * depth + b"]" * depth)
        with pytest.raises(InvalidInput, match=r"nested deeper than 216 \(MESSAGE_DEPTH_MAX\)"):
            read_structured(deeper)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inside: st.lists(inside) | st.dictionaries(st.text("aé\"\\\n"), inside),
    max_leaves=8,
)  # fmt: skip
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@given(
    TEXT, TEXT, TEXT, JSON, st.dictionaries(st.from_regex("[a-z0-9]{1,20}", fullmatch=True), TEXT)
)
def test_what_is_written_is_read_again(
    id: str, source: str, type: str, data: Any, others: dict[str, str]
) -> None:
    for name in ("specversion", "id", "source", "type", "data"):
        others.pop(name, None)
    event = CloudEvent(id, source, type, data, others)
    assert read_structured(write_structured(event)) == event


def test_bytes_are_written_in_base64() -> None:
    event = CloudEvent("1", "/s", "t", b"\0\1", {"datacontenttype": "application/octet-stream"})
    assert read_structured(write_structured(event)) == event


@given(TEXT, TEXT, TEXT, JSON)
def test_the_frame_makes_the_same_event(id: str, source: str, type: str, data: Any) -> None:
    before, between, after = frame_texts(source, type)
    text = f"{before}{json.dumps(id)}{between}{json.dumps(data)}{after}"
    others = {"datacontenttype": "application/json"}
    assert read_structured(text.encode()) == CloudEvent(id, source, type, data, others)


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (CloudEvent("", "/s", "t"), '"id" of a CloudEvent'),
        (CloudEvent("1", "/s", "t", others={"Subject": "x"}), "an attribute 'Subject'"),
        (CloudEvent("1", "/s", "t", others={"id": "x"}), "an attribute 'id'"),
        (CloudEvent("1", "/s", "t", {"wind": float("nan")}), "cannot be written as JSON"),
        (CloudEvent("1", "/s", "t", {"wind": object()}), "cannot be written as JSON"),
    ],
)
def test_what_would_not_be_a_cloud_event_is_not_written(event: CloudEvent, message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        write_structured(event)
    assert message in str(refused.value)
