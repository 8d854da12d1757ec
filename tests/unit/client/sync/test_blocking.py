import inspect
import pydoc
import threading

import pytest

from interpulse.client.portal import Portal
from interpulse.client.sync.blocking import Blocking, blocking


class Counter:
    """Asynchronous counter."""

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []

    async def add(self, number: int, *, twice: bool = False) -> int:
        """Return the number, or its double."""
        self.threads.append(threading.current_thread())
        return 2 * number if twice else number


class BlockingCounter(Blocking[Counter]):
    """Blocking counter."""

    add = blocking(Counter.add)


def test_twin_returns_the_result_from_another_thread() -> None:
    portal, counter = Portal(), Counter()
    try:
        assert BlockingCounter(portal, counter).add(2, twice=True) == 4
        assert threading.current_thread() not in counter.threads
    finally:
        portal.close()


def test_twin_has_the_signature_and_the_docstring() -> None:
    assert inspect.signature(BlockingCounter.add) == inspect.signature(Counter.add)
    text = pydoc.plain(pydoc.render_doc(BlockingCounter))
    assert "add(self, number: int, *, twice: bool = False) -> int" in text
    assert "Return the number, or its double." in text


def test_wrong_arguments_when_called_then_raise_type_error() -> None:
    portal = Portal()
    try:
        with pytest.raises(TypeError, match="unexpected keyword argument 'thrice'"):
            BlockingCounter(portal, Counter()).add(1, thrice=True)  # type: ignore[call-arg]
    finally:
        portal.close()
