"""The parts that all handlers of the admin API share.

* `call`: a request, an answer and a route; `context`: the objects that handlers ask
* `routing`: the handler of a path
* `authorization_filter`: which calls reach their handler
* `bodies`: the fields of every JSON body; `fields`: how they are checked
* `at_owner`: calls about one topic, answered by its broker, and the topics that a path names
"""
