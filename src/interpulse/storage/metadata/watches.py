"""The watches of metadata keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable

__all__ = ["Watches"]


class Watches:
    """Callbacks by key prefix, called in the order they were added."""

    def __init__(self) -> None:
        self._watches: dict[object, tuple[str, Callable[[str], None]]] = {}

    def add(self, prefix: str, callback: Callable[[str], None]) -> Callable[[], None]:
        """Begin a watch; the returned function ends it (again and again, if you like)."""
        token = object()
        self._watches[token] = (prefix, callback)

        def cancel() -> None:
            self._watches.pop(token, None)

        return cancel

    def announce(self, keys: Iterable[str]) -> None:
        """Tell every watcher whose prefix fits."""
        if not self._watches:
            return
        for key in keys:
            for prefix, callback in list(self._watches.values()):
                if key.startswith(prefix):
                    callback(key)

    def announce_all(self) -> None:
        """Tell every watcher its own prefix, since anything below it may have changed."""
        for prefix, callback in list(self._watches.values()):
            callback(prefix)
