"""Command ``metadata``: reads and repairs the metadata that a stopped broker has stored under Pulsar's paths."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from interpulse.cli.support.command_groups import CommandGroup
from interpulse.cli.support.params import Parsed
from interpulse.cli.support.running import UNUSABLE, CommandFailed
from interpulse.model.errors import PulsarError
from interpulse.terminal.option_groups import option
from interpulse.terminal.output import print_lines

if TYPE_CHECKING:
    from interpulse.storage.api import MetadataStore

_STORE_FILE = "metadata.sqlite"


def _key(text: str) -> str:
    if not text.startswith("/"):
        raise ValueError(f"{text!r} does not begin with /")
    return text.rstrip("/") or "/"


_KEY = Parsed("key", _key)


@click.group(cls=CommandGroup)
def metadata() -> None:
    """Read and repair the metadata of a stopped broker.

    The keys are Pulsar's own, for example /admin/policies/public/default; the values are Pulsar's JSON.
    """


def _store_command(name: str) -> Callable[[Callable[..., Coroutine[Any, Any, None]]], click.Command]:
    """Make a command whose first argument is an open store. The data directory is locked while it runs."""

    def register(callback: Callable[..., Coroutine[Any, Any, None]]) -> click.Command:
        async def with_store(data_dir: Path, values: dict[str, Any]) -> None:
            async with _open_store(data_dir) as store:
                await callback(store, **values)

        def run(data_dir: Path, **values: Any) -> None:
            import asyncio

            try:
                asyncio.run(with_store(data_dir, values))
            except PulsarError as error:
                raise CommandFailed(str(error)) from error

        run.__doc__ = callback.__doc__
        run.__click_params__ = getattr(callback, "__click_params__", [])  # type: ignore[attr-defined]
        directory = click.Path(path_type=Path, file_okay=False)
        return metadata.command(name)(
            option("--data-dir", "Data directory of the broker.", directory, Path("data"))(run)
        )

    return register


@asynccontextmanager
async def _open_store(data_dir: Path) -> AsyncIterator[MetadataStore]:
    from interpulse.storage.api import DataDirectoryInUse
    from interpulse.storage.directory_lock import DirectoryLock
    from interpulse.storage.metadata.sqlite import SqliteMetadataStore

    path = data_dir / _STORE_FILE
    if not path.is_file():
        raise CommandFailed(f"{data_dir} is not the data directory of a broker: it has no {_STORE_FILE}", UNUSABLE)
    try:
        lock = DirectoryLock.acquire(data_dir)
    except DataDirectoryInUse as error:
        raise CommandFailed(f"{error}: stop the broker first, or use the admin commands", UNUSABLE) from error
    with lock:
        store = await SqliteMetadataStore.open(path)
        try:
            yield store
        finally:
            await store.close()


@_store_command("list")
@click.argument("key", type=_KEY, default="/")
async def list_keys(store: MetadataStore, key: str) -> None:
    """List the keys directly below KEY."""
    print_lines(f"{key.rstrip('/')}/{child}" for child in await store.children(key))


@_store_command("get")
@click.argument("key", type=_KEY)
async def get_key(store: MetadataStore, key: str) -> None:
    """Print the value of KEY."""
    click.echo(await _existing(store, key))


@_store_command("put")
@click.argument("key", type=_KEY)
@click.argument("value")
async def put_key(store: MetadataStore, key: str, value: str) -> None:
    """Set the value of KEY. With - it is read from standard input."""
    from interpulse.storage.api import Put

    raw = sys.stdin.buffer.read() if value == "-" else value.encode()
    await store.commit([Put(key, raw)])


@_store_command("delete")
@click.argument("key", type=_KEY)
async def delete_key(store: MetadataStore, key: str) -> None:
    """Delete KEY. The keys below it stay."""
    from interpulse.storage.api import Delete

    await _existing(store, key)
    await store.commit([Delete(key)])


async def _existing(store: MetadataStore, key: str) -> bytes:
    entry = await store.get(key)
    if entry is None:
        raise CommandFailed(f"{key} has no value")
    return entry.value
