"""The limit of open files."""

from __future__ import annotations

import resource

import pytest

from interpulse.serving.open_files import raise_open_files

Limits = tuple[int, int]


class System:
    """A process with limits of its own."""

    def __init__(self, limits: Limits, most: int) -> None:
        self.limits = limits
        self._most = most

    def get(self, kind: int) -> Limits:
        assert kind == resource.RLIMIT_NOFILE
        return self.limits

    def set(self, kind: int, limits: Limits) -> None:
        assert kind == resource.RLIMIT_NOFILE
        if limits[0] > self._most:
            raise ValueError("current limit exceeds maximum limit")
        self.limits = limits


@pytest.mark.parametrize(
    ("soft", "hard", "most", "in_force", "warnings"),
    [
        (256, 4096, 4096, 4096, 0),
        (4096, 4096, 0, 4096, 0),
        (256, 4096, 1000, 256, 1),
    ],
)
def test_files_when_the_soft_limit_is_lower_then_it_is_raised_as_far_as_the_system_lets(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    soft: int,
    hard: int,
    most: int,
    in_force: int,
    warnings: int,
) -> None:
    system = System((soft, hard), most)
    monkeypatch.setattr(resource, "getrlimit", system.get)
    monkeypatch.setattr(resource, "setrlimit", system.set)
    assert raise_open_files() == in_force
    assert system.limits == (in_force, hard)
    assert len(caplog.records) == warnings
