"""The one SQLite file of a user's sessions: opened safely, private, and honest about what went wrong."""

import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from mycode.core.errors import SessionError

FILE_NAME = "sessions.db"
BUSY_SECONDS = 10.0

Row = tuple[object, ...]

# The statements that lead from version i to i + 1; a new database goes through all of them.
_MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE sessions(
            n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, created REAL NOT NULL, updated REAL NOT NULL,
            cwd TEXT NOT NULL, title TEXT NOT NULL DEFAULT '', model TEXT NOT NULL DEFAULT '',
            base INTEGER REFERENCES sessions(n), base_seq INTEGER NOT NULL DEFAULT 0,
            base_texts INTEGER NOT NULL DEFAULT 0, last_seq INTEGER NOT NULL DEFAULT 0,
            messages INTEGER NOT NULL DEFAULT 0, tokens INTEGER NOT NULL DEFAULT 0,
            texts INTEGER NOT NULL DEFAULT 0, deleted INTEGER NOT NULL DEFAULT 0)""",
        "CREATE INDEX sessions_recent ON sessions(updated)",
        "CREATE INDEX sessions_base ON sessions(base) WHERE base IS NOT NULL",
        # sort: 0 bookkeeping, 1 message, 2 overlay; sums run over messages up to and with this row; brief is what
        # is left of a summary once a newer one covers it.
        """CREATE TABLE entries(
            n INTEGER PRIMARY KEY, session INTEGER NOT NULL, seq INTEGER NOT NULL, id TEXT NOT NULL, at REAL NOT NULL,
            sort INTEGER NOT NULL, role TEXT NOT NULL, tokens INTEGER NOT NULL, sum_tokens INTEGER NOT NULL,
            sum_messages INTEGER NOT NULL, sha256 TEXT NOT NULL, brief TEXT, body TEXT NOT NULL,
            UNIQUE(session, seq))""",
        "CREATE INDEX entries_overlays ON entries(session, seq) WHERE sort = 2",
        "CREATE INDEX entries_marks ON entries(session, role, seq) WHERE sort <> 1",
        """CREATE TABLE texts(
            session INTEGER NOT NULL, number INTEGER NOT NULL, sha256 TEXT NOT NULL, text BLOB NOT NULL,
            UNIQUE(session, number))""",
        "CREATE INDEX texts_sha256 ON texts(session, sha256)",
        """CREATE TABLE locks(
            session INTEGER PRIMARY KEY, token TEXT NOT NULL, host TEXT NOT NULL, boot TEXT NOT NULL,
            pid INTEGER NOT NULL, started TEXT NOT NULL, at REAL NOT NULL)""",
        "CREATE TABLE settings(name TEXT PRIMARY KEY, value INTEGER NOT NULL)",
    ),
)
SCHEMA = len(_MIGRATIONS)

# Shared memory between processes, which WAL needs, does not work across machines.
_NETWORK = ("nfs", "cifs", "smb", "9p", "afs", "fuse.sshfs", "fuse.s3fs", "davfs", "lustre", "ceph", "glusterfs")


class Database:
    """One connection, guarded by a lock: every write is one transaction that is on disk when `write` returns.

    Where nothing may be written, what is there can still be read (`read_only`).
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE_NAME
        self.read_only = False
        self._lock = threading.RLock()
        self._connection = self._open(folder)

    def rows(self, sql: str, values: Sequence[object] | Mapping[str, object] = ()) -> list[Row]:
        """All rows of a query."""
        with self._lock, self._translated():
            return self._connection.execute(sql, values).fetchall()

    def row(self, sql: str, values: Sequence[object] | Mapping[str, object] = ()) -> Row | None:
        """The first row of a query, if any."""
        with self._lock, self._translated():
            found: Row | None = self._connection.execute(sql, values).fetchone()
            return found

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of it is on disk afterwards, or none of it and a `SessionError` says why."""
        with self._lock, self._translated():
            if self.read_only:
                raise SessionError(_read_only(self.path))
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                # SQLite may have rolled back by itself (a full disk does that).
                if self._connection.in_transaction:
                    with suppress(sqlite3.Error):
                        self._connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        with self._lock, self._translated():
            self._connection.close()

    def _open(self, folder: Path) -> sqlite3.Connection:
        try:
            _make_private(folder, self.path)
        except OSError as error:
            if not self.path.exists():
                message = (
                    f"The session folder {folder} cannot be used: {error.strerror or error}. "
                    "Set MYCODE_HOME to a folder you can write."
                )
                raise SessionError(message) from error
        with self._translated():
            connection = self._connect()
            try:
                self._prepare(connection, folder)
            except BaseException:
                connection.close()
                raise
            return connection

    def _connect(self) -> sqlite3.Connection:
        if os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK):
            return sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        self.read_only = True
        # Without a -wal file beside it nothing is pending, so reading needs no shared memory there.
        pending = self.path.with_name(self.path.name + "-wal").exists()
        uri = f"{self.path.absolute().as_uri()}?{'mode=ro' if pending else 'immutable=1'}"
        return sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)

    def _prepare(self, connection: sqlite3.Connection, folder: Path) -> None:
        version = _version(connection)
        if version > SCHEMA:
            message = (
                f"The session database {self.path} comes from a newer mycode (format {version}, this one knows "
                f"{SCHEMA}). Install a newer mycode, or set MYCODE_HOME to another folder."
            )
            raise SessionError(message)
        if self.read_only:
            if version < SCHEMA:
                raise SessionError(_read_only(self.path))
            return
        connection.execute("PRAGMA synchronous=FULL")
        if version < SCHEMA:
            _set_journal(connection, folder)
            _migrate(connection)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise SessionError(_sentence(error, self.path)) from error


def _make_private(folder: Path, path: Path) -> None:
    # Each by itself: `parents=True` would leave the upper ones to the umask.
    for missing in reversed([place for place in (folder, *folder.parents) if not place.is_dir()]):
        missing.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_mode & 0o777 != 0o700:
        folder.chmod(0o700)
    # SQLite gives the -wal and -shm files the mode of this one, whatever the umask.
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
    for file in (path, path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")):
        with suppress(FileNotFoundError):
            if file.stat().st_mode & 0o777 != 0o600:
                file.chmod(0o600)


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _set_journal(connection: sqlite3.Connection, folder: Path) -> None:
    if _on_network(folder):
        connection.execute("PRAGMA journal_mode=DELETE")
        return
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            # Another process is creating the database this moment; this switch does not wait by itself.
            if error.sqlite_errorname.startswith("SQLITE_BUSY") and time.monotonic() < deadline:
                time.sleep(0.01)
                continue
            if error.sqlite_errorname.startswith(("SQLITE_BUSY", "SQLITE_FULL", "SQLITE_READONLY")):
                raise
            connection.execute("PRAGMA journal_mode=DELETE")
        return


def _migrate(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statements in _MIGRATIONS[_version(connection) :]:
            for statement in statements:
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version={SCHEMA}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _on_network(folder: Path) -> bool:
    try:
        mounts = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    place = str(folder.resolve())
    best, kind = "", ""
    for mount in mounts:
        parts = mount.split(" ")
        if len(parts) > 2:
            point = parts[1].replace("\\040", " ")
            if len(point) >= len(best) and (place == point or place.startswith(point.rstrip("/") + "/")):
                best, kind = point, parts[2]
    return kind.startswith(_NETWORK)


def _read_only(path: Path) -> str:
    return (
        f"The session database {path} cannot be written. Change its permissions, or set MYCODE_HOME to a folder "
        "you can write."
    )


def _room(path: Path) -> bool:
    """Whether anything can be written there: SQLite says of its shared memory only that it failed."""
    try:
        return os.statvfs(path.parent).f_bavail > 0
    except OSError:
        return True


def _sentence(error: sqlite3.Error, path: Path) -> str:
    name = getattr(error, "sqlite_errorname", None) or ""
    if name.startswith("SQLITE_FULL") or (name.startswith("SQLITE_IOERR") and not _room(path)):
        return f"The disk is full: {path} could not be written. Free some space."
    if name.startswith(("SQLITE_READONLY", "SQLITE_PERM")):
        return _read_only(path)
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return (
            f"The session database {path} is damaged ({error}). Move it away to start afresh; "
            f"`sqlite3 {path} .recover` saves what can still be read."
        )
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return f"Another process has held {path} for over {BUSY_SECONDS:.0f} seconds. Close it, or try again."
    if name.startswith("SQLITE_CANTOPEN"):
        return f"The session database {path} cannot be opened. Check the folder and its permissions."
    if name.startswith("SQLITE_IOERR"):
        return f"{path} could not be read or written ({error}). Check the disk and its free space."
    return f"The session database {path} answered with an error: {error}."
