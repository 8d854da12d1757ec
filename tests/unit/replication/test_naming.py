"""Names that clusters were given here, against those that they have."""

import pytest

from interpulse.model.errors import AuthorizationError, NotConnected
from interpulse.replication.connect import misnamed


class Admin:
    """An admin API that only knows its runtime configuration, and clusters."""

    def __init__(self, answer, known=()):
        self.answer, self.known = answer, known
        self.brokers = self.clusters = self

    async def list(self):
        if isinstance(self.known, Exception):
            raise self.known
        return self.known

    async def runtime_configuration(self):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


async def test_name_that_the_cluster_has_is_right():
    assert await misnamed(Admin({"clusterName": "beast"}), "beast", "http://b:1") is None  # type: ignore[arg-type]


async def test_name_that_the_cluster_has_not_is_told_with_its_own():
    problem = await misnamed(Admin({"clusterName": "beast"}), "best", "http://b:1")  # type: ignore[arg-type]
    assert problem == "the cluster at http://b:1 calls itself beast, not best"


SECRET = AuthorizationError("super-users only")


@pytest.mark.parametrize(
    "admin", [Admin(SECRET, ["best", "west"]), Admin({}), Admin(SECRET), Admin(SECRET, AuthorizationError("no"))]
)
async def test_cluster_that_does_not_say_its_name_is_believed_with_a_warning(admin, caplog):
    assert await misnamed(admin, "best", "http://b:1") is None
    assert "cluster=best" in caplog.text


async def test_cluster_that_does_not_say_its_name_is_one_of_those_it_knows():
    problem = await misnamed(Admin(SECRET, ["west", "beast"]), "best", "http://b:1")  # type: ignore[arg-type]
    assert problem == "the cluster at http://b:1 knows no cluster best, so it is another one; it knows beast, west"


async def test_cluster_without_answer_is_not_believed():
    with pytest.raises(NotConnected):
        await misnamed(Admin(NotConnected("no route")), "best", "http://b:1")  # type: ignore[arg-type]
