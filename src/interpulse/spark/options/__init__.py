"""Options of ``format("pulsar")``: the declarations in `option`, those of every query in `connection_options`.

The options of reads and writes are in `reading/read_options.py` and `writing/write_options.py`.
"""
