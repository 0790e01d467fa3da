"""Fails when a dependency brought a `.pth` file that runs code at every start of Python, other than those we know."""

import site
import sys
from pathlib import Path

# Name of the file -> what its one line of code is known to do.
KNOWN = {
    "distutils-precedence.pth": "setuptools' own copy of distutils",
}


def main() -> int:
    """Looks at every site folder of this interpreter; returns 1 and names the file when something unknown would run."""
    unknown = [
        file
        for folder in {*site.getsitepackages(), site.getusersitepackages()}
        for file in sorted(Path(folder).glob("*.pth"))
        if file.name not in KNOWN and any(line.startswith(("import ", "import\t")) for line in _lines(file))
    ]
    for file in unknown:
        sys.stderr.write(f"{file} runs code at every start of Python and is not known: look into it.\n")
    return 1 if unknown else 0


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8", errors="replace").splitlines()


sys.exit(main())
