"""How large the parts of the node's journal may be.

Checked against each other once, here, so that the journal itself may rely on them: a table of all
groups and one entry of the largest size always fit into an empty file.
"""

from dataclasses import dataclass

from lograft_replication import journal_format
from lograft_wire import errors

FILE_BYTES_CEILING = 1 << 30  # recovery reads a file at once; a position must fit 32 bits


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalLimits:
    file_bytes: int = 64 << 20
    entry_bytes_max: int = 4 << 20
    flush_bytes_max: int = 8 << 20  # a flush takes no further record beyond this
    memory_bytes_max: int = 256 << 20  # entries kept in memory, all groups together
    spare_files_max: int = 4  # as much as a fast leader writes between two checkpoints
    group_count_max: int = 4096
    vote_bytes_max: int = 256
    mark_delay_ms: int = 100  # quiet time before the last batch is marked as durable

    def __post_init__(self) -> None:
        table_bytes = journal_format.table_bytes(self.group_count_max, self.vote_bytes_max)
        least = (
            journal_format.FILE_HEADER_BYTES
            + journal_format.record_bytes(table_bytes)
            + journal_format.record_bytes(self.entry_bytes_max)
        )
        if not least <= self.file_bytes <= FILE_BYTES_CEILING or self.file_bytes % 512:
            raise errors.ConfigError(
                f"journal file_bytes {self.file_bytes} must be a multiple of 512 from {least} "
                f"(a table of {self.group_count_max} groups and an entry of "
                f"{self.entry_bytes_max} bytes) to {FILE_BYTES_CEILING}"
            )
        if min(self.flush_bytes_max, self.group_count_max, self.vote_bytes_max) < 1:
            raise errors.ConfigError("journal limits must be positive")
        if min(self.memory_bytes_max, self.spare_files_max, self.mark_delay_ms) < 0:
            raise errors.ConfigError("journal limits may not be negative")
