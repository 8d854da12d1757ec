"""Names of clusters, tenants and namespaces."""

from __future__ import annotations

import pytest

from interpulse.model.errors import PreconditionFailed
from interpulse.rules.entity_names import check_entity_name


@pytest.mark.parametrize("name", ["a", "us-west_1", "A=b:c.d", "x" * 1000])
def test_name_when_of_its_characters_then_may_be_taken(name: str) -> None:
    check_entity_name("Tenant", name)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "must be letters, digits and _-=:. only"),
        ("a b", "'a b' must be letters"),
        ("a/b", "'a/b' must be letters"),
        ("ä", "'ä' must be letters"),
        ("x" * 1001, "of 1001 characters: it may have 1000"),
    ],
)
def test_name_when_it_may_not_be_taken_then_says_why(name: str, reason: str) -> None:
    with pytest.raises(PreconditionFailed, match=f"Tenant name .*{reason}"):
        check_entity_name("Tenant", name)
