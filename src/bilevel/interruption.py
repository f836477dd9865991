"""Ctrl-C and SIGTERM, raised where they can be answered: not while a compiled module is imported, which may lose them.

A signal that comes there waits until the module is there; another one ends the process.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType

PAUSE = 0.002  # seconds
TOLD = 128 + signal.SIGTERM  # the exit code of what was told to end


class Interruptions:
    """What to do with these signals in this thread while a function runs, the one with this code."""

    def __init__(self, function: CodeType) -> None:
        self._function, self._thread = function, _thread.get_ident()
        self._waits = 0  # the signal that waits for the end of an import
        self._is_ours = False  # the signal that is under way
        self.came = 0  # the last one

    def answer(self) -> None:
        """Answer them from now on, Ctrl-C even where it was ignored, as in a script in the background."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._come)

    def raise_all(self) -> None:
        """Raise even those again, and print nothing of them, that come where Python cannot: while it clears garbage."""
        usual = sys.unraisablehook

        def again(unraisable: sys.UnraisableHookArgs) -> None:
            if self.came and isinstance(unraisable.exc_value, (KeyboardInterrupt, SystemExit)):
                self._wait(self.came)
            else:
                usual(unraisable)

        sys.unraisablehook = again

    def _come(self, number: int, frame: FrameType | None) -> None:
        self.came = number
        if not self._is_importing(frame):
            self._waits, self._is_ours = 0, False
            if number == signal.SIGTERM:
                raise SystemExit(TOLD)  # so that everything that was started is ended too
            raise KeyboardInterrupt
        is_ours, self._is_ours = self._is_ours, False
        if self._waits and not is_ours:
            if number == signal.SIGTERM:
                os._exit(TOLD)
            os.write(2, b"bilevel: interrupted\n")
            os._exit(130)
        if not self._waits:
            self._wait(number)

    def _is_importing(self, frame: FrameType | None) -> bool:
        """Whether a compiled module is being made, and all that this imports in turn."""
        while frame is not None and frame.f_code is not self._function:
            is_loading = frame.f_code.co_name in ("create_module", "exec_module")
            if is_loading and type(frame.f_locals.get("self")).__name__ == "ExtensionFileLoader":
                return True
            frame = frame.f_back
        return False

    def _wait(self, number: int) -> None:
        self._waits = number
        _thread.start_new_thread(self._come_later, ())

    def _come_later(self) -> None:
        """Send the signal anew when the module is there; if another is being imported by then, once more."""
        while self._waits:
            time.sleep(PAUSE)
            is_importing = self._is_importing(sys._current_frames().get(self._thread))
            if self._waits and not self._is_ours and not is_importing:
                self._is_ours = True
                signal.pthread_kill(self._thread, self._waits)


def let_go() -> None:
    """Let both end this process at once, and silently: what it had to do is done."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
