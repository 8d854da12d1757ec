"""Which settings can be changed at run time, beside a real Pulsar."""

from __future__ import annotations

import pytest

from interpulse.broker.config.broker_config import BrokerConfig, dynamic_keys, settings_by_key
from interpulse.broker.config.pulsar_keys import READ_AT_START, WITHOUT_EFFECT
from interpulse.client import AdminClient
from tests.interop.real_pulsar import Address

pytestmark = [pytest.mark.interop, pytest.mark.slow]

OURS_ALONE = {"consoleMessagesEnabled", "maxTopicsPerBatchLookup", "standbyConsumers", "supportsBatchLookup"}
DEFAULTS_THAT_DIFFER = {
    "managedLedgerCacheSizeMB",  # a share of the machine's memory there
    "maxMessagePublishBufferSizeInMB",  # so is this
    "brokerClientAuthenticationPlugin",  # a class that stands for none there
    "tlsProtocols",  # empty there: those of Java, which are 1.2 and 1.3 as well
    "zooKeeperSessionTimeoutMillis",  # -1 says there that metadataStoreSessionTimeoutMillis counts
}
SET_BY_STANDALONE = {
    "internalListenerName",
    "metadataStoreUrl",
    "managedLedgerDefaultEnsembleSize",
    "managedLedgerDefaultWriteQuorum",
    "managedLedgerDefaultAckQuorum",
}


async def test_keys_are_dynamic_and_have_the_defaults_as_on_a_real_pulsar(real_pulsar: Address) -> None:
    async with AdminClient(real_pulsar.web_url) as admin:
        theirs = set(await admin.brokers.dynamic_configuration_names())
        runtime = await admin.brokers.runtime_configuration()
    ours = set(dynamic_keys())
    assert ours - theirs == OURS_ALONE
    without_effect = {key for names in WITHOUT_EFFECT.values() for key in names.split()}
    assert theirs - ours == without_effect | READ_AT_START
    assert not without_effect & set(settings_by_key())
    shared = {key: text for key, text in BrokerConfig().as_text().items() if key in runtime}
    of_the_machine = {"advertisedAddress", "brokerServicePort", "webServicePort"}
    different = {key for key, text in shared.items() if _words(runtime[key]) != _words(text)}
    assert different - of_the_machine - SET_BY_STANDALONE == DEFAULTS_THAT_DIFFER


def _words(text: str) -> list[str]:
    """Lists in any order, without the brackets of Java, and what may be absent."""
    return sorted(text.removeprefix("Optional.empty").strip("[]").replace(", ", ",").split(","))
