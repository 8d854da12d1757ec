"""The settings of a broker.

* `broker_config` is the table of all settings, `config_sources` reads files, the environment and options.
* `pulsar_keys` lists Pulsar's keys that have no effect.
* `dynamic_config` changes settings while the broker runs.
"""
