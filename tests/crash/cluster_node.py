"""One of three nodes for the crash tests of a cluster, with real links.

    python cluster_node.py FOLDER NAME NAME=ID=PORT NAME=ID=PORT NAME=ID=PORT

Prints a line per record confirmed while it leads. Commands on standard input, one per line: `leads`
(answers "leads yes" or "leads no"), `stop` (no more load), `read` (every record it holds, then
"end", with "at APPLIED" before).
"""

import asyncio
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from crash import parts
from lograft_log.env import RealClock, RealDisk, RealRng
from lograft_replication import handshake, identity, link_protocol
from lograft_replication.link import LinkNetwork
from lograft_replication.membership import Config

SECRET = b"a secret for crash tests only"
CLUSTER = "crash-tests"


async def main() -> None:
    folder, name = sys.argv[1:3]
    members = [word.split("=") for word in sys.argv[3:]]
    rng = RealRng()
    me = identity.load_or_create(RealDisk(), folder, name, CLUSTER, rng)
    addresses = {other: ("127.0.0.1", int(port)) for other, _, port in members}
    network = LinkNetwork(
        handshake.Identity(
            name=name, incarnation=me.incarnation, boot=rng.token(16), cluster=CLUSTER
        ),
        secret=SECRET,
        listen=addresses[name],
        addresses=addresses,
        rng=rng,
        clock=RealClock(),
        limits=link_protocol.Limits(),
    )
    load: parts.Load | None = None

    def leads() -> None:
        if load is not None:
            load.take_over()

    host = parts.make_host(folder, me, network, leads)
    host.start()
    if parts.GROUP not in host.groups:
        host.create_group(parts.GROUP, Config(tuple(node_id for _, node_id, _ in members)))
    group = host.groups[parts.GROUP]
    load = parts.Load(group)
    await network.start()
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    while line := await reader.readline():
        match line.decode().strip():
            case "leads":
                os.write(1, f"leads {'yes' if group.serving else 'no'}\n".encode())
            case "stop":
                load.running = False
            case "read":
                found = parts.read_all(group)
                sys.stdout.write(f"at {group.applied_index}\n{found}end\n")
                sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(main())
