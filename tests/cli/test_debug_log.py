"""The debug log: what became of the context, for the owner's eyes alone, and never larger than two megabytes."""

import json
import re
from pathlib import Path

from mycode.cli.debug_log import MOST_BYTES, DebugLog
from mycode.cli.wiring import Workplace
from mycode.core.entries import Entry
from mycode.core.events import ContextMasked, Event, SummaryStarted, TextDelta, TurnEnded, Warned
from mycode.core.models import ModelInfo, ModelRequest
from mycode.core.summaries import MaskEpoch, SummaryRecord, Trigger
from mycode.core.usage import NO_USAGE
from mycode.llm.scripted import Reply, ScriptedModel
from tests.cli.conftest import Place

INFO = ModelInfo("test/scripted", "test", 200_000, 4_000)
KEY = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6"


def lines(file: Path) -> list[str]:
    """What was written, without time and session."""
    return [line.split(" ", 2)[2] for line in file.read_text().splitlines()]


def summarizing(*tellings: str) -> ScriptedModel:
    """Answers at length; its summaries are these, in order."""
    left = list(tellings)

    def answer(request: ModelRequest) -> Reply:
        return Reply("word " * 400) if request.tools else Reply(left.pop(0))

    return ScriptedModel(answer, INFO)


async def talk(place: Workplace, turns: int) -> None:
    for number in range(turns):
        _ = [event async for event in place.session.prompt(f"prompt {number}")]


async def test_each_summary_leaves_a_line_with_its_depth_sizes_strategy_trigger_time_and_the_rate_of_success(
    place: Place,
) -> None:
    here = place(summarizing(json.dumps({"summary": "They talked."})), debug=True)
    await talk(here, 10)
    events = [event async for event in here.session.summarize(strategy="llm")]
    file = here.run.folders.data / "debug.log"
    begun, made = lines(file)
    record = next(e.entry.body for e in events if not isinstance(e, SummaryStarted))
    assert isinstance(record, SummaryRecord)
    before = next(e.trigger.ratio for e in events if isinstance(e, SummaryStarted))
    number = next(e.messages for e in events if isinstance(e, SummaryStarted))

    assert begun == f"summary begun trigger=manual compressed={number} ratio={before:.3f}"
    assert made.startswith(
        f"summary made id={record.id} trigger=manual strategy=llm model=test/scripted depth=0 compressed={number} "
        f"ratio_before={before:.3f} tokens_before={record.tokens_before} estimate_after={record.tokens_after} "
    )
    assert re.search(r" score=[01]\.\d{3} seconds=\d+\.\d{3} success=1/1 mean_seconds=\d+\.\d{3}$", made)
    assert re.match(rf"\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\dZ session={here.session.id} summary", file.read_text())
    assert file.stat().st_mode & 0o777 == 0o600
    await here.aclose()
    here.run.close()


async def test_of_a_malformed_summary_its_first_200_characters_are_kept_masked_and_harmless(place: Place) -> None:
    here = place(summarizing(f"\x1b[2J no json, but {KEY} " + "x" * 400), debug=True)
    await talk(here, 10)
    _ = [event async for event in here.session.summarize(strategy="llm")]
    _, warned, made = lines(here.run.folders.data / "debug.log")
    assert warned.startswith("warning No summary by the model: The model's summary cannot be read (")
    assert warned.endswith("It was done by rules.")
    assert "no json, but" in warned
    assert 100 < warned.count("x") <= 200
    assert KEY not in warned
    assert "\x1b" not in warned
    assert "strategy=rules" in made
    await here.aclose()
    here.run.close()


async def test_it_is_written_only_where_that_is_wanted(place: Place) -> None:
    here = place(summarizing(), settings=("session.debug_log=false",))
    await talk(here, 10)
    _ = [event async for event in here.session.summarize(strategy="rules")]
    assert not (here.run.folders.data / "debug.log").exists()
    await here.aclose()
    here.run.close()


def test_what_was_begun_and_not_made_counts_against_the_rate(tmp_path: Path) -> None:
    log = DebugLog(tmp_path / "debug.log", session=lambda: "s1", clock=lambda: 0.0)
    told: list[Event] = [
        SummaryStarted(Trigger("ratio", 0.8, 800), 30),
        Warned("The summary is put off for now."),
        TextDelta("not for here"),
        TurnEnded("done", NO_USAGE, 1),
        ContextMasked(Entry(1, "a", 0.0, MaskEpoch({3: "x", 5: "y"}, trigger="ratio")), 800, 500),
    ]
    for event in told:
        log(event)
    assert (tmp_path / "debug.log").read_text().splitlines() == [
        "1970-01-01T00:00:00Z session=s1 " + text
        for text in (
            "summary begun trigger=ratio compressed=30 ratio=0.800",
            "warning The summary is put off for now.",
            "summary not made trigger=ratio success=0/1",
            "masked trigger=ratio results=2 tokens_before=800 estimate_after=500",
        )
    ]


def test_a_full_file_makes_place_for_a_new_one_and_a_disk_that_refuses_is_no_error(tmp_path: Path) -> None:
    file = tmp_path / "debug.log"
    log = DebugLog(file, session=lambda: "s1")
    file.write_bytes(b"-" * MOST_BYTES)
    log(Warned("the last line"))
    log(Warned("a first line"))
    assert lines(file) == ["warning a first line"]
    assert (tmp_path / "debug.log.1").stat().st_size > MOST_BYTES
    DebugLog(file / "below" / "debug.log", session=lambda: "s1")(Warned("nowhere"))
    (tmp_path / "link.log").symlink_to(tmp_path / "elsewhere")
    DebugLog(tmp_path / "link.log", session=lambda: "s1")(Warned("not through a link"))
    assert not (tmp_path / "elsewhere").exists()
