"""Whether XML is well-formed to its end: where it is not, GDAL gives the rows before, or none."""

from collections import Counter
from typing import IO
from xml.parsers import expat

from contrada.errors import InvalidInput
from contrada.limits import XML_DEPTH_MAX

_CHUNK_BYTES = 2**20


def check_xml(file: IO[bytes], name: str) -> Counter[str]:
    """Refuse XML that is cut off or not well-formed, nested too deep, or that declares entities.

    Returns the elements right below the root: names, without a prefix, and how many there are.
    """
    parser = expat.ParserCreate()
    below_root: Counter[str] = Counter()
    depth = 0

    def begin(element: str, _: object) -> None:
        nonlocal depth
        depth += 1
        if depth == 2:
            below_root[element.rpartition(":")[2]] += 1
        if depth > XML_DEPTH_MAX:
            raise InvalidInput(
                f"{name}: line {parser.CurrentLineNumber}: elements are nested deeper than "
                f"{XML_DEPTH_MAX} (XML_DEPTH_MAX)"
            )

    def end(_: str) -> None:
        nonlocal depth
        depth -= 1

    def refuse_entity(entity: str, *_: object) -> None:
        raise InvalidInput(
            f"{name}: line {parser.CurrentLineNumber}: entity declarations are not allowed "
            f"({entity!r:.80}); replace the entity with its text"
        )

    parser.StartElementHandler = begin
    parser.EndElementHandler = end
    parser.EntityDeclHandler = refuse_entity
    try:
        while chunk := file.read(_CHUNK_BYTES):
            parser.Parse(chunk, False)
        parser.Parse(b"", True)
    except InvalidInput:
        raise
    except expat.ExpatError as fault:
        what = expat.ErrorString(fault.code)
        raise InvalidInput(
            f"{name}: it is cut off, or not XML: line {fault.lineno}: {what}"
        ) from fault
    except (LookupError, ValueError) as fault:
        raise InvalidInput(f"{name}: its encoding cannot be read: {fault}") from fault
    return below_root
