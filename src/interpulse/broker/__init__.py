"""The broker: two front ends, the records of topics, and the loaded topics.

`app` builds and connects all objects. `binary` and `rest` are the front ends; `access` authenticates and authorizes
their clients. `topics`, `tenancy` and `replication` hold records, `live` the loaded topics, `config` the settings.
"""
