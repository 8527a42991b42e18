"""The memory ledger of a host: every byte of MemTotal with its owner."""
