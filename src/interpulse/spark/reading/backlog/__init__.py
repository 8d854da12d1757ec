"""Unread entries of a stream.

* `poll_pace`: the interval between questions about their end
* `trigger_minimum`: the decision whether they are enough for a micro-batch
* `losses`: the decision whether some of them are gone
"""
