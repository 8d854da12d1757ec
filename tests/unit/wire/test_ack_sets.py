"""The words that say which messages of a batch wait."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpulse.wire.ack_sets import mask_of, of_batch, words_of


@given(st.integers(0, 2**200))
def test_words_of_then_mask_of_gives_the_mask_back(mask: int) -> None:
    assert mask_of(words_of(mask)) == mask
    assert all(-(2**63) <= word < 2**63 for word in words_of(mask))


@pytest.mark.parametrize(
    ("words", "mask"),
    [
        pytest.param([5], 0b101, id="three-the-second-acknowledged"),
        pytest.param([-1, 1], 2**65 - 1, id="sixty-five-none-acknowledged"),
        pytest.param([0, 1], 2**64, id="sixty-five-the-last-waits"),
    ],
)
def test_mask_of_words_then_bit_i_is_message_i(words: list[int], mask: int) -> None:
    assert mask_of(words) == mask
    assert words_of(mask) == tuple(words)


@pytest.mark.parametrize(
    ("messages", "left"),
    [
        pytest.param(2, 0b01, id="more-words-than-messages"),
        pytest.param(3, 0b101, id="as-many"),
        pytest.param(2**31 - 1, 0b101, id="a-made-up-number"),
        pytest.param(-1, 0, id="less-than-nothing"),
    ],
)
def test_mask_when_the_batch_is_so_large_then_the_rest_is_cut_off(messages: int, left: int) -> None:
    assert of_batch(0b101, messages) == left
