"""The line that says how far a command is."""

import pytest

from interpulse.terminal.progress import Progress


def test_progress_when_logged_then_is_a_line_every_five_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    now = 100.0
    progress = Progress("{done} of {total} messages acknowledged", logged=True, clock=lambda: now)
    for moment, done in ((104.9, 10), (105.0, 20), (109.0, 30), (110.0, 40)):
        now = moment
        progress(done, 50)
    progress.wipe()
    assert capsys.readouterr().err == "20 of 50 messages acknowledged\n40 of 50 messages acknowledged\n"


def test_progress_when_neither_logged_nor_on_a_terminal_then_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    now = 100.0
    with Progress("{done} examined", clock=lambda: now) as progress:
        now = 200.0
        progress(1)
    assert capsys.readouterr().err == ""


def test_progress_when_on_a_terminal_then_one_line_is_renewed_and_wiped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interpulse.terminal.progress._on_terminal", lambda: True)
    now = 0.0
    with Progress("{done} sent", clock=lambda: now) as progress:
        for moment, done in ((0.1, 6), (0.2, 7), (0.3, 8)):
            now = moment
            progress(done)
    assert capsys.readouterr().err == "\r7 sent\r" + " " * 6 + "\r"
