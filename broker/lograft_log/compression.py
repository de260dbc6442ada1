"""Compressed batches: many frames folded into one, and unfolded again.

lz4 uses the block form, zstd the frame form; both unfold into exactly the number of bytes that the
batch says, and the frames inside are verified again. Files are left to `writer` and `segment`.
"""

import lz4.block
import zstandard
from typing_extensions import Buffer

from lograft_log.hot import record
from lograft_log.settings import Codec, LogLimits
from lograft_wire.errors import DamagedError

BATCH = 4  # attribute bit of a compressed batch
CODEC_MASK = 3
ZSTD_LEVEL = 3
FIXED_BYTES = record.FRAME_HEADER_BYTES + 28  # frame header and fixed part of a batch


def fold(frames: bytes, codec: Codec, limits: LogLimits) -> bytes:
    """One compressed frame of plain frames, or the frames themselves where that is smaller or the
    one frame would be too large."""
    if codec is Codec.NONE or not frames or len(frames) > limits.plain_bytes_max:
        return frames
    span = record.scan(frames, 0, len(frames), offset_min=0, payload_max=record.PAYLOAD_BYTES_LIMIT)
    assert span.fault == 0, record.FAULTS[span.fault]
    assert span.batch_count == 0, "a batch inside a batch"
    packed = _compress(frames, codec)
    payload_bytes = len(packed) + FIXED_BYTES - record.FRAME_HEADER_BYTES
    if len(packed) + FIXED_BYTES >= len(frames) or payload_bytes > limits.payload_bytes_max:
        return frames
    return record.wrap(
        packed,
        codec=codec.value,
        record_count=span.record_count,
        offset_first=span.offset_first,
        offset_last=span.offset_last,
        timestamp_ms=span.timestamp_ms_max,
        plain_bytes=len(frames),
    )


def unfold(frames: Buffer, limits: LogLimits, *, path: str = "", position: int = -1) -> Buffer:
    """Plain frames of verified frames. `path` and `position` name them in an error."""
    view = memoryview(frames)
    parts: list[Buffer] = []
    plain_from = 0
    for start, size, attributes, count, first, last, plain_bytes in record.frames(view):
        if not attributes & BATCH:
            continue
        if start > plain_from:
            parts.append(view[plain_from:start])
        plain_from = start + size
        inner = _unpack(view[start + FIXED_BYTES : start + size], attributes, plain_bytes, limits)
        if not _fits(inner, count=count, first=first, last=last):
            raise DamagedError(
                f"{path}: compressed batch of offset {first} at {position + start} does not unfold",
                path=path,
                position=position + start,
            )
        parts.append(inner)
    if not parts:
        return frames
    if plain_from < len(view):
        parts.append(view[plain_from:])
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _fits(inner: bytes, *, count: int, first: int, last: int) -> bool:
    payload_max = record.PAYLOAD_BYTES_LIMIT
    span = record.scan(inner, 0, len(inner), offset_min=first, payload_max=payload_max)
    if span.fault or span.batch_count or span.record_count != count or not count:
        return False
    return (span.offset_first, span.offset_last) == (first, last)


def _compress(data: bytes, codec: Codec) -> bytes:
    if codec is Codec.LZ4:
        packed: bytes = lz4.block.compress(data, store_size=False)
        return packed
    return zstandard.compress(data, level=ZSTD_LEVEL)


def _unpack(data: memoryview, attributes: int, plain_bytes: int, limits: LogLimits) -> bytes:
    """Empty when the bytes are not what they say: the caller refuses that as damage."""
    if not 0 < plain_bytes <= limits.plain_bytes_max:
        return b""
    try:
        if attributes & CODEC_MASK == Codec.LZ4.value:
            plain: bytes = lz4.block.decompress(data, uncompressed_size=plain_bytes)
        elif attributes & CODEC_MASK == Codec.ZSTD.value:
            if zstandard.frame_content_size(data) != plain_bytes:
                return b""
            plain = zstandard.decompress(data, max_output_size=plain_bytes)
        else:
            return b""
    except (lz4.block.LZ4BlockError, zstandard.ZstdError, ValueError):
        return b""
    return plain if len(plain) == plain_bytes else b""
