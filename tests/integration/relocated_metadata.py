"""A metadata store some of whose keys lie elsewhere in another one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from interpulse.storage.api import Change, CommitConflict, MetadataStore, Versioned
from interpulse.storage.sessions import Session


class RelocatedMetadataStore:
    """What is asked for below one of the roots of ``places`` lies below the root that it gives; all else where it is.

    A prefix, of `scan` or `watch`, is one place or below it.
    """

    def __init__(self, store: MetadataStore, places: Mapping[str, str]) -> None:
        self._store = store
        self._there = dict(places)
        self._here = {there: here for here, there in places.items()}

    @property
    def session(self) -> Session:
        return self._store.session

    async def get(self, key: str) -> Versioned | None:
        return await self._store.get(_moved(key, self._there))

    async def get_many(self, keys: Sequence[str]) -> dict[str, Versioned]:
        asked = {_moved(key, self._there): key for key in keys}
        return {asked[key]: found for key, found in (await self._store.get_many(list(asked))).items()}

    def unchanged(self, versions: Mapping[str, int | None]) -> bool:
        return self._store.unchanged({_moved(key, self._there): version for key, version in versions.items()})

    async def children(self, key: str) -> list[str]:
        return await self._store.children(_moved(key, self._there))

    async def scan(self, prefix: str, *, after: str = "", limit: int) -> list[tuple[str, Versioned]]:
        page = await self._store.scan(_moved(prefix, self._there), after=_moved(after, self._there), limit=limit)
        return [(_moved(key, self._here), found) for key, found in page]

    async def commit(self, changes: Sequence[Change], expect: Mapping[str, int | None] = {}) -> None:
        moved = [replace(change, key=_moved(change.key, self._there)) for change in changes]
        try:
            await self._store.commit(moved, {_moved(key, self._there): version for key, version in expect.items()})
        except CommitConflict as conflict:
            conflict.key = _moved(conflict.key, self._here)
            raise

    async def create_sequential(self, prefix: str, value: bytes = b"") -> str:
        return _moved(await self._store.create_sequential(_moved(prefix, self._there), value), self._here)

    async def sync(self, key: str) -> None:
        await self._store.sync(_moved(key, self._there))

    def watch(self, prefix: str, callback: Callable[[str], None]) -> Callable[[], None]:
        return self._store.watch(_moved(prefix, self._there), lambda key: callback(_moved(key, self._here)))

    async def close(self) -> None:
        await self._store.close()


def _moved(key: str, places: Mapping[str, str]) -> str:
    for root, place in places.items():
        if key == root or key.startswith(f"{root}/"):
            return place + key[len(root) :]
    return key
