"""Schema compatibility: checks of the definitions of every type, and the strategies that compare them."""
