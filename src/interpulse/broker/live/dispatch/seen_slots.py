"""The slots of the entries that a Key_Shared subscription has seen. Pure.

Two bytes per entry, in pages of neighbours: slots noted in the order of the log cost nearly nothing, and an
acknowledgement changes nothing here. So slots of unneeded entries stay until `keep_only` drops their pages.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence

from interpulse.model.ids import Position

PAGES_MAX = 512
"""Pages above which a clean-up is due, or twice the pages needed at the last one if that is more."""

_PAGE_BITS = 8
_PAGE_ENTRIES = 1 << _PAGE_BITS
_WITHIN = _PAGE_ENTRIES - 1
_NOTHING_SEEN = bytes(2 * _PAGE_ENTRIES)


class SeenSlots:
    """Slots by entry. No entry has the slot 0."""

    __slots__ = ("_pages", "_pages_max")

    def __init__(self) -> None:
        self._pages: dict[tuple[int, int], array[int]] = {}
        """Pages by ledger and number."""
        self._pages_max = PAGES_MAX

    @property
    def full(self) -> bool:
        """True if `keep_only` should be called."""
        return len(self._pages) > self._pages_max

    def note(self, positions: Sequence[Position], slots: Sequence[int]) -> None:
        """Store the slots of these entries, which are in order."""
        if not positions:
            return
        (ledger, first), last = positions[0], positions[-1]
        if last != (ledger, first + len(positions) - 1):
            for (ledger, entry), slot in zip(positions, slots, strict=True):
                self._page(ledger, entry >> _PAGE_BITS)[entry & _WITHIN] = slot
            return
        run, done = array("H", slots), 0
        while done < len(run):
            number, begin = divmod(first + done, _PAGE_ENTRIES)
            part = run[done : done + _PAGE_ENTRIES - begin]
            self._page(ledger, number)[begin : begin + len(part)] = part
            done += len(part)

    def of(self, position: Position) -> int:
        """Return the slot of an entry; 0 = it was not seen."""
        ledger, entry = position
        page = self._pages.get((ledger, entry >> _PAGE_BITS))
        return page[entry & _WITHIN] if page is not None else 0

    def of_all(self, positions: Iterable[Position]) -> list[int]:
        """Return the slots of entries that were seen."""
        pages = self._pages
        return [pages[ledger, entry >> _PAGE_BITS][entry & _WITHIN] for ledger, entry in positions]

    def keep_only(self, needed: Iterable[Position]) -> None:
        """Drop pages without any of these entries; no other entry may be looked up later."""
        numbers = {(ledger, entry >> _PAGE_BITS) for ledger, entry in needed}
        self._pages = {number: page for number, page in self._pages.items() if number in numbers}
        self._pages_max = max(PAGES_MAX, 2 * len(self._pages))

    def clear(self) -> None:
        self._pages.clear()
        self._pages_max = PAGES_MAX

    def _page(self, ledger: int, number: int) -> array[int]:
        page = self._pages.get((ledger, number))
        if page is None:
            page = self._pages[ledger, number] = array("H", _NOTHING_SEEN)
        return page
