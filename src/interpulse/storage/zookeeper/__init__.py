"""Metadata in ZooKeeper: a store, over a client.

* `jute`, `records`: the encoding, and the encoded records; `protocol`: one end of a connection without IO
* `connection`: a socket that drives the protocol; `session`: connect strings, the deadline of a session; `link`: one
  session over changing connections, with its requests
* `client`: nodes, commits and watches over a link; `errors`: the errors of all of them
* `store`: the `MetadataStore`; `node_cache`: its cache; `commit_plan`: a commit as steps; `outcomes`: the outcome of a
  commit whose answer was lost; `paging`: the order of keys
"""
