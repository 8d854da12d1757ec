"""Options of ``format("pulsar")``: `option` what one is, `connection_options` those of every query.

Those of reading and writing stand in `reading/read_options.py` and `writing/write_options.py`.
"""
