"""The kept answers about schemas are those of a real Pulsar; the fast suite compares ours with them."""

from __future__ import annotations

import pytest

from tests.interop.real_pulsar import Address
from tests.schema_pairs import by_hand, generated
from tests.schema_pairs.asking import ask_all, ask_definitions
from tests.schema_pairs.cases import read_answers, read_definitions

pytestmark = [pytest.mark.interop, pytest.mark.slow]


def test_real_pulsar_when_asked_about_pairs_then_answers_are_those_kept(real_pulsar: Address) -> None:
    assert ask_all(real_pulsar.web_url, [*by_hand.cases(), *generated.cases()]) == read_answers()


def test_real_pulsar_when_asked_about_definitions_then_answers_are_those_kept(real_pulsar: Address) -> None:
    assert ask_definitions(real_pulsar.web_url) == read_definitions()
