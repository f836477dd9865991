"""Ctrl-C, raised where it can be answered: not while a compiled module is imported, which may lose it.

An interruption that comes there waits until the module is there; whoever presses Ctrl-C once more ends the process.
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


class Interruptions:
    """What to do with Ctrl-C in this thread while a function runs, the one with this code."""

    def __init__(self, function: CodeType) -> None:
        self._function, self._thread = function, _thread.get_ident()
        self._waits = False  # for the end of an import
        self._is_ours = False  # the signal that is under way
        self.came = False

    def answer(self) -> None:
        """Answer Ctrl-C from now on, even where it was ignored, as in a script in the background."""
        signal.signal(signal.SIGINT, self._come)

    def raise_all(self) -> None:
        """Raise even those again, and print nothing of them, that come where Python cannot: while it clears garbage."""
        usual = sys.unraisablehook

        def again(unraisable: sys.UnraisableHookArgs) -> None:
            if isinstance(unraisable.exc_value, KeyboardInterrupt):
                self._wait()
            else:
                usual(unraisable)

        sys.unraisablehook = again

    def _come(self, number: int, frame: FrameType | None) -> None:
        self.came = True
        if not self._is_importing(frame):
            self._waits = self._is_ours = False
            raise KeyboardInterrupt
        is_ours, self._is_ours = self._is_ours, False
        if self._waits and not is_ours:
            os.write(2, b"bilevel: interrupted\n")
            os._exit(130)
        if not self._waits:
            self._wait()

    def _is_importing(self, frame: FrameType | None) -> bool:
        """Whether a compiled module is being made, and all that this imports in turn."""
        while frame is not None and frame.f_code is not self._function:
            is_loading = frame.f_code.co_name in ("create_module", "exec_module")
            if is_loading and type(frame.f_locals.get("self")).__name__ == "ExtensionFileLoader":
                return True
            frame = frame.f_back
        return False

    def _wait(self) -> None:
        self._waits = True
        _thread.start_new_thread(self._come_later, ())

    def _come_later(self) -> None:
        """Send the signal anew when the module is there; if another is being imported by then, once more."""
        while self._waits:
            time.sleep(PAUSE)
            is_importing = self._is_importing(sys._current_frames().get(self._thread))
            if self._waits and not self._is_ours and not is_importing:
                self._is_ours = True
                signal.pthread_kill(self._thread, signal.SIGINT)


def let_go() -> None:
    """Let Ctrl-C end this process at once, and silently: what it had to do is done."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
