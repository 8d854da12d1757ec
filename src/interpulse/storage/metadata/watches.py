"""Watches of metadata keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable


class Watches:
    """Callbacks by key prefix, called in the order in which they were added."""

    def __init__(self) -> None:
        self._watches: dict[object, tuple[str, Callable[[str], None]]] = {}

    def add(self, prefix: str, callback: Callable[[str], None]) -> Callable[[], None]:
        """Begin a watch and return the function that ends it. Calling that function again does nothing."""
        token = object()
        self._watches[token] = (prefix, callback)

        def cancel() -> None:
            self._watches.pop(token, None)

        return cancel

    def announce(self, keys: Iterable[str]) -> None:
        """Call every watcher whose prefix matches, once per key."""
        if not self._watches:
            return
        for key in keys:
            for prefix, callback in list(self._watches.values()):
                if key.startswith(prefix):
                    callback(key)

    def announce_all(self) -> None:
        """Call every watcher with its own prefix, since any key below it may have changed."""
        for prefix, callback in list(self._watches.values()):
            callback(prefix)
