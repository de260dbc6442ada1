"""A node of its own for the crash tests.

python writer.py FOLDER write    append until killed; a line per confirmed record
python writer.py FOLDER read     after recovery: a line per record found, then "end"
"""

import asyncio
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from crash import parts
from lograft_log.env import RealDisk, RealRng
from lograft_replication import identity
from lograft_replication.membership import Config


class NoPeers:
    def attach(self, _events: object) -> None:
        pass

    def send(self, _peer: str, _frame: object) -> bool:
        return False

    def backlog_bytes(self, _peer: str) -> int:
        return 0


async def main() -> None:
    folder, what = sys.argv[1:]
    disk = RealDisk()
    disk.make_folder(folder)
    me = identity.load_or_create(disk, folder, "crash", "crash-tests", RealRng())
    leads = asyncio.Event()
    host = parts.make_host(folder, me, NoPeers(), leads.set)
    host.start()
    if parts.GROUP not in host.groups:
        host.create_group(parts.GROUP, Config((host.node,)))
    group = host.groups[parts.GROUP]
    await leads.wait()
    if what == "write":
        parts.Load(group).take_over()
        await asyncio.sleep(3600)
    sys.stdout.write(parts.read_all(group) + "end\n")
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(main())
