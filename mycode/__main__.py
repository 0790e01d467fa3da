"""Starts the program; `--version` is answered before anything else is imported."""

import sys


def main() -> None:
    """The console script. Exits with the codes of `docs/exit-codes.md`."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from mycode import __version__

        sys.stdout.write(f"mycode {__version__}\n")
        return
    from mycode.cli.app import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
