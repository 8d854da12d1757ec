"""Values and their JSON: names, ids, policies, schemas, changes, errors.

Imports nothing else of the package; does no IO.
"""
