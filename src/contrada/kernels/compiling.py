"""`@kernel`: a function that becomes machine code when it is first called.

Numba takes longer to load than everything else together, so it is loaded by the first call, and
whoever only imports a kernel does not wait for it.
"""

import sys
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, Generic, ParamSpec, TypeVar

from contrada.threads import once

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class Kernel(Generic[Parameters, Result]):
    """A function that is called as machine code, and that other kernels may call."""

    def __init__(self, function: Callable[Parameters, Result]) -> None:
        """Take the function as it is written."""
        self.function = function
        self.__doc__ = function.__doc__

    def __call__(self, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        """Call the machine code."""
        return self.compiled(*args, **kwargs)

    @once
    def compiled(self) -> Callable[Parameters, Result]:
        """The function as Numba compiles it, calling others like itself."""
        from contrada.kernels.machine_code import compile_kernel

        function = self._copy()
        compiled: Callable[Parameters, Result] = compile_kernel(function)
        for name, called in self._called():
            function.__globals__[name] = compiled if called is self else called.compiled
        return compiled

    @once
    def interpreted(self) -> Callable[Parameters, Result]:
        """The function as Python runs it, calling others like itself, without loading Numba."""
        function = self._copy()
        for name, called in self._called():
            function.__globals__[name] = function if called is self else called.interpreted
        return function

    def _copy(self) -> FunctionType:
        """Return the function with global names of its own."""
        written = self.function
        assert isinstance(written, FunctionType)
        names = dict(written.__globals__)
        function = FunctionType(written.__code__, names, written.__name__, written.__defaults__)
        function.__qualname__ = written.__qualname__
        return function

    def _called(self) -> "Iterator[tuple[str, Kernel[..., Any]]]":
        """Yield the kernels that the function calls, and how it names them."""
        written = self.function
        assert isinstance(written, FunctionType)
        for name in written.__code__.co_names:
            called = written.__globals__.get(name)
            if isinstance(called, Kernel):
                yield name, called


def is_numba_loaded() -> bool:
    """Whether somebody has loaded Numba in this process, so that a kernel costs little more."""
    return "numba" in sys.modules


class Patience:
    """Whether kernels pay in a process that may not have loaded them yet.

    They do once as much work has been done without them as it takes to load them.
    """

    def __init__(self, work: int) -> None:
        """Take how much work that is, in a unit of the caller's."""
        self._left = work

    def is_spent(self, work: int) -> bool:
        """Whether some more work is better done by kernels; if it is not, it is counted."""
        if self._left > 0:
            self._left -= work
            return False
        return True


def kernel(function: Callable[Parameters, Result]) -> Kernel[Parameters, Result]:
    """Make a kernel of a function of arrays and numbers."""
    return Kernel(function)
