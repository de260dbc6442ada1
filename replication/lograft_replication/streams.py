"""StreamMachine: the record logs of one shard, driven by a Raft group.

Each stream (a topic's partition, say) is a Log in a folder of its own. Records are appended without
a sync: the journal has them until a checkpoint has synced the logs. After a restart a log may be
ahead of the applied index, because it keeps every whole record it still finds; entries that come
again then find their records there and write nothing. What counts for every decision is therefore
the stream's own next offset, which follows the entries alone and is the same on every replica.

Leaves to the owner: numbering and encoding records, when to trim. See `stream_commands`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from lograft_log import layout, log, positions
from lograft_log.env import Clock, Disk
from lograft_log.log import Log
from lograft_log.positions import Positions
from lograft_log.settings import LogSettings
from lograft_log.sync import SyncWork
from lograft_replication import stream_commands, stream_state
from lograft_replication.machine import Capture, StateFile
from lograft_replication.stream_commands import Batch, Close, Open, Records, Trim
from lograft_replication.stream_state import StreamState
from lograft_wire.errors import RefusedError, StorageError
from typing_extensions import assert_never
