"""`tied.py PARENT COMMAND...`: become COMMAND, which the kernel kills when process PARENT dies.

Run as a script of its own before anything is imported, so that it costs a few milliseconds, works for
programs that are not Python, and needs no code between fork and exec in a process that has threads.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    parent, command = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the line above
            os.kill(os.getpid(), signal.SIGKILL)
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
