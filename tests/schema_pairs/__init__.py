"""Pairs of schemas, and what a real Pulsar said of each under every strategy.

``by_hand`` and ``generated`` make the cases, ``real_answers.jsonl`` keeps the answers, one line per case; beside them,
``definitions`` and ``real_definitions.jsonl``. To add a case, ask the real one again, see ``asking``.
"""
