"""Blocking table view."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, KeysView, ValuesView
from typing import Any

from interpulse.client.closing import Closes
from interpulse.client.consuming.table_view import TableView as AsyncTableView
from interpulse.client.portal import Portal


class TableView(Closes):
    """Latest value of every key of a topic. It reads like a dictionary."""

    def __init__(self, portal: Portal, view: AsyncTableView[Any]) -> None:
        self._portal = portal
        self._view = view

    @property
    def topic(self) -> str:
        return self._view.topic

    def get(self, key: str, default: Any = None) -> Any:
        return self._portal.run(lambda: self._view.get(key, default))

    def __getitem__(self, key: str) -> Any:
        return self._portal.run(lambda: self._view[key])

    def __contains__(self, key: object) -> bool:
        return self._portal.run(lambda: key in self._view)

    def __len__(self) -> int:
        return self._portal.run(lambda: len(self._view))

    def __iter__(self) -> Iterator[str]:
        return iter(self.snapshot())

    def keys(self) -> KeysView[str]:
        """Return the current keys. Later messages do not change the result."""
        return self.snapshot().keys()

    def values(self) -> ValuesView[Any]:
        """Return the current values. Later messages do not change the result."""
        return self.snapshot().values()

    def items(self) -> ItemsView[str, Any]:
        """Return the current keys with their values. Later messages do not change the result."""
        return self.snapshot().items()

    def snapshot(self) -> dict[str, Any]:
        """Return a copy of the current table."""
        return self._portal.run(self._view.snapshot)

    def listen(self, listener: Callable[[str, Any], object]) -> Callable[[], None]:
        """Call ``listener`` in the client's thread for every change from now on. Return the function that ends this.

        The listener must not call the client: the call would block forever.
        """
        end = self._portal.run(lambda: self._view.listen(listener))
        return lambda: self._portal.run(end)

    def for_each(self, action: Callable[[str, Any], object]) -> None:
        """Call ``listener`` with every current key and its value, in the caller's thread."""
        for key, value in self.items():
            action(key, value)

    def for_each_and_listen(self, action: Callable[[str, Any], object]) -> Callable[[], None]:
        """Call ``listener`` with every current key, then for every change, without missing or repeating one.

        All calls are made in the client's thread.
        """
        end = self._portal.run(lambda: self._view.for_each_and_listen(action))
        return lambda: self._portal.run(end)

    def refresh(self) -> None:
        """Wait until the table includes everything that the topic contains now."""
        self._portal.call(self._view.refresh)

    def close(self) -> None:
        """Stop reading. Later calls fail."""
        self._portal.call(self._view.close)
