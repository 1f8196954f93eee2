"""Programs that take a test for a person."""

import os
import pty
import select
import subprocess
import time


class Terminal:
    """A program that takes this for a person's terminal."""

    def __init__(self, arguments, environment):
        self.main, child = pty.openpty()
        self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *arguments], stdin=child, stdout=child, stderr=child,
                                        env={**environment, "TERM": "xterm"}, start_new_session=True)
        self.unread = b""
        os.close(child)

    def type(self, text):
        os.write(self.main, text.encode())

    def until(self, words, seconds=60):
        """Reads until `words` were shown, and no further."""
        deadline = time.monotonic() + seconds
        while words.encode() not in self.unread:
            ready, _, _ = select.select([self.main], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise AssertionError(f"{words!r} was not shown, only {self.unread!r}")
            self.unread += os.read(self.main, 4096)
        self.unread = self.unread.partition(words.encode())[2]

    def read(self, seconds=60):
        """All that is shown until the program ends, and how it does."""
        deadline = time.monotonic() + seconds
        while True:
            ready, _, _ = select.select([self.main], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise AssertionError(f"not ended, only {self.unread!r}")
            try:
                self.unread += os.read(self.main, 4096)
            except OSError:  # nobody has the other end any more
                return self.unread.decode(), self.process.wait(10)

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.main)
