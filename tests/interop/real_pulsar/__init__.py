"""A real Apache Pulsar on this machine, for interoperability tests and side-by-side figures.

`jars` gets it from Maven Central, `launcher` runs it, `java` runs checks written against its own Java clients.
`python -m tests.interop.real_pulsar` does the same by hand.
"""

from tests.interop.real_pulsar.jars import Unavailable, class_path
from tests.interop.real_pulsar.java import JavaCheckFailed, run_java
from tests.interop.real_pulsar.launcher import Address, DidNotStart, RealPulsar, address_from_environment

__all__ = [
    "Address",
    "DidNotStart",
    "JavaCheckFailed",
    "RealPulsar",
    "Unavailable",
    "address_from_environment",
    "class_path",
    "run_java",
]
