"""A client's TCP connection that knows how much its client has yet to take."""

from __future__ import annotations

import asyncio
import fcntl
import sys
import termios
from typing import Any

from twisted.internet import tcp

MOST_UNSENT = 256 << 10  # bytes that wait for one client, about; nothing more is made for it meanwhile


class Connection(tcp.Server):  # type: ignore[misc]
    """Twisted's, which buffers whatever it is given."""

    _written = 0  # bytes that the kernel has taken
    _room: asyncio.Future[None] | None = None

    @property
    def unsent(self) -> int:
        """Bytes that wait in this process, the kernel's buffer being full."""
        return len(self.dataBuffer) - self.offset + self._tempDataLen if self.connected else 0

    @property
    def is_waited_for(self) -> bool:
        """Whether the client's side has not taken all that was sent to it."""
        return bool(self.unsent or self._in_kernel())

    @property
    def taken(self) -> int:
        """Bytes that the client's side has taken so far."""
        return self._written - self._in_kernel()

    def _in_kernel(self) -> int:
        """Bytes that the kernel has from this process and that the client's has not acknowledged."""
        if not self.connected or sys.platform != "linux":
            return 0
        return int.from_bytes(fcntl.ioctl(self.fileno(), termios.TIOCOUTQ, bytes(4)), sys.byteorder)

    def writeSomeData(self, data: bytes) -> Any:
        result = super().writeSomeData(data)
        if isinstance(result, int):
            self._written += result
            if self._room is not None and self.unsent - result <= MOST_UNSENT // 2:
                self._wake()
        return result

    def connectionLost(self, reason: Any) -> None:
        super().connectionLost(reason)
        self._wake()

    @property
    def is_behind(self) -> bool:
        """Whether somebody waits for room."""
        return self._room is not None

    async def has_room(self) -> None:
        """Wait until not much is unsent, or the client has gone."""
        while self.unsent > MOST_UNSENT:
            if self._room is None:
                self._room = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._room)  # others may wait for it, too

    def _wake(self) -> None:
        if self._room is not None:
            self._room.set_result(None)
            self._room = None
