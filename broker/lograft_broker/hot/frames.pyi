from typing_extensions import Buffer

FRAME_BYTES_EXTRA: int
FAULTS: tuple[str, ...]

def scan(
    data: Buffer, start: int, payload_max: int
) -> tuple[list[tuple[int, int, int, int]], int, str]: ...
def publish(arguments: Buffer) -> tuple[bytes, bytes, bool, bool] | None: ...
def properties(
    data: Buffer,
) -> tuple[int, bytes | None, int, int, bytes | None, bytes | None] | None: ...
def delivery(
    *,
    channel: int,
    tag: Buffer,
    delivery_tag: int,
    redelivered: bool,
    names: Buffer,
    properties: Buffer,
    body: Buffer,
    payload_max: int,
) -> bytes: ...
