"""Raft groups on pysyncobj: journal, transport, membership and ownership."""
