from __future__ import annotations

import pickle

import pytest

from interpulse.model.errors import MetadataError, PersistenceError
from interpulse.storage import api


@pytest.mark.parametrize(
    "error",
    [
        api.CommitConflict("/a"),
        api.MetadataUnavailable("gone"),
        api.DataDirectoryUnusable("/d", "read-only"),
        api.DataDirectoryInUse("/d", "17"),
        api.LogNotFound("t/n/persistent/a"),
        api.LogFenced("t/n/persistent/a", "closed"),
        api.LogTerminated("t/n/persistent/a"),
        api.LogDamaged("t/n/persistent/a", "0000000001.seg", 20, "checksum"),
        api.StorageFull("no room"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_error_when_pickled_then_says_the_same(error: Exception) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


def test_errors_when_translated_by_a_front_end_then_metadata_or_persistence() -> None:
    assert issubclass(api.MetadataUnavailable, MetadataError)
    for error in (api.LogFenced, api.LogDamaged, api.LogNotFound, api.StorageFull, api.DataDirectoryUnusable):
        assert issubclass(error, PersistenceError)
    assert not api.LogDamaged.retriable
    assert api.LogFenced.retriable


def test_log_damaged_when_shown_then_names_log_segment_and_offset() -> None:
    text = str(api.LogDamaged("t/n/persistent/a", "0000000007.seg", 4096, "wrong checksum"))
    for part in ("t/n/persistent/a", "0000000007.seg", "4096", "wrong checksum"):
        assert part in text
