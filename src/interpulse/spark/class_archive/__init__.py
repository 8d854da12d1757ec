"""Spark's classes in an archive that Java maps into memory; ``python -m interpulse.spark.class_archive`` creates it."""
