"""``metadata``: the store of a stopped broker."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from interpulse.cli.metadata import metadata
from interpulse.storage.api import Put
from interpulse.storage.directory_lock import DirectoryLock
from interpulse.storage.metadata.sqlite import SqliteMetadataStore

POLICIES = b'{"deleted":false}'


@pytest.fixture
async def data_dir(tmp_path: Path) -> Path:
    """A data directory whose store holds two clusters and a namespace."""
    store = await SqliteMetadataStore.open(tmp_path / "metadata.sqlite")
    await store.commit(
        [
            Put("/admin/clusters/east", b"{}"),
            Put("/admin/clusters/west", b"{}"),
            Put("/admin/policies/t/ns", POLICIES),
        ]
    )
    await store.close()
    return tmp_path


def run(data_dir: Path, command: str, *arguments: str, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(metadata, [command, "--data-dir", str(data_dir), *arguments], input=stdin)


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        ((), "/admin\n"),
        (("/",), "/admin\n"),
        (("/admin",), "/admin/clusters\n/admin/policies\n"),
        (("/admin/clusters/",), "/admin/clusters/east\n/admin/clusters/west\n"),
        (("/nowhere",), ""),
    ],
)
def test_list_when_given_a_key_then_prints_what_lies_below(
    data_dir: Path, arguments: tuple[str, ...], printed: str
) -> None:
    result = run(data_dir, "list", *arguments)
    assert (result.exit_code, result.stdout) == (0, printed)


def test_get_when_key_exists_then_prints_its_value(data_dir: Path) -> None:
    assert run(data_dir, "get", "/admin/policies/t/ns").stdout_bytes == POLICIES + b"\n"


def test_put_when_done_then_value_is_there(data_dir: Path) -> None:
    assert run(data_dir, "put", "/a/b", "text").exit_code == 0
    assert run(data_dir, "get", "/a/b").stdout == "text\n"
    assert run(data_dir, "put", "/a/b", "-", stdin=b"\xff\x00").exit_code == 0
    assert run(data_dir, "get", "/a/b").stdout_bytes == b"\xff\x00\n"


def test_delete_when_done_then_key_is_gone(data_dir: Path) -> None:
    assert run(data_dir, "delete", "/admin/clusters/west").exit_code == 0
    assert run(data_dir, "list", "/admin/clusters").stdout == "/admin/clusters/east\n"


@pytest.mark.parametrize("command", ["get", "delete"])
def test_key_when_without_value_then_says_so(data_dir: Path, command: str) -> None:
    result = run(data_dir, command, "/admin/clusters")
    assert (result.exit_code, result.stderr) == (1, "Error: /admin/clusters has no value\n")


def test_key_when_relative_then_is_wrong_usage(data_dir: Path) -> None:
    result = run(data_dir, "get", "admin")
    assert result.exit_code == 2
    assert "'admin' does not begin with /" in result.stderr


def test_store_when_its_broker_runs_then_is_refused(data_dir: Path) -> None:
    with DirectoryLock.acquire(data_dir):
        result = run(data_dir, "put", "/a", "b")
    assert result.exit_code == 2
    assert f"data directory {data_dir} is in use by another process" in result.stderr
    assert "stop the broker first" in result.stderr


def test_directory_when_no_broker_used_it_then_is_refused_and_left_empty(tmp_path: Path) -> None:
    result = run(tmp_path, "list")
    assert (result.exit_code, list(tmp_path.iterdir())) == (2, [])
    assert "is not the data directory of a broker" in result.stderr
