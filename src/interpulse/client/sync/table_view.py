"""The table view for programs without an event loop."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, KeysView, ValuesView
from typing import Any

from interpulse.client.closing import Closes
from interpulse.client.consuming.table_view import TableView as AsyncTableView
from interpulse.client.portal import Portal

__all__ = ["TableView"]


class TableView(Closes):
    """The newest value of every key of a topic; reads like a dictionary from keys to values."""

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
        """As they are now; later messages do not change what was given."""
        return self.snapshot().keys()

    def values(self) -> ValuesView[Any]:
        """As they are now."""
        return self.snapshot().values()

    def items(self) -> ItemsView[str, Any]:
        """As they are now."""
        return self.snapshot().items()

    def snapshot(self) -> dict[str, Any]:
        """The table as it is now."""
        return self._portal.run(self._view.snapshot)

    def listen(self, listener: Callable[[str, Any], object]) -> Callable[[], None]:
        """Call with every key that changes from now on, in the client's thread; gives the function that ends it.

        A listener must not call the client, which would wait for itself.
        """
        end = self._portal.run(lambda: self._view.listen(listener))
        return lambda: self._portal.run(end)

    def for_each(self, action: Callable[[str, Any], object]) -> None:
        """Call with every key there is now, in the thread of the caller."""
        for key, value in self.items():
            action(key, value)

    def for_each_and_listen(self, action: Callable[[str, Any], object]) -> Callable[[], None]:
        """Both, in the client's thread, without a change that is missed or met twice."""
        end = self._portal.run(lambda: self._view.for_each_and_listen(action))
        return lambda: self._portal.run(end)

    def refresh(self) -> None:
        """Return when everything is taken in that the topic holds now."""
        self._portal.call(self._view.refresh)

    def close(self) -> None:
        """Stop reading. The view cannot be asked any more."""
        self._portal.call(self._view.close)
