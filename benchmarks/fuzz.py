"""Does any file or any option break the program? Damaged files and odd words are given to it, a million times.

    python benchmarks/fuzz.py --inputs 10000
    python benchmarks/fuzz.py --inputs 1000000 --workers 16

Each input is a command, in this process or, one of a thousand, in its own. It must end with the exit code 0, 1 or 2,
say at most one line of error, show no traceback, not hang, and leave all files alone that were not named to be written.
What takes long is interrupted, and must then end with 130. Inputs depend on the seed and their number alone:
`--first N --inputs 1` shows one again.
"""

from __future__ import annotations

import argparse
import faulthandler
import io
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import partial
from multiprocessing.connection import Connection, wait
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from fuzz_corpus import FORMATS, Format, has, make_corpus
from fuzz_options import COMMANDS, ONLY_READ, SLOW, words
from fuzz_sandbox import Sandbox, add_users_files
from mutations import mutated, mutated_hdf5, mutated_json
from result_files import origin, read_rows, write_rows

from bilevel import cli
from bilevel.processes import Worker, WorkerDied, stop_workers

TASK_FILE = Path(__file__).parents[1] / "tests" / "tiny_task.py"
CHAPTER = 20_000  # inputs that have a row in the output: an interrupted run goes on behind the last of them
BLOCK = 500  # inputs that are handed out at a time
OUTSIDE = 1000  # every so many inputs, one is given to a process of its own
OPTIONS = 0.35  # the part of the inputs that are options; the rest are files
PATIENCE = 2.0  # CPU seconds before an input is interrupted
LAST = 30.0  # seconds before it hangs, and again as many where Python does not even notice the alarm
MEMORY = 4 << 30  # bytes that a process may take
REMEMBERED = 1000  # commands whose words need not be read again
NOISE = ("Traceback (most recent call last)", "Warning: ", "Exception ignored")


class Hang(BaseException):
    """An input takes for ever."""


class Fault(NamedTuple):
    """What is wrong, with which input."""

    number: int
    about: str
    what: str


class Found(NamedTuple):
    """What came of some inputs: how many of each kind ended how."""

    counts: Counter[tuple[str, str]]
    faults: list[Fault]


class Block(NamedTuple):
    """Inputs that are handed out together, but for some that have ended a process."""

    first: int
    inputs: int
    skipped: tuple[int, ...] = ()


class Input(NamedTuple):
    """A command, and the file that was damaged for it, if any."""

    kind: str
    words: list[str]
    path: Path | None = None
    data: bytes | None = None  # None: a folder is there instead


def drawn(number: int, seed: int, formats: list[Format]) -> Input:
    """Return the input of a number; the working folder holds the corpus."""
    rng = Random(f"{seed}/{number}")
    if rng.random() < OPTIONS:
        while True:
            command = rng.choice(COMMANDS)
            if rng.random() < SLOW.get(command, 1.0):
                return Input(f"options of {command}", words(command, rng))
    format_ = rng.choices(formats, [one.weight for one in formats])[0]
    files = sorted(path for path in Path().glob(format_.files) if path.is_file())
    path, other = rng.choice(files), rng.choice(files)
    given = [word.format(path=path, folder=path.parent) for word in rng.choice(format_.commands).split()]
    if rng.random() < 0.01:
        return Input(format_.name, given, path, None)
    return Input(format_.name, given, path, _damaged(path.read_bytes(), other.read_bytes(), format_.is_json, rng))


def _damaged(data: bytes, other: bytes, is_json: bool, rng: Random) -> bytes:
    if data.startswith(b"\x89HDF"):
        return mutated_hdf5(data, rng)
    return mutated_json(data, rng) if is_json and rng.random() < 0.6 else mutated(data, rng, other)


# Carrying out


