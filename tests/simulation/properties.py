"""Properties that histories are judged by, and the tests with real programs that try the same promises.

A finding names its property by letter and number.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class Subject(NamedTuple):
    """A part of the system."""

    title: str
    properties: Mapping[str, str]
    """The promises to users, by letter and number."""
    elsewhere: str
    """Trials with real programs and models."""


SUBJECTS: Final = (
    Subject(
        "The log",
        {
            "L1": "a message with a receipt is stored at the position of its receipt, and stays there",
            "L2": "with de-duplication, a message that is sent several times is stored once",
            "L3": "the messages of a producer are stored in the order of sending, and confirmed in that order",
            "L4": "each stored or delivered message was sent, with the same bytes",
            "L5": "a position never changes its content",
            "L6": "no receipt follows a failed write of the same topic, and no ledger id comes twice",
            "L7": "after a crash every topic loads and can be read, unless its disk damaged it",
        },
        "Broker processes are killed with `kill -9` under the load of an official client. The log loses power after "
        "each single step of its disk, and is torn and damaged at each single byte. Brokers fill small file "
        "systems. Records of segments are fuzzed.",
    ),
    Subject(
        "Subscriptions",
        {
            "S1": "each message is delivered to each subscription at least once",
            "S2": "an acknowledged message does not come again, unless a fault took the acknowledgement",
            "S3": "no message is skipped that no consumer acknowledged",
            "S4": "order by producer or by key; one consumer at a time holds the messages of a key",
            "S5": "seek goes where it says, delayed messages wait, redelivery counts never fall, "
            "dead letters are in time",
            "S6": "an acknowledged message of a batch does not come again while the others wait",
        },
        "Two hundred producers and two hundred consumers of all types use one broker process that is stopped and "
        "killed while their connections break. Official Python, Java and Go clients consume in the interop suite. "
        "Brokers are killed while they compact.",
    ),
    Subject(
        "Creating and deleting topics",
        {
            "T1": "every answer is one that the tables of PIP-344 and PIP-414 allow at that moment",
            "T2": "what was answered as done is done, and what was answered as failed has changed nothing",
        },
        "One table of commands and states runs through every front end and through a real Pulsar. A broker dies at "
        "each single write of each operation. Broker processes are killed while they create, expand and delete "
        "thousands of partitions.",
    ),
    Subject(
        "Lookup",
        {
            "B1": "a batch lookup answers every name like a single lookup, and occupies nothing afterwards",
        },
        "Cached answers are compared with fresh reads after random changes by two brokers.",
    ),
    Subject(
        "Owners of topics in a cluster",
        {
            "O1": "two brokers never confirm messages of one topic at the same time",
            "O2": "a broker without a session sends no message and answers no lookup",
            "O3": "after the faults every topic has one owner, and clients continue",
            "O4": "only the owner writes the cursors of a topic",
        },
        "Three brokers lose sessions and bundles a hundred times at random, and a thousand times in `make soak`. "
        "Porcupine checks that registers and locks on a real ZooKeeper are linearizable while the server is killed. "
        "TLC visits every state of a [model](../models/README.md) of bundle take-over. Brokers of Apache Pulsar and "
        "ours replace each other under load.",
    ),
    Subject(
        "BookKeeper",
        {
            "K1": "a confirmed entry is synced on enough bookies, and every recovery of a ledger agrees",
        },
        "Ledgers are written, broken and recovered in random histories, one failure at a time. Real bookies are "
        "killed. Apache Pulsar and BookKeeper's Java client read our ledgers, and we read theirs.",
    ),
    Subject(
        "Replication",
        {
            "R1": "the target has every message of the source that is meant for it, once and in order",
            "R2": "no message goes round a mesh of clusters, and held topics lose nothing",
        },
        "The replication job runs while brokers, Python workers, Java and the Spark driver are killed; `interpulse "
        "verify` then compares the clusters. TLC visits every state of a [model](../models/README.md) of lane "
        "settlement. Replication from and to a real Pulsar is part of the interop suite.",
    ),
    Subject(
        "Programs",
        {
            "C1": "every request of a client ends, and a closed client leaves nothing behind",
            "G1": "no program stands still, fails without a handler, or logs an error without a fault that explains it",
        },
        "The client runs against a real Pulsar, and the official clients against our broker. Parsers of everything "
        "that comes from outside are fuzzed.",
    ),
)
PROPERTIES: Final = {number: each for subject in SUBJECTS for number, each in subject.properties.items()}
