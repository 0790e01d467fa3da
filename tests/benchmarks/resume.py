"""What resuming a session costs, with 1,000 and with 100,000 messages behind it.

`python -m tests.benchmarks.resume [MESSAGES ...]` builds sessions with summaries and masks laid over them as long work
leaves them, then opens the store, resumes the session and makes the next view: CPU seconds, the least of several.
"""

import hashlib
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

from msgspec.structs import replace

from mycode.context.manager import ContextManager
from mycode.context.policy import Policy
from mycode.core.entries import Body, Entry, Note
from mycode.core.events import Event
from mycode.core.messages import AssistantMessage, ToolCall, ToolResult, UserMessage
from mycode.core.models import ModelInfo
from mycode.core.redact import redact
from mycode.core.summaries import MaskEpoch, SummaryRecord
from mycode.session.entries import sealed
from mycode.session.session import Session
from mycode.session.store import Store
from tests.benchmarks.measure import Options, Row

FOLD, MASK, TAIL = 400, 100, 100
RUNS = 7


class Quarter:
    """Counts a token per four characters."""

    exact = True

    def count(self, text: str) -> int:
        return len(text) // 4


def build(folder: Path, messages: int) -> None:
    """A session of so many messages, folded every 400 and masked every 100, each turn closed by its totals."""
    store = Store(folder)
    session = store.create(cwd="/work", title="long work")
    batch: list[Entry] = []
    for entry in _entries(messages):
        batch.append(entry)
        if len(batch) == 5_000:
            store.append(session, *batch)
            batch.clear()
    store.append(session, *batch)
    store.close()


def resume(folder: Path) -> float:
    """CPU seconds from a closed store to the view of the next request."""
    started = time.process_time()
    store = Store(folder)
    latest = store.latest("/work")
    assert latest is not None
    context = ContextManager(
        policy=Policy(),
        counter=Quarter(),
        info=ModelInfo("model", "test", 200_000, 8_000),
        system="You help.",
        clock=time.time,
        new_id=lambda: "id",
    )
    session = Session(store=store, session_id=latest.id, context=context, run=_no_turn, clock=time.time, redact=redact)
    assert context.view()
    assert session.usage().tokens
    spent = time.process_time() - started
    session.close()
    store.close()
    return spent


def main(sizes: list[int]) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        found = []
        for size in sizes:
            folder = Path(scratch, str(size))
            build(folder, size)
            found.append(min(resume(folder) for _ in range(RUNS)))
            megabytes = sum(file.stat().st_size for file in folder.iterdir()) / 1e6
            print(f"{size:>9,} messages  {megabytes:8.1f} MB  {found[-1] * 1000:8.2f} ms CPU")
        print(f"ratio {found[-1] / found[0]:.2f} (largest to smallest)")


def rows(options: Options) -> list[Row]:
    """What resuming the largest costs against the smallest."""
    del options
    found = {}
    with tempfile.TemporaryDirectory() as scratch:
        for size in (1_000, 10_000, 100_000):
            folder = Path(scratch, str(size))
            build(folder, size)
            found[size] = min(resume(folder) for _ in range(RUNS))
    note = ", ".join(f"{size:,}: {seconds * 1000:.1f} ms" for size, seconds in found.items())
    return [Row("resume 100,000 to 1,000 messages", found[100_000] / found[1_000], "x", 2.0, note=note)]


async def _no_turn(prompt: UserMessage, turn: int) -> AsyncGenerator[Event]:
    nothing: tuple[Event, ...] = ()
    for event in nothing:
        yield event


def _entries(messages: int) -> Iterator[Entry]:
    said, folded, previous = 0, 0, ""
    rows: list[Entry] = []
    stubs: dict[int, str] = {}
    seq = 0

    def row(body: Body, tokens: int = 0) -> Entry:
        nonlocal seq
        seq += 1
        return sealed(Entry(seq, hashlib.sha256(str(seq).encode()).hexdigest()[:12], 1e9 + seq, body, tokens))

    while said < messages:
        turn = said // 4
        for body in (
            UserMessage(f"question {turn}: " + "what does it do? " * 6),
            AssistantMessage("I look.", (ToolCall(f"c{turn}", "read_file", f'{{"path":"src/m{turn}.py"}}'),)),
            ToolResult(f"c{turn}", f"def f{turn}():\n" + "    value = compute(value)\n" * 80),
            AssistantMessage(f"f{turn} computes. " * 30, model="model"),
        ):
            entry = row(body, 250)
            if isinstance(body, ToolResult):
                stubs[entry.seq] = f"[m{entry.seq}] read_file src/m{turn}.py: 81 lines, defines f{turn}"
            rows.append(entry)
            yield entry
        said += 4
        yield row(Note("turn_ended", {"turn": turn + 1, "totals": {}}))
        if said % MASK == 0:
            yield row(MaskEpoch(dict(list(stubs.items())[:-5]), 60_000, 40_000))
            stubs = dict(list(stubs.items())[-5:])
        # Counted from the end, so that sessions of every size end alike.
        if (messages - said) % FOLD == FOLD // 2 and len(rows) > TAIL:
            covered, rows = rows[:-TAIL], rows[-TAIL:]
            folded += 1
            record = SummaryRecord(
                f"s{folded}", 1e9, (covered[0].seq, covered[-1].seq), folded % 5, "rules", "ratio",
                "What was done so far. " * 200, parent_id=previous or None, key_points=("a point",) * 20,
                files_read=tuple(f"src/m{number}.py" for number in range(100)),
                message_ids=tuple(entry.id for entry in covered), sha256=tuple(entry.sha256 for entry in covered),
            )  # fmt: skip
            previous = record.id
            yield row(replace(record, tokens_before=120_000, tokens_after=40_000))


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or [1_000, 10_000, 100_000])
