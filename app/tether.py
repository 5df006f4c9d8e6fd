"""Ties a process to the one that starts it: on Linux the kernel kills it when its parent dies, SIGKILL included.

`tethered(command)` is a command line that runs this file as a tiny program: it asks the kernel for the signal, makes
sure that the parent has not died meanwhile, and becomes `command` (same pid). No `preexec_fn`, so it is safe beside
threads. The kernel watches the *thread* that forked: start processes from one that lasts, such as the main thread.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def tethered(command: list[str]) -> list[str]:
    """`command`, to be started by this process and ended with it. Outside Linux the command itself."""
    if sys.platform != "linux":
        return command
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), *command]


def end_with_parent(parent: int, how: signal.Signals = signal.SIGKILL) -> None:
    """Receive `how` when `parent`, which must be this process's parent, dies. At once, if it is dead already."""
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, int(how), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) was refused")
    if os.getppid() != parent:
        os.kill(os.getpid(), how)


def main() -> None:
    """Entry of the tiny program: parent's pid, then the command."""
    parent, command = int(sys.argv[1]), sys.argv[2:]
    end_with_parent(parent)
    # Python ignores SIGPIPE, and an ignored signal would stay ignored in the program that follows.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)  # noqa: S606 - the command is our own part, and becoming it is the point
    except OSError as error:
        sys.exit(f"cannot start {command[0]}: {error.strerror}")


if __name__ == "__main__":
    main()
