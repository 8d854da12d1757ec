"""What a person hears of something long."""

import pytest

from interpulse.cli.support.progress import Advance


def test_advance_when_nobody_watches_then_is_told_every_five_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    now = 100.0
    advance = Advance("messages acknowledged", 50, clock=lambda: now)
    for moment, done in ((104.9, 10), (105.0, 20), (109.0, 30), (110.0, 40)):
        now = moment
        advance(done)
    advance.wipe()
    assert capsys.readouterr().err == "20 of 50 messages acknowledged\n40 of 50 messages acknowledged\n"


def test_advance_when_somebody_watches_then_one_line_is_renewed_and_wiped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interpulse.cli.support.progress._watched", lambda: True)
    now = 0.0
    advance = Advance("sent", None, clock=lambda: now)
    now = 1.0
    advance(7)
    advance.wipe()
    assert capsys.readouterr().err == "\r7 sent\r" + " " * 6 + "\r"
