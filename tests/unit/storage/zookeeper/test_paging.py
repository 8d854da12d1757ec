from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from interpulse.storage.zookeeper.paging import keys_after

parts = st.text("a-0", min_size=1, max_size=3)


@given(st.sets(parts, max_size=8), st.text("a-0", max_size=2), st.text("a-0/", max_size=4))
def test_keys_when_listed_after_another_then_in_the_order_of_keys(names: set[str], beginning: str, behind: str) -> None:
    places = [each for name in names if name.startswith(beginning) for each in (name, f"{name}/")]
    expected = [each for each in sorted(places) if each > behind or (each.endswith("/") and behind.startswith(each))]
    assert list(keys_after(sorted(names), beginning, behind)) == expected
