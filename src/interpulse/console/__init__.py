"""The console: pages for people at ``/console``, which make calls of the admin API in the name of their visitor.

Nothing but `front_end` and `availability` is imported before the first visit.
"""
