"""A real Apache Pulsar on this machine, for interoperability tests and side-by-side figures.

`launcher` runs it from the jars that `tools.engines` gets, `java` runs checks written against its own Java clients.
`python -m tests.interop.real_pulsar` does the same by hand.
"""

from tests.interop.real_pulsar.java import JavaCheckFailed, run_java
from tests.interop.real_pulsar.launcher import Address, DidNotStart, RealPulsar, address_from_environment
from tools.engines.jars import Unavailable, class_path

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
