"""The log of a topic: its ledgers, its newest entries and its compacted ledger, over a journal."""
