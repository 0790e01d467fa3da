"""Fits the weights of `mycode.context.reuse` on recorded sessions, all of them or all but one source.

Needs numpy and scikit-learn (not among the project's dependencies) beside the data and the scorer:
`python -m tests.benchmarks.fit_reuse --data DIR --scorer DIR [--leave-out SOURCE]` prints the table for `WEIGHTS`.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path
from typing import Any

from mycode.context import reuse
from mycode.context.names import Names
from mycode.context.passages import Reader
from mycode.context.transcripts import read_items
from mycode.core.messages import AssistantMessage

NEGATIVES = 0.4


def names_of(messages: list[dict[str, Any]]) -> Names:
    items = read_items(messages)
    calls = {c.id: c for item in items for m in item.messages if isinstance(m, AssistantMessage) for c in m.tool_calls}
    reader = Reader()
    said = (reader.read(item.index, m, calls.get(getattr(m, "call_id", ""))) for item in items for m in item.messages)
    return Names.of(said, reader)


def rows_of(score: Any, records: list[dict[str, Any]]) -> list[tuple[str, Any, Any, float]]:
    """Per cut: its source, the features of every name in its prefix, whether each was needed, and the cut's weight."""
    import numpy as np

    out = []
    for record in records:
        cwd = (record.get("cwd") or "").rstrip("/") + "/"
        for _, prefix, _, needed in score.cases(record):
            found = reuse.features(names_of(prefix))
            label = [name in needed or (name.startswith(cwd) and name[len(cwd) :] in needed) for name in found]
            out.append((record["source"], np.array(list(found.values())), np.array(label), len(needed) ** -0.5))
    return out


def fit(rows: list[tuple[str, Any, Any, float]]) -> list[float]:
    import numpy as np
    from sklearn.linear_model import LogisticRegression

    random = np.random.RandomState(0)
    values = np.vstack([row[1] for row in rows])
    label = np.concatenate([row[2] for row in rows])
    weight = np.concatenate([np.full(len(row[2]), row[3]) for row in rows])
    kept = label | (random.rand(len(label)) < NEGATIVES)
    weight = weight / weight.mean() * np.where(label, 1, 1 / NEGATIVES)
    mean, spread = values[kept].mean(0), values[kept].std(0) + 1e-6
    model = LogisticRegression(C=0.1, max_iter=200, tol=1e-3)
    model.fit((values[kept] - mean) / spread, label[kept], sample_weight=weight[kept])
    weights = model.coef_[0] / spread
    return [round(float(w), 4) for w in (*weights, model.intercept_[0] - (weights * mean).sum())]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--scorer", type=Path, required=True)
    parser.add_argument("--leave-out")
    args = parser.parse_args()
    sys.path.insert(0, str(args.scorer))
    score = importlib.import_module("score")
    records = score.load(args.data / "dev.jsonl.gz")
    rows = rows_of(score, [r for r in records if r["source"] != args.leave_out])
    print("WEIGHTS =", tuple(fit(rows)))


if __name__ == "__main__":
    main()
