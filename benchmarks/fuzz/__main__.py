"""Coverage-guided fuzzing of everything that reads a model's reply.

    python -m benchmarks.fuzz [--quick] [--seconds 60] [--executions N] [--seed 0]

Begins with the replies of tests/data/malformed and changes them: pieces cut, doubled, moved, put
in from a dictionary or from another input, bytes turned. An input that makes a line follow another
for the first time, in the files that read replies, is kept and changed further. Of every text must
hold: a reader returns or raises ReplyError, nothing else; what is read can be stored (finite, whole
characters) and its own JSON gives it again; a judge's answer is an accepted value with its rank;
and the steps taken stay in proportion to the length. What breaks one of these is shortened and
printed, and belongs into tests/data/malformed/found.jsonl.

Deterministic by seed, except for where the time limit falls; --executions gives a number instead.
*Target*: 0 broken; at most 100 lines of Python for each character.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks.fuzz.arcs import Arc, Arcs
from benchmarks.fuzz.targets import WORDS, files, targets
from benchmarks.malformed.corpus import corpus
from benchmarks.malformed.readers import readings
from benchmarks.outcome import Row, finish

SECONDS, QUICK_EXECUTIONS = 60.0, 3000
LONGEST, LONGEST_SEED = 4000, 1500  # characters
STEPS_PER_CHARACTER, STEPS_AT_ONCE = 100, 5000
_WARM = ('{"warm": "up"}', "Clear enough. The final score is 3.")
Target = Callable[[str], object]


@dataclass
class Found:
    """An input that broke something: shortened, with what was raised."""

    target: str
    text: str
    error: str


@dataclass
class Fuzz:
    """The loop's state: inputs that showed something new, everything seen, what broke."""

    rng: random.Random
    targets: dict[str, Target]
    arcs: Arcs = field(default_factory=lambda: Arcs(files()))
    pool: list[tuple[str, str]] = field(default_factory=list)
    seen: set[Arc] = field(default_factory=set)
    broken: dict[tuple[str, str], Found] = field(default_factory=dict)
    executions: int = 0
    most_steps: float = 0.0  # per character
    slowest: str = ""

    def start(self, seeds: list[tuple[str, str]], go_on: Callable[[], bool]) -> None:
        """Run the seeds; those that show something new are the first inputs.

        What the readers keep from one call to the next is made before anything is counted.
        """
        for call in self.targets.values():
            for text in _WARM:
                call(text)
        for target, text in seeds:
            if go_on():
                self.run(target, text)

    def run(self, target: str, text: str) -> None:
        """One execution."""
        self.executions += 1
        error = self._tried(target, text)
        if error is not None:
            key = (target, _kind(error))
            if key not in self.broken:
                self.broken[key] = Found(target, self._shortened(target, text, error), error)
            return
        if new := self.arcs.seen - self.seen:
            self.seen |= new
            self.pool.append((target, text))
        rate = max(0, self.arcs.steps - STEPS_AT_ONCE) / max(1, len(text))
        if rate > self.most_steps:
            self.most_steps, self.slowest = rate, text

    def _tried(self, target: str, text: str) -> str | None:
        """What is wrong, None if nothing."""
        try:
            self.arcs.run(self.targets[target], text)
        except Exception as error:  # noqa: BLE001  that is what is looked for
            return f"{type(error).__name__}: {error!s:.200}"
        most = STEPS_AT_ONCE + STEPS_PER_CHARACTER * len(text)
        return f"too slow: {self.arcs.steps} steps" if self.arcs.steps > most else None

    def _shortened(self, target: str, text: str, error: str) -> str:
        """The text without pieces that the same kind of error does not need."""
        kind = _kind(error)
        size = max(1, len(text) // 2)
        while size:
            at = 0
            while at < len(text):
                shorter = text[:at] + text[at + size :]
                wrong = self._tried(target, shorter)
                if wrong is not None and _kind(wrong) == kind:
                    text = shorter
                else:
                    at += size
            size //= 2
        return text

    def step(self) -> None:
        """Change one of the inputs, mostly one of the newer ones, and run it."""
        rng = self.rng
        recent = self.pool[-64:] if rng.random() < 0.5 else self.pool
        target, text = rng.choice(recent)
        for _ in range(rng.choice((1, 1, 2, 4))):
            text = changed(text, self.pool, rng)
        if rng.random() < 0.15:
            target = rng.choice(list(self.targets))
        self.run(target, text[:LONGEST])


def _kind(error: str) -> str:
    return error.partition(":")[0]


def changed(text: str, pool: list[tuple[str, str]], rng: random.Random) -> str:
    """The text with one change."""
    a, b = sorted((rng.randint(0, len(text)), rng.randint(0, len(text))))
    b = min(b, a + rng.choice((1, 3, 10, 60)))
    match rng.randrange(9):
        case 0:
            return text[:a] + text[b:]
        case 1:
            return text[:b] + text[a:b] * rng.choice((1, 2, 30)) + text[b:]
        case 2:
            return text[:a] + rng.choice(WORDS) + text[a:]
        case 3:
            return text[:a] + rng.choice(WORDS) + text[b:]
        case 4:
            other = rng.choice(pool)[1]
            return text[:a] + other[rng.randint(0, len(other)) :]
        case 5:
            other = rng.choice(pool)[1]
            c = rng.randint(0, len(other))
            return text[:a] + other[c : c + 60] + text[b:]
        case 6:
            return text[:a] + text[b : b + 20] + text[a:b] + text[b + 20 :]
        case 7:
            return text[:a] if rng.random() < 0.5 else text[a:]
        case _:
            return _turned(text, a, rng)


def _turned(text: str, at: int, rng: random.Random) -> str:
    """One bit of one byte."""
    data = bytearray(text.encode("utf-8", "surrogatepass"))
    if data:
        at = min(len(data) - 1, at)
        data[at] ^= 1 << rng.randrange(8)
    return data.decode("utf-8", "replace")


def seeds(rng: random.Random) -> list[tuple[str, str]]:
    """(target, text) of the hand-written replies, in an order by seed."""
    found = [("judge", row.reply) for row in corpus()]
    found += [("judge, cut off", row.reply) for row in corpus() if row.finish == "length"]
    found += [("judge, one criterion", r.reply) for r in corpus() if len(r.criteria) == 1]
    found += [("ladder", row.reply) for row in corpus()[::5]]
    found += [(one.reader, one.reply) for one in readings() if one.reader != "tool"]
    short = [one for one in found if len(one[1]) <= LONGEST_SEED]
    rng.shuffle(short)
    return short


def fuzz(seed: int, executions: int | None, seconds: float) -> Fuzz:
    """Run until the number of executions is reached or, without one, the time is over."""
    rng = random.Random(seed)
    state = Fuzz(rng, targets())
    ends = time.monotonic() + seconds

    def go_on() -> bool:
        return time.monotonic() < ends if executions is None else state.executions < executions

    state.start(seeds(rng), go_on)
    while go_on():
        state.step()
    return state


def main() -> int:
    """Fuzz; see the top of the file."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--executions", type=int)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    executions = QUICK_EXECUTIONS if options.quick else options.executions
    began = time.monotonic()
    state = fuzz(options.seed, executions, options.seconds)
    taken = time.monotonic() - began
    for one in state.broken.values():
        print(f"{one.target}: {one.error}\n    {one.text!r:.1000}")
    print(f"slowest: {state.most_steps:.1f} lines per character, {state.slowest!r:.300}")
    rows = [
        Row("executions", f"{state.executions} in {taken:.0f} s"),
        Row("arcs covered", f"{len(state.seen)}, {len(state.pool)} inputs kept"),
        Row("broken", str(len(state.broken)), "0", not state.broken),
        Row("most lines of Python per character", f"{state.most_steps:.1f}",
            f"at most {STEPS_PER_CHARACTER}", state.most_steps <= STEPS_PER_CHARACTER),
    ]  # fmt: skip
    return finish("fuzz", rows, executions=state.executions, arcs=len(state.seen))


if __name__ == "__main__":
    sys.exit(main())
