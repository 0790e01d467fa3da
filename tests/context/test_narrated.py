import json

import pytest

from mycode.context.narrated import NARRATIVE, compress_with_model
from mycode.core.models import Model
from tests.support.context_doubles import Quarter, Script

WORK = [
    {"role": "user", "content": "The switch is zebra_mode_v7. Change src/flags.py."},
    *(
        message
        for number in range(30)
        for message in (
            {"role": "assistant", "content": f"Part {number} is in src/part_{number}.py. " + "It is long. " * 20},
            {"role": "user", "content": f"Go on with part {number}."},
        )
    ),
]


@pytest.mark.parametrize("mode", ["llm", "hybrid"])
async def test_an_account_by_a_model_holds_nothing_it_made_up_and_fits(mode):
    answer = json.dumps({"summary": "The parts were told. See src/phantom.py.", "key_points": ["use phantom_lib"]})
    models: list[Model] = [Script(answer)]  # type: ignore[list-item]  # an iterator where a generator is asked for
    short = await compress_with_model(WORK, 900, count=Quarter().count, models=models, mode=mode)
    note = next(message["content"] for message in short if message["content"].startswith(NARRATIVE))
    assert "The parts were told." in note
    assert "phantom" not in json.dumps(short)
    assert sum(Quarter().count(message["content"]) + 4 for message in short) <= 900


async def test_an_account_alone_holds_what_the_model_did_not_tell():
    models: list[Model] = [Script(json.dumps({"summary": "Parts were told."}))]  # type: ignore[list-item]  # as above
    work = [WORK[0], {"role": "user", "content": "The limit is called top_limit_9."}, *WORK[1:]]
    short = await compress_with_model(work, 900, count=Quarter().count, models=models, mode="llm")
    assert "top_limit_9" in json.dumps(short)
