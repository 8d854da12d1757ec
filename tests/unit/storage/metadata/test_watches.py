from __future__ import annotations

from interpulse.storage.metadata.watches import Watches


def test_announce_when_prefixes_differ_then_each_watcher_gets_its_own() -> None:
    watches = Watches()
    heard: list[tuple[str, str]] = []
    watches.add("/a", lambda key: heard.append(("a", key)))
    watches.add("/a/b", lambda key: heard.append(("ab", key)))
    watches.announce(["/a/b/c", "/x"])
    assert heard == [("a", "/a/b/c"), ("ab", "/a/b/c")]


def test_announce_when_a_callback_cancels_and_adds_then_no_surprise() -> None:
    watches = Watches()
    heard: list[str] = []

    def once(key: str) -> None:
        heard.append(key)
        cancel()
        watches.add("/", heard.append)

    cancel = watches.add("/", once)
    watches.announce(["/1"])
    watches.announce(["/2"])
    assert heard == ["/1", "/2"]
