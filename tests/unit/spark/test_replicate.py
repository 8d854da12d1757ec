"""What the job concludes from the source's answers before it begins."""

import pytest

from interpulse.model.errors import AuthorizationError, NotConnected
from interpulse.spark.replicate import is_interpulse


class Admin:
    """An admin API that only knows its runtime configuration."""

    def __init__(self, answer):
        self.answer = answer
        self.brokers = self

    async def runtime_configuration(self):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "ours"), [({"replicationJob": "embedded"}, True), ({}, False), (AuthorizationError("no"), False)]
)
async def test_kind_of_cluster_is_read_from_its_configuration(answer, ours):
    assert await is_interpulse(Admin(answer)) is ours


async def test_cluster_without_answer_is_not_taken_for_another_kind():
    with pytest.raises(NotConnected):
        await is_interpulse(Admin(NotConnected("no route")))