class Output(io.TextIOWrapper):
    """A stream to look at afterwards, with a number as one of a terminal has."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", errors="backslashreplace", write_through=True)

    def fileno(self) -> int:
        return os.open(os.devnull, os.O_WRONLY)

    def text(self) -> str:
        assert isinstance(self.buffer, io.BytesIO)
        return self.buffer.getvalue().decode("utf-8", "replace")


def _alarm(number: int, _: object) -> None:
    if number == signal.SIGALRM:
        raise Hang
    raise KeyboardInterrupt


def _passed_over(unraisable: sys.UnraisableHookArgs) -> None:
    """Send an alarm again that came while garbage is cleared, where Python cannot raise it: `bilevel` does the same."""
    if isinstance(unraisable.exc_value, KeyboardInterrupt):
        signal.setitimer(signal.ITIMER_PROF, 0.01)
    else:
        sys.__unraisablehook__(unraisable)


def outcome(given: list[str]) -> tuple[int | None, str]:
    """Carry out a command; return its exit code and what it wrote to standard error, a traceback included."""
    before, sys.stdout, sys.stderr = (sys.stdout, sys.stderr), Output(), (errors := Output())
    faulthandler.dump_traceback_later(2 * LAST, exit=True, file=1)
    signal.setitimer(signal.ITIMER_PROF, PATIENCE)
    signal.setitimer(signal.ITIMER_REAL, LAST)
    try:
        cli.main(given)
        code: Any = None
    except SystemExit as stopped:
        code = stopped.code
    except Hang:
        code = None
        errors.write("it hangs: " + "".join(traceback.format_exc()))
    except BaseException:
        code = None
        errors.write(traceback.format_exc())
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        faulthandler.cancel_dump_traceback_later()
        sys.stdout, sys.stderr = before
    return code, errors.text()


def outcome_outside(given: list[str]) -> tuple[int | None, str]:
    """Carry out a command in a process of its own, as a user does; interrupt it where it takes long."""
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-m", "bilevel", *given], stdout=pipe, stderr=pipe)
    for number in (signal.SIGINT, signal.SIGKILL):
        try:
            errors = process.communicate(timeout=LAST)[1]
            break
        except subprocess.TimeoutExpired:
            process.send_signal(number)
    else:
        errors = process.communicate()[1]
    return process.returncode, errors.decode("utf-8", "replace")


def judged(code: int | None, errors: str) -> tuple[str, str]:
    """Return how an input ended, in a word, and what is wrong with that, if anything."""
    kinds = {0: "accepted", 1: "answered no", 2: "refused", 130: "interrupted"}
    lines = errors.splitlines()
    if code not in kinds:
        return "fault", f"the exit code is {code}: {errors[-2000:]}"
    if any(word in errors for word in NOISE):
        return "fault", errors[-2000:]
    if code in (2, 130) and (
        not lines or not lines[-1].startswith("bilevel: ") or sum("bilevel: " in line for line in lines) > 1
    ):
        return "fault", f"not one line of error: {errors[-2000:]!r}"
    if code == 2 and len(lines) > 1:
        return "fault", f"more than one line of error: {errors[-2000:]!r}"
    return kinds[code], ""


def fuzz(corpus: str, block: Block, seed: int) -> Found:
    """Give some inputs to the program."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for kind in (RuntimeWarning, UserWarning, FutureWarning):
        warnings.simplefilter("always", kind)
    for alarm in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(alarm, _alarm)
    sys.unraisablehook = _passed_over
    for command in ONLY_READ:
        cli.load(command).run = lambda self: 0
    formats = [one for one in FORMATS if has(one.package)]
    found = Found(Counter(), [])
    home = os.getcwd()
    with tempfile.TemporaryDirectory(dir=Path(corpus).parent) as folder, open(Path(folder) / "noise", "w+b") as noise:
        sandbox, real = Sandbox(Path(corpus), Path(folder) / "here"), os.dup(2)
        os.dup2(noise.fileno(), 2)  # what is not written by Python
        try:
            for number in (one for one in range(block.first, block.first + block.inputs) if one not in block.skipped):
                _note(corpus, block).write_text(str(number), encoding="ascii")
                _one(number, seed, formats, sandbox, found)
                if noise.seek(0, os.SEEK_END):
                    noise.seek(0)
                    found.faults.append(Fault(number, "", f"written past Python: {noise.read()[-500:]!r}"))
                    noise.truncate(0)
        finally:
            os.dup2(real, 2)
            os.close(real)
            os.chdir(home)
    return found


def _remembering(read: Callable[..., Any]) -> Callable[..., Any]:
    """Return what makes commands of words, but of the same words only once: most damaged files are given to a few."""
    known: dict[tuple[str, ...], Any] = {}

    def command(kind: Any, words: Sequence[str], program: str) -> Any:
        if (key := (program, *words)) not in known:
            if len(known) == REMEMBERED:
                known.clear()
            known[key] = read(kind, words, program)
        return copy(known[key])

    return command


def _one(number: int, seed: int, formats: list[Format], sandbox: Sandbox, found: Found) -> None:
    given = drawn(number, seed, formats)
    if given.path:
        sandbox.put(given.path, given.data)
    is_outside = number % OUTSIDE == 0 and given.kind.removeprefix("options of ") not in ONLY_READ
    code, errors = (outcome_outside if is_outside else outcome)(given.words)
    verdict, wrong = judged(code, errors)
    may_write = {word.partition("=")[2] if word.startswith("--") else word for word in given.words[1:]}
    may_write |= {str(Path(word).with_suffix(".timings.jsonl")) for word in may_write if word.endswith(".jsonl")}
    if not given.kind.startswith("options"):
        may_write = {"out", "out.html", "demos", "unfinished", "results.jsonl", "results.timings.jsonl"}
    changed = sandbox.changes(may_write if code in (0, 1, 130) else set())
    if changed:
        verdict, wrong = "fault", f"{wrong} it has changed {', '.join(changed)} with the exit code {code}: {errors}"
    if given.path:
        sandbox.mend(given.path)
    found.counts[given.kind, verdict] += 1
    if wrong:
        about = f"bilevel {' '.join(map(repr, given.words))}" + (
            f" with {given.path}: {given.data!r:.600}" if given.path else ""
        )
        found.faults.append(Fault(number, about, wrong))


