"""Where YARN is, as Hadoop's settings say; Spark itself would look for it for minutes."""

from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

from contrada.errors import Unavailable

_FOLDERS = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
_MANAGER = "yarn.resourcemanager"
_HOST, _PORT = "0.0.0.0", 8032  # noqa: S104  Hadoop's own default


def find_resource_managers(environment: Mapping[str, str], config: Mapping[str, str]) -> list[str]:
    """List `host:port` of each resource manager; none where only Hadoop itself knows.

    YARN is refused where no variable names its settings and no script that Spark runs might.
    """
    if _has_script(environment) or any(f"spark.hadoop.{_MANAGER}" in name for name in config):
        return []
    folders = [Path(environment[name]) for name in _FOLDERS if environment.get(name)]
    if not folders:
        raise Unavailable(
            f"yarn cannot be found: neither {' nor '.join(_FOLDERS)} is set to the folder of its "
            "settings"
        )
    settings: dict[str, str] = {}
    for folder in folders:
        stated = _read_settings(folder / "yarn-site.xml")
        if stated is None:
            return []
        settings |= stated
    ids = settings.get(f"{_MANAGER}.ha.rm-ids", "").split(",")
    found = [_find_address(settings, f".{id_.strip()}".rstrip(".")) for id_ in ids]
    return [] if any("$" in address for address in found) else found


def _has_script(environment: Mapping[str, str]) -> bool:
    """Whether Spark runs a script that may set more variables."""
    from pyspark.find_spark_home import _find_spark_home

    folder = environment.get("SPARK_CONF_DIR") or Path(_find_spark_home()) / "conf"
    return (Path(folder) / "spark-env.sh").is_file()


def _find_address(settings: Mapping[str, str], suffix: str) -> str:
    host = settings.get(f"{_MANAGER}.hostname{suffix}", _HOST)
    address = settings.get(f"{_MANAGER}.address{suffix}", host)
    address = address.replace(f"${{{_MANAGER}.hostname}}", host)
    return address if ":" in address else f"{address}:{_PORT}"


def _read_settings(path: Path) -> dict[str, str] | None:
    """Read a file of settings, which need not be there; None where it is more than a list."""
    if not path.exists():
        return {}
    try:
        root = ElementTree.parse(path).getroot()  # noqa: S314  whoever writes it runs the jobs
    except (OSError, ElementTree.ParseError):
        return None
    if any(element.tag != "property" for element in root):  # such as one that includes another file
        return None
    stated = ((p.findtext("name"), p.findtext("value")) for p in root)
    return {name.strip(): value.strip() for name, value in stated if name and value}
