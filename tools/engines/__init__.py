"""ZooKeeper and BookKeeper on this machine, from the jars of a real Pulsar.

`jars` gets the jars from Maven Central, `java` runs them, `zookeeper` and `bookie` are one server each on 127.0.0.1.
The demonstration of several brokers runs on them, and so do the tests against real servers.
"""
