"""The process of a server that does not come up, and its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.engines.server import ServerFailed, ServerProcess

SECONDS_MAX = 60


def test_server_when_it_ends_early_then_what_it_printed_is_told(tmp_path: Path) -> None:
    server = ServerProcess("ZooKeeper", tmp_path, lambda: False, SECONDS_MAX)
    server.begin(["sh", "-c", "echo address in use; exit 1"])
    with pytest.raises(ServerFailed, match=r"ZooKeeper ended, see .*out:\naddress in use"):
        server.wait()


def test_server_when_it_does_not_serve_in_time_then_fails_and_can_be_stopped(tmp_path: Path) -> None:
    server = ServerProcess("a bookie", tmp_path, lambda: False, start_seconds_max=0)
    server.begin(["sleep", "600"])
    with pytest.raises(ServerFailed, match="a bookie did not serve after 0 s"):
        server.wait()
    server.stop()
    server.kill()  # nothing happens


def test_server_when_it_serves_then_the_wait_ends(tmp_path: Path) -> None:
    mark = tmp_path / "serves"
    server = ServerProcess("ZooKeeper", tmp_path, mark.exists, SECONDS_MAX)
    server.begin(["sh", "-c", f"touch {mark}; exec sleep 600"])
    server.wait()
    server.stop()
