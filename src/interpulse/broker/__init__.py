"""The broker: two front ends, topics as records, and topics as they are loaded.

`app` builds and joins all objects. `binary` and `rest` are the front ends, `access` authenticates and authorizes their
clients. `topics`, `tenancy` and `replication` are records, `live` is what is loaded, `config` has the settings.
"""
