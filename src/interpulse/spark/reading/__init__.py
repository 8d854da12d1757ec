"""The source: planned on the driver, read on executors."""
