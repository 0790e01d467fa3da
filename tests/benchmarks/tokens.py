"""How far the token estimate is from the tokenizers, and how fast both are; with --fit, new weights.

    python -m tests.benchmarks.tokens [--texts FILE_OR_FOLDER ...] [--fit]

Texts are the files of the installed packages, samples of other scripts below, and whatever is named: files, folders,
or `.jsonl`/`.jsonl.gz` files, of which every string longer than 20 characters is taken. Every second text is fitted
on, the others are measured: each alone, and in mixes as long as a session.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sysconfig
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mycode.context import budget
from mycode.llm.tokens import WEIGHTS, Tokens, features
from tests.benchmarks.measure import Options, Row

ENCODINGS = {"o200k_base": "openai/gpt-5", "cl100k_base": "openai/gpt-4"}
SUFFIXES = {".py", ".md", ".txt", ".json", ".html", ".js", ".pyi", ".toml", ".rst", ".c", ".h", ".css", ".yaml", ".yml"}
MOST = 24_000
SESSION = 40_000

SAMPLES = (
    "Das Gespräch endet nie und vergisst nichts: Jede Änderung der Ansicht wird geprüft, gespeichert und ist",
    "umkehrbar. Wer später wissen möchte, warum eine Datei geändert wurde, schlägt es in der Geschichte nach.",
    "La conversation ne finit jamais et n'oublie rien : chaque modification est vérifiée, enregistrée et",
    "réversible. Celui qui veut savoir pourquoi un fichier a été changé le retrouve dans l'historique.",
    "La conversación no termina nunca y no olvida nada: cada cambio queda registrado, comprobado y puede",
    "deshacerse. Quien quiera saber más tarde por qué se modificó un archivo lo encontrará en el historial.",
    "Rozmowa nigdy się nie kończy i niczego nie zapomina: każda zmiana jest sprawdzona, zapisana i odwracalna.",
    "Kto później zechce wiedzieć, dlaczego plik został zmieniony, znajdzie to w historii.",
    "Konuşma hiç bitmez ve hiçbir şeyi unutmaz: her değişiklik kaydedilir, denetlenir ve geri alınabilir.",
    "Разговор никогда не кончается и ничего не забывает: каждое изменение записано, проверено и обратимо. Кто",
    "позже захочет узнать, почему файл был изменён, найдёт это в истории. Ошибка в третьей строке уже исправлена.",
    "Розмова ніколи не закінчується і нічого не забуває: кожна зміна записана, перевірена та оборотна.",
    "Η συζήτηση δεν τελειώνει ποτέ και δεν ξεχνά τίποτα: κάθε αλλαγή καταγράφεται, ελέγχεται και μπορεί να",
    "השיחה אינה נגמרת לעולם ואינה שוכחת דבר: כל שינוי נרשם, נבדק וניתן לביטול. מי שירצה לדעת מדוע שונה קובץ ימצא",
    "المحادثة لا تنتهي أبدا ولا تنسى شيئا: كل تغيير مسجل ومتحقق منه ويمكن التراجع عنه. من أراد أن يعرف لماذا تغير",
    "बातचीत कभी समाप्त नहीं होती और कुछ भी नहीं भूलती: हर बदलाव दर्ज होता है, जाँचा जाता है और वापस लिया जा सकता",
    "উত্তরটি ইতিহাসে আছে: প্রতিটি পরিবর্তন লেখা হয় এবং ফিরিয়ে নেওয়া যায়।",
    "การสนทนาไม่มีวันสิ้นสุดและไม่ลืมสิ่งใด ทุกการเปลี่ยนแปลงถูกบันทึก ตรวจสอบ และย้อนกลับได้",
    "对话永远不会结束，也不会忘记任何事情：每一次修改都有记录、经过检查，并且可以撤销。以后想知道某个文件为什么被修改的人，可以在历史记录里找到原因。",
    "對話永遠不會結束，也不會忘記任何事情：每一次修改都有記錄、經過檢查，並且可以還原。",
    "会話は決して終わらず、何も忘れません。すべての変更は記録され、確認され、元に戻すことができます。ファイルがなぜ変更されたかは履歴で分かります。",
    "대화는 결코 끝나지 않으며 아무것도 잊지 않습니다. 모든 변경은 기록되고 확인",
    "되며 되돌릴 수 있습니다. 파일이 왜 바뀌었는지는 기록에서 찾을 수 있습니다.",
    "Զրույցը երբեք չի ավարտվում և ոչինչ չի մոռանում: Ով ուզենա իմանալ, թե ինչու է ֆայլը փոխվել, կգտնի այն։",
    "საუბარი არასოდეს მთავრდება და არაფერს ივიწყებს: ყოველი ცვლილება ჩაწერილია და შექცევადია.",
    "ውይይቱ መቼም አያልቅም፣ ምንም አይረሳም፤ እያንዳንዱ ለውጥ ይመዘገባል።",
    "✅ done 🚀 shipped 🔧 fixed 🐛 bug 📝 notes 🎉 ⚠️ careful 💡 idea 🔥 hot 👍 yes ❌ no ✨ new",
    "┌──────────┬────────┐\n│ name     │ tokens │\n├──────────",
    "┼────────┤\n│ summary  │ 1,204  │\n╰──────────┴────────╯\n",
    "He said “no” — then ‘yes’ … and so on; 3 × 4 ≤ 12 → true, ≈ 5 % • point • other · end – fin.",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", nargs="*", default=[], type=Path)
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--most", type=int, default=3000, help="at most so many texts")
    options = parser.parse_args()
    texts = list(collect(options.texts, options.most))
    print(f"{len(texts)} texts, {sum(map(len, texts)) / 1e6:.1f} million characters")
    for encoding, model in ENCODINGS.items():
        counter = Tokens(model)
        counter.load()
        if not counter.exact:
            print("no vocabulary: is litellm installed?")
            return
        started = time.process_time()
        truth = [counter.count(text) for text in texts]
        exact_seconds = time.process_time() - started
        started = time.process_time()
        found = [features(text) for text in texts]
        seconds = time.process_time() - started
        if options.fit:
            weights = fit(found[::2], truth[::2])
            rows = "\n".join(f'        "{name}": {weight:.4f},' for name, weight in sorted(weights.items()))
            print(f'    "{encoding}": {{\n{rows}\n    }},')
        else:
            weights = WEIGHTS[encoding]
        guess = [sum(weights.get(name, 1.0) * number for name, number in one.items()) for one in found]
        report(encoding, guess, truth)
        size = sum(map(len, texts)) / 1e6
        print(
            f"  speed: estimate {seconds / size:.2f}, tokenizer {exact_seconds / size:.2f} CPU s per million characters"
        )


def rows(options: Options) -> list[Row]:
    """The error of the estimate over mixes as long as a session: at once, and after five real sizes are known."""
    texts = sessions(options.data, 4000) if options.data else list(collect([], 2000))
    found = []
    for encoding, model in ENCODINGS.items():
        counter = Tokens(model)
        counter.load()
        weights = WEIGHTS[encoding]
        pairs = []
        for text in texts[1::2]:
            guess = sum(weights.get(name, 1.0) * number for name, number in features(text).items())
            if (truth := counter.count(text)) >= 20:
                pairs.append((guess, truth))
        source = random.Random(1)
        at_once, learned = [], []
        for _ in range(1000):
            mix = list(_mix(pairs, source))
            at_once.append(abs(sum(g for g, _ in mix) / sum(t for _, t in mix) - 1))
            learned.append(_after_five(mix))
        note = f"mean {mean(at_once):.1%}; {SESSION:,} tokens of {len(pairs)} texts, each at most {MOST:,} characters"
        found += [
            Row(f"{encoding}: p99 of the estimate", 100 * at(sorted(at_once), 0.99), "%", 5.0, note=note),
            Row(f"{encoding}: p99 after five real sizes", 100 * at(sorted(learned), 0.99), "%", 2.0),
        ]
    return found


def _mix(pairs: list[tuple[float, int]], source: random.Random) -> Iterator[tuple[float, int]]:
    total = 0
    while total < SESSION:
        guess, truth = source.choice(pairs)
        total += truth
        yield guess, truth


def _after_five(mix: list[tuple[float, int]]) -> float:
    """The error of a request when the real sizes of the five before are known; each text is a request of its own."""
    multiplier, anchor = 1.0, None
    guessed = real = 0
    for place, (guess, truth) in enumerate(mix, 1):
        guessed += round(guess)
        real += truth
        if len(mix) - 6 < place < len(mix):
            multiplier = budget.learn(multiplier, guessed, real)
            anchor = budget.Anchor(0, guessed, real)
    return abs(budget.calibrated(guessed, multiplier, anchor, 0) / real - 1)


def report(encoding: str, guess: list[float], truth: list[int]) -> None:
    held_out = [(g, t) for g, t in list(zip(guess, truth, strict=True))[1::2] if t >= 20]
    alone = sorted(abs(g - t) / t for g, t in held_out)
    mixes = []
    source = random.Random(1)
    for _ in range(1000):
        mix: list[tuple[float, int]] = []
        while sum(t for _, t in mix) < SESSION:
            mix.append(source.choice(held_out))
        mixes.append(abs(sum(g for g, _ in mix) - sum(t for _, t in mix)) / sum(t for _, t in mix))
    mixes.sort()
    bias = sum(g for g, _ in held_out) / sum(t for _, t in held_out) - 1
    print(
        f"{encoding}: {len(held_out)} texts held out\n"
        f"  each text: mean {mean(alone):.1%}, within 5 %: {sum(e <= 0.05 for e in alone) / len(alone):.0%}, "
        f"p99 {at(alone, 0.99):.1%}\n"
        f"  mixes of {SESSION} tokens: mean {mean(mixes):.1%}, p99 {at(mixes, 0.99):.1%}, bias {bias:+.1%}"
    )


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def at(values: list[float], share: float) -> float:
    return values[min(len(values) - 1, int(len(values) * share))]


def collect(named: list[Path], most: int) -> Iterator[str]:
    """Texts in an order that does not depend on the machine's mood."""
    texts: list[str] = []
    for path in named:
        files = sorted(one for one in path.rglob("*") if one.is_file()) if path.is_dir() else [path]
        for file in files:
            texts += strings(file)
    packages = Path(sysconfig.get_paths()["purelib"])
    files = sorted(one for one in packages.rglob("*") if one.suffix in SUFFIXES and 200 < one.stat().st_size < 400_000)
    source = random.Random(0)
    source.shuffle(files)
    texts = source.sample(texts, min(len(texts), most // 2))
    for file in files:
        if len(texts) >= most:
            break
        if usual(text := file.read_text(encoding="utf-8", errors="ignore")[:MOST]):
            texts.append(text)
    source.shuffle(texts)
    yield from texts
    for sample in SAMPLES:  # one to fit on, one to measure
        half = len(sample) // 2
        yield sample[:half] * 3
        yield sample[half:] * 3


def sessions(folder: Path, most: int) -> list[str]:
    """Texts of recorded sessions alone: questions, answers, calls and what tools returned."""
    texts = [text for file in sorted(folder.rglob("*")) if file.is_file() for text in strings(file)]
    return random.Random(0).sample(texts, min(most, len(texts)))


def usual(text: str) -> bool:
    """What a session holds: neither minified nor a table of Unicode; other scripts have samples of their own."""
    letters = sum(sign > "\x7f" for sign in text)
    return letters < len(text) * 0.1 and max(map(len, text.splitlines())) < 1000


def strings(file: Path) -> Iterator[str]:
    if file.name.endswith((".jsonl", ".jsonl.gz")):
        opener = gzip.open if file.suffix == ".gz" else open
        with opener(file, "rt", encoding="utf-8") as lines:
            for line in lines:
                yield from inside(json.loads(line))
    elif file.suffix in SUFFIXES:
        yield file.read_text(encoding="utf-8", errors="ignore")[:MOST]


def inside(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if len(value) > 20:
            yield value[:MOST]
    elif isinstance(value, dict):
        for one in value.values():
            yield from inside(one)
    elif isinstance(value, list):
        for one in value:
            yield from inside(one)


def fit(found: Sequence[Mapping[str, int]], truth: list[int]) -> dict[str, float]:
    """Ridge regression with non-negative weights, drawn towards a guess where little is known."""
    names = sorted({name for one in found for name in one})
    dropped: set[str] = set()
    while True:
        weights = _fit(found, truth, names)
        negative = {name for name, weight in weights.items() if weight < 0}
        if not negative:
            return weights | dict.fromkeys(dropped, 0.0)
        dropped |= negative
        names = [name for name in names if name not in negative]


def _fit(found: Sequence[Mapping[str, int]], truth: list[int], names: list[str]) -> dict[str, float]:
    place = {name: index for index, name in enumerate(names)}
    size = len(names)
    matrix = [[0.0] * size for _ in range(size)]
    target = [0.0] * size
    for one, tokens in zip(found, truth, strict=True):
        if not tokens:
            continue
        scale = 1 / max(tokens, 30)  # each text alike, whatever its length
        row = [(place[name], number * scale) for name, number in one.items() if name in place]
        for i, a in row:
            target[i] += a * tokens * scale
            line = matrix[i]
            for j, b in row:
                line[j] += a * b
    ridge = 1e-6 * max(matrix[i][i] for i in range(size))
    for i, name in enumerate(names):
        prior = PRIOR.get(name, 1.0)
        matrix[i][i] += ridge
        target[i] += ridge * prior
    solution = solve(matrix, target)
    return {name: solution[place[name]] for name in names}


PRIOR = {
    "letters": 0.3,
    "long blanks": 0.1,
    "long lines": 0.1,
    "rule signs": 0.05,
    "accented letters": 0.3,
    "capitals": 0.3,
}


def solve(matrix: list[list[float]], target: list[float]) -> list[float]:
    size = len(target)
    rows = [[*line, value] for line, value in zip(matrix, target, strict=True)]
    for column in range(size):
        pivot = max(range(column, size), key=lambda index: abs(rows[index][column]))
        rows[column], rows[pivot] = rows[pivot], rows[column]
        head = rows[column]
        for index in range(size):
            if index != column and (factor := rows[index][column] / head[column]):
                rows[index] = [a - factor * b for a, b in zip(rows[index], head, strict=True)]
    return [rows[index][size] / rows[index][index] for index in range(size)]


if __name__ == "__main__":
    main()