# The whole of it


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first input")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--output", type=Path, help="add a row to this file")
    given = parser.parse_args()
    done = {(row["first"], row["inputs"], row["seed"]) for row in (read_rows(given.output) if given.output else ())}
    faults, last = 0, given.first + given.inputs
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=place) as name:
        corpus = Path(name) / "corpus"
        corpus.mkdir()
        make_corpus(corpus, TASK_FILE)
        add_users_files(corpus / "user")
        for first in range(given.first, last, CHAPTER):
            chapter = Block(first, min(CHAPTER, last - first))
            if (*chapter[:2], given.seed) not in done:
                faults += _try(str(corpus), chapter, given)
    return 1 if faults else 0


def _try(corpus: str, chapter: Block, given: argparse.Namespace) -> int:
    """Try the inputs of a chapter, which then has a row in the output; return how many faults there are."""
    began, found = time.monotonic(), Found(Counter(), [])
    for part in _parts(corpus, chapter, given):
        found.counts.update(part.counts)
        found.faults.extend(part.faults)
        for fault in part.faults[:20]:
            print(f"input {fault.number}: {fault.about}\n{fault.what}\n", flush=True)
    _report(given, chapter, found, time.monotonic() - began)
    return len(found.faults)


def _parts(corpus: str, chapter: Block, given: argparse.Namespace) -> Iterator[Found]:
    """Yield what came of each block. A process that dies is a fault of its input; another goes on behind that."""
    last = chapter.first + chapter.inputs
    blocks = deque(Block(first, min(BLOCK, last - first)) for first in range(chapter.first, last, BLOCK))
    busy: dict[object, tuple[Worker, Block]] = {}

    def begin(worker: Worker, block: Block) -> None:
        worker.send(block)
        busy[worker.connection] = worker, block

    for _ in range(min(given.workers, len(blocks))):
        begin(Worker(partial(_serve, corpus, given.seed)), blocks.popleft())
    while busy:
        for connection in wait([worker.connection for worker, _ in busy.values()]):
            worker, block = busy.pop(connection)
            try:
                yield worker.receive()
            except WorkerDied as death:
                number = int(_note(corpus, block).read_text(encoding="ascii"))
                yield Found(Counter({("all", "fault"): 1}), [Fault(number, "the process died", str(death))])
                begin(Worker(partial(_serve, corpus, given.seed)), block._replace(skipped=(*block.skipped, number)))
                continue
            if blocks:
                begin(worker, blocks.popleft())
            else:
                stop_workers([worker])


def _serve(corpus: str, seed: int, connection: Connection) -> None:
    if has("torch"):  # whole: what is imported by half when an input is interrupted stays so for all others
        import torch

        torch.optim.Adam([torch.zeros(1, requires_grad=True)])
    cli._read = _remembering(cli._read)
    while True:
        connection.send(fuzz(corpus, connection.recv(), seed))


def _note(corpus: str, block: Block) -> Path:
    """Return the file that says which input of a block is being tried."""
    return Path(corpus).parent / f"at-{block.first}"


def _report(given: argparse.Namespace, chapter: Block, found: Found, seconds: float) -> None:
    kinds: dict[str, dict[str, int]] = {}
    for (kind, verdict), number in sorted(found.counts.items()):
        kinds.setdefault(kind, {})[verdict] = number
    for kind, verdicts in kinds.items():
        print(f"{kind:36} {', '.join(f'{verdict} {number}' for verdict, number in verdicts.items())}")
    total = Counter[str]()
    for (_, verdict), number in found.counts.items():
        total[verdict] += number
    told = f"{chapter.inputs} inputs from {chapter.first} on in {seconds:.0f} s: {dict(total)}"
    print(f"{told}, faults: {len(found.faults)}", flush=True)
    if given.output:
        about = {"first": chapter.first, "inputs": chapter.inputs, "seed": given.seed, "workers": given.workers}
        row = {**about, "seconds": round(seconds), "faults": len(found.faults), "verdicts": dict(total), "kinds": kinds}
        write_rows(given.output, [*read_rows(given.output), {**row, **origin(["numpy", "torch", "tyro", "msgspec"])}])


if __name__ == "__main__":
    sys.exit(main())
