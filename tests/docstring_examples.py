"""The examples in docstrings, which tests run with nothing but what they import and are given."""

import doctest
import inspect
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any


def public_names(module: ModuleType) -> Iterator[tuple[str, object]]:
    """What a module offers, and the public methods of its classes that can do something."""
    for name in module.__all__:
        found = getattr(module, name)
        yield f"{module.__name__}.{name}", found
        if inspect.isclass(found) and not issubclass(found, BaseException | str):
            for method in vars(found):
                if not method.startswith("_") and callable(getattr(found, method)):
                    yield f"{module.__name__}.{name}.{method}", getattr(found, method)


def run_examples(name: str, documented: object, given: Mapping[str, Any]) -> None:
    """Run the examples of one docstring, which must have some."""
    text = inspect.getdoc(documented) or ""
    examples = doctest.DocTestParser().get_doctest(text, dict(given), name, name, None)
    assert examples.examples, f"{name} has no example in its docstring"
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    failed, _ = runner.run(examples, out=said.append)
    assert not failed, "".join(said)
