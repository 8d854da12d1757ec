"""Metadata in ZooKeeper: a store, over a client.

* `jute`, `records`: the encoding, and what is encoded; `protocol`: one end of a connection without IO
* `connection`: a socket with it; `session`: how long one may rely on a session; `link`: one session over changing
  connections, with its requests; `servers`: connect strings; `budget`: a bound on what is on its way
* `client`: nodes, commits and watches over a link; `errors`: what can go wrong
* `store`: the `MetadataStore`; `known`: what it remembers; `commit_plan`: a commit as steps; `outcomes`: what became of
  a commit whose answer was lost; `paging`: the order of keys
"""
