"""The documents and their blocks of code: what tests run of them, and what says why not."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from contrada.cli import demo, make_parser
from contrada.cli.demo_data import generate

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted(
    path.relative_to(ROOT).as_posix() for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
)
SHELLS = ("sh", "bash")
_BLOCK = re.compile(
    r"(?:^<!-- not run in tests: (?P<reason>.+?) -->\n)?"
    r"^```(?P<language>\w*)\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Block:
    """A block of code in a document; `reason` says why it is not run, if it is not."""

    language: str
    code: str
    reason: str | None

    @property
    def needs_spark(self) -> bool:
        """Whether it is run where the tests of Spark are, which share a session."""
        return "--spark" in self.code


def blocks(document: str, *languages: str) -> list[Block]:
    """The blocks of a document, in order; of some languages, if they are named."""
    text = (ROOT / document).read_text()
    found = [
        Block(match["language"], match["code"], match["reason"]) for match in _BLOCK.finditer(text)
    ]
    return [block for block in found if not languages or block.language in languages]


def make_demo_files(folder: Path) -> Path:
    """Leave in a folder what `make demo` generates there, and give the folder."""
    options = make_parser().parse_args(["demo"])
    target = demo.make_folder(str(folder / options.folder))
    demo.write_data(target, *generate(np.random.default_rng(options.seed)))
    return folder
