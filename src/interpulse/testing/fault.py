"""One fault of a broker."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Self


class Fault:
    """An active fault: until it has acted ``times`` times, until :meth:`end`, or until its ``with`` block ends."""

    def __init__(self, name: str, times: int | None, on_end: Callable[[bool], object]) -> None:
        """Set the callback ``on_end``, which is called once, in any thread.

        Its argument is True if the test ended the fault.
        """
        if times is not None and times < 1:
            raise ValueError(f"times={times}: a fault acts at least once; leave it out for a lasting one")
        self._name = name
        self._times = times
        self._on_end = on_end
        self.count = 0
        """Number of times that the fault has acted."""

        self._ended = False
        self._changed = threading.Condition()

    @property
    def active(self) -> bool:
        """Return True if it can act again."""
        return not self._ended

    def end(self) -> None:
        """End the fault. Delayed commands go on; refused and lost ones stay so."""
        with self._changed:
            ended, self._ended = self._ended, True
        if not ended:
            self._on_end(True)

    def wait(self, seconds: float = 60.0) -> None:
        """Return when it has acted ``times`` times, or once if that is not set.

        Raises TimeoutError after ``seconds``.
        """
        wanted = self._times or 1
        with self._changed:
            if not self._changed.wait_for(lambda: self.count >= wanted, seconds):
                raise TimeoutError(f"{self._name} has acted {self.count} of {wanted} times after {seconds} s")

    def act(self) -> bool:
        """Return True if the broker is to fail now. The call counts."""
        with self._changed:
            if self._ended:
                return False
            self.count += 1
            last = self._ended = self.count == self._times
            self._changed.notify_all()
        if last:
            self._on_end(False)
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def __repr__(self) -> str:
        return f"<{self._name}, {'on' if self.active else 'over'}, acted {self.count} times>"
