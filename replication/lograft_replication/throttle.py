"""A token bucket: how many bytes may go now. Pure; the caller says what time it is."""


class Throttle:
    def __init__(self, *, bytes_per_s: float, burst_bytes: int, now_s: float) -> None:
        assert min(bytes_per_s, burst_bytes) > 0, (bytes_per_s, burst_bytes)
        self._bytes_per_s = bytes_per_s
        self._burst_bytes = burst_bytes
        self._tokens = float(burst_bytes)  # at most burst_bytes; below zero after a large piece
        self._at_s = now_s

    def take(self, now_s: float, size: int) -> bool:
        """Whether `size` bytes may go now; if so they are counted. A piece larger than the burst
        goes when the bucket is full and is paid for afterwards."""
        if now_s > self._at_s:
            grown = self._tokens + (now_s - self._at_s) * self._bytes_per_s
            self._tokens = min(grown, self._burst_bytes)
            self._at_s = now_s
        if self._tokens < min(size, self._burst_bytes):
            return False
        self._tokens -= size
        return True
