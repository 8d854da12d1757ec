"""What of a stream is not read yet: `poll_pace` how often it is asked for, `trigger_minimum` whether it is enough for a
micro-batch, `losses` whether some of it is gone.
"""
