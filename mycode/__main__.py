"""Starts the program; `--version` is answered before anything else is imported."""

import os
import sys


def main() -> None:
    """The console script. Exits with the codes of `docs/exit-codes.md`."""
    _fill_closed_streams()
    _import_nothing_from_here()
    if sys.argv[1:] in (["--version"], ["-V"]):
        from mycode import __version__

        try:
            sys.stdout.write(f"mycode {__version__}\n")
            sys.stdout.flush()
        except BrokenPipeError:
            sys.stderr.close()  # whoever read has left, and nobody is to be told
        return
    import gc

    # What is loaded now stays: looking through it for garbage again and again would cost a tenth of the start.
    gc.disable()
    from mycode.cli.app import run

    sys.exit(run(sys.argv[1:]))


def _fill_closed_streams() -> None:
    """A stream that the shell closed (`>&-`) becomes the null device, or the next file opened would get its number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(descriptor, True)
            setattr(sys, name, os.fdopen(descriptor, "w" if number else "r", closefd=False))


def _import_nothing_from_here() -> None:
    """A project's `rich/` or `litellm.py` is not ours: `python -m mycode` and an empty PYTHONPATH put it first."""
    try:
        here = os.path.realpath(os.getcwd())  # noqa: PTH109  pathlib would have to be imported first
    except OSError:
        return  # the folder is gone, and nothing in it can be imported
    places = [(place, os.path.realpath(place)) for place in sys.path]
    sys.path[:] = [
        place
        for index, (place, real) in enumerate(places)
        if real != here or (index > 0 and here.endswith(("site-packages", "dist-packages")))
    ]


if __name__ == "__main__":
    main()
