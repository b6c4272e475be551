"""Settings: flags over environment over file over defaults, each with its source."""

import tomllib
from pathlib import Path

import pytest

from contrada.errors import InvalidInput, Unavailable
from contrada.server.settings import read_settings


def write_config(folder: Path, text: str) -> str:
    path = folder / "contrada.toml"
    path.write_text(text)
    return str(path)


def test_a_flag_beats_the_environment_which_beats_the_file(tmp_path: Path) -> None:
    config = write_config(tmp_path, 'port = 1\nhost = "::1"\ndata = "there"\nlog = "all"')
    variables = {"CONTRADA_PORT": "2", "CONTRADA_HOST": "localhost", "PORT": "9"}
    found = read_settings({"port": "3", "host": None}, config, environment=variables)
    assert (found.port, found.host, found.data) == (3, "localhost", Path("there"))
    names = ("port", "host", "data", "allow_host")
    assert [found.sources[name] for name in names] == ["--port", "CONTRADA_HOST", config, "default"]


def test_limits_of_all_parts_are_set_by_name(tmp_path: Path) -> None:
    config = write_config(tmp_path, "retention_age_s = 60\nconnections_max = 7")
    variables = {"CONTRADA_BODY_BYTES_MAX": "1024"}
    found = read_settings({}, config, ["connections_max=8"], variables)
    assert found.broker.retention_age_s == 60
    assert found.server.body_bytes_max == 1024
    assert found.guard.connections_max == 8


def test_several_values_are_a_list_or_have_commas(tmp_path: Path) -> None:
    config = write_config(tmp_path, 'allow_host = ["a.example", "b.example"]')
    variables = {"CONTRADA_ALLOW_ORIGIN": "https://a.example, https://b.example"}
    found = read_settings({}, config, environment=variables)
    assert found.allow_host == ("a.example", "b.example")
    assert found.allow_origin == ("https://a.example", "https://b.example")


def test_what_is_described_is_a_file_that_says_the_same(tmp_path: Path) -> None:
    flags = {"allow_host": ["a.example"], "data": 'with "quotes"'}
    first = read_settings(flags, more=["retention_age_s=0.5"], environment={})
    assert "port = 8080  # default" in first.describe()
    assert 'allow_host = ["a.example"]  # --allow-host' in first.describe()
    config = write_config(tmp_path, "\n".join(first.describe()))
    assert "retention_age_s = 0.5" in Path(config).read_text()
    second = read_settings({}, config, environment={})
    assert [line.split("  #")[0] for line in second.describe()] == [
        line.split("  #")[0] for line in first.describe()
    ]
    assert tomllib.loads("\n".join(second.describe()))["data"] == 'with "quotes"'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("prot = 1", "no setting 'prot'; there are data, host, port"),
        ("port = 70000", "70000 is not a port"),
        ("port = true", "True is not a port"),
        ("host = 1", "host|1 is not a text"),
        ("connections_max = 0", "0 is not a number from 1 on"),
        ("retention_age_s = nan", "nan is not a number above 0"),
        ("log = 'none'", "'none' is not one of changes, all"),
        ("allow_host = [1]", "1 is not a text"),
        ("port = ", "this is not TOML"),
        ("tls_key = 'key.pem'", "--tls-certificate and --tls-key need each other"),
        ("is_durable = false", "no setting 'is_durable'"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=words):
        read_settings({}, write_config(tmp_path, text), environment={})


def test_a_variable_is_named_where_its_value_will_not_do() -> None:
    with pytest.raises(InvalidInput, match="CONTRADA_PORT: web is not a port"):
        read_settings({}, environment={"CONTRADA_PORT": "web"})


@pytest.mark.parametrize(("text", "words"), [("port", "no = in it"), ("prot=1", "no setting")])
def test_a_limit_on_the_command_line_is_a_name_and_a_value(text: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        read_settings({}, more=[text], environment={})


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises((InvalidInput, Unavailable), match=r"none\.toml: cannot be read"):
        read_settings({}, str(tmp_path / "none.toml"), environment={})
