"""Runs jobs on the workers of a dask scheduler (``distributed``).

A job is one task. If a worker dies, dask gives its task to another one, up to the scheduler's
``distributed.scheduler.allowed-failures`` times. A job that may begin only once marks its begin at the scheduler; a
second worker then reports it as lost. Records are transferred in pieces of bounded size, each file with its SHA-256.
"""

from __future__ import annotations

import importlib
import logging
import os
import pickle
import shutil
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final, Protocol, Self, TypeVar, cast

from soakwatch.core.errors import SoakwatchError
from soakwatch.core.private_files import make_private_folder
from soakwatch.core.workers.executor import ClusterError, JobLostError
from soakwatch_dask import worker as there
from soakwatch_dask.parcel import FileSum, chunks, place_of, sum_of, written

T = TypeVar("T")
R = TypeVar("R")

MAX_WAIT_S: Final = 10.0
"""How long to wait for a scheduler to answer, and then for a worker."""
_FRESH_S: Final = 2.0
_READS: Final = 3
_CARRIERS: Final = 4
_TLS: Final = "DASK_DISTRIBUTED__COMM__TLS__"


class _DaskFuture(Protocol):
    status: str

    def add_done_callback(self, done: Callable[[_DaskFuture], object]) -> None: ...

    def result(self) -> object: ...


class _Flag(Protocol):
    def set(self) -> object: ...


class _Client(Protocol):
    def submit(self, function: Callable[..., object], *arguments: object, **options: object) -> _DaskFuture: ...

    def cancel(self, futures: Sequence[_DaskFuture]) -> object: ...

    def run(self, function: Callable[..., object], *arguments: object, **options: object) -> Mapping[str, object]: ...

    def scheduler_info(self, n_workers: int) -> Mapping[str, Mapping[str, Mapping[str, object]]]: ...

    def close(self) -> object: ...


class _Wish:
    """A job and its tasks at the scheduler. It may end in several ways; the first one sets its future."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.future: Future[object] = Future()
        self.tasks: list[_DaskFuture] = []
        self.claim = ""

    def succeed(self, result: object) -> None:
        """Set the result."""
        with suppress(InvalidStateError):
            self.future.set_result(result)

    def fail(self, error: BaseException) -> None:
        """Set the error: it failed, or was lost."""
        with suppress(InvalidStateError):
            self.future.set_exception(error)


class DaskCluster:
    """An executor on the workers of a scheduler; see ``connect``."""

    def __init__(self, client: _Client, address: str) -> None:
        self._client, self._address = client, address
        self._versions = there.versions()
        self._carriers = ThreadPoolExecutor(_CARRIERS, thread_name_prefix="soakwatch-files")
        self._wishes: set[_Wish] = set()
        self._lock = threading.Lock()
        self._shared = True
        self._known: tuple[float, Mapping[str, Mapping[str, object]]] = (-_FRESH_S, {})
        self._closed = False

    @classmethod
    def connect(cls, address: str, max_wait_s: float = MAX_WAIT_S) -> DaskCluster:
        """Connect to the scheduler at ``tcp://…`` or ``tls://…``.

        TLS certificates come from dask's own configuration (environment or file), as for ``dask scheduler`` and ``dask
        worker``. Raises ClusterError if no scheduler answers, it has no worker, or a worker has other versions.
        """
        distributed = importlib.import_module("distributed")
        logging.getLogger("distributed").setLevel(logging.CRITICAL + 1)  # its errors are also raised
        options = {"security": _security(address)} if address.startswith("tls://") else {}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # differing versions are an error below
                client = cast(
                    "_Client",
                    distributed.Client(address, timeout=max_wait_s, set_as_default=False, name="soakwatch", **options),
                )
        except OSError as error:  # TimeoutError is a subclass
            why = f" ({error.__cause__ or error})" if address.startswith("tls://") else ""
            raise ClusterError(
                f"no scheduler answers at {address} within {max_wait_s:g} s: start one with 'dask scheduler'{why}"
            ) from None
        cluster = cls(client, address)
        try:
            cluster._check(max_wait_s)
        except BaseException:
            cluster.close()
            raise
        return cluster

    @property
    def slots(self) -> int:
        """The threads of all workers now, at least 1."""
        return max(1, sum(cast("int", worker["nthreads"]) for worker in self._workers().values()))

    @property
    def same_machine(self) -> bool:
        """False: workers may be anywhere."""
        return False

    def resources(self) -> frozenset[str] | None:
        """The resources that workers have now (``dask worker --resources``)."""
        every = self._workers().values()
        return frozenset(name for worker in every for name in cast("Mapping[str, float]", worker["resources"]))

    def submit(self, function: Callable[[T], R], argument: T, *, resource: str = "", label: str = "") -> Future[R]:
        """See Executor. Raises ClusterError for a job that cannot be pickled."""
        payload = _pickled(label or function.__name__, function, argument)
        wish = self._wish(label or function.__name__)
        self._task(wish, self._settle, there.work, payload, self._versions, resource=resource)
        return cast("Future[R]", wish.future)

    def submit_files(
        self, function: Callable[[T, Path], R], argument: T, files: Sequence[Path], *, label: str = ""
    ) -> Future[R]:
        """See Executor. Workers first check whether they see the same files (folder, names, sizes, SHA-256); once one
        does not, files are sent."""
        payload = _pickled(label or function.__name__, function, argument)
        wish = self._wish(label or function.__name__)
        self._carry(wish, self._begin_on_files, wish, payload, tuple(file.absolute() for file in files))
        return cast("Future[R]", wish.future)

    def submit_into(
        self, function: Callable[[T, Path], R], argument: T, folder: Path, *, resource: str = "", label: str = ""
    ) -> Future[R]:
        """See Executor. Files are written to the worker's disk (``--local-directory``) and fetched at the end."""
        label = label or function.__name__
        if folder.exists() and any(folder.iterdir()):
            raise ClusterError(f"{folder} is not empty: what {label} writes cannot go there")
        payload = _pickled(label, function, argument)
        wish = self._wish(label)
        wish.claim = f"soakwatch-{uuid.uuid4().hex}"
        settle = partial(self._settle_into, folder.absolute())
        self._task(wish, settle, there.work_into, payload, self._versions, wish.claim, resource=resource)
        return cast("Future[R]", wish.future)

    def end(self, future: Future[R], *, at_once: bool) -> None:
        """See Executor. A job that writes no files can only be cancelled at once."""
        with self._lock:
            wish = next((each for each in self._wishes if each.future is future), None)
        if wish is None:
            return
        if at_once:
            tasks = list(wish.tasks)
            wish.fail(JobLostError(f"{wish.label} was broken off: it was no longer wanted"))
            self._client.cancel(tasks)
        elif wish.claim:
            self._event(f"{wish.claim}{there.END}").set()

    def close(self) -> None:
        """Cancel every job; running ones notice that. The workers stay."""
        if self._closed:
            return
        self._closed = True
        with self._lock:
            wishes = list(self._wishes)
        for wish in wishes:
            wish.fail(JobLostError(f"{wish.label} was broken off: it was no longer wanted"))
        with suppress(Exception):  # the scheduler may be gone
            self._client.cancel([task for wish in wishes for task in wish.tasks])
        self._carriers.shutdown(wait=True, cancel_futures=True)
        with suppress(Exception):
            self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- who is there ------------------------------------------------------------------------------------------

    def _check(self, max_wait_s: float) -> None:
        until = time.monotonic() + max_wait_s
        while not self._workers(fresh=True):
            if time.monotonic() > until:
                raise ClusterError(
                    f"the scheduler at {self._address} has no worker: start one with 'dask worker {self._address}'"
                )
            time.sleep(0.1)
        answers = self._client.run(there.versions, on_error="return")
        for worker, answer in sorted(answers.items()):
            if isinstance(answer, BaseException):
                raise ClusterError(
                    f"the worker {worker} cannot do the work ({answer}): install the same 'soakwatch[dask]' there"
                )
            sentence = there.differing(self._versions, cast("Mapping[str, str]", answer), worker)
            if sentence:
                raise ClusterError(sentence)

    def _workers(self, *, fresh: bool = False) -> Mapping[str, Mapping[str, object]]:
        asked_s, workers = self._known
        now_s = time.monotonic()
        if fresh or now_s - asked_s > _FRESH_S:
            with suppress(OSError):  # it may be gone for a moment: keep the last known workers
                workers = self._client.scheduler_info(n_workers=-1)["workers"]
            self._known = now_s, workers
        return workers

    def _event(self, name: str) -> _Flag:
        return cast("_Flag", importlib.import_module("distributed").Event(name, client=self._client))

    # --- tasks -------------------------------------------------------------------------------------------------

    def _wish(self, label: str) -> _Wish:
        wish = _Wish(label)
        with self._lock:
            self._wishes.add(wish)
        wish.future.add_done_callback(lambda _: self._over(wish))
        return wish

    def _over(self, wish: _Wish) -> None:
        with self._lock:
            self._wishes.discard(wish)
        wish.tasks.clear()  # the scheduler forgets tasks that nobody references

    def _task(
        self,
        wish: _Wish,
        settle: Callable[[_Wish, object], None],
        function: Callable[..., object],
        *arguments: object,
        resource: str = "",
    ) -> None:
        options = {"resources": {resource: 1}} if resource else {}
        try:
            task = self._client.submit(function, *arguments, key=_key(wish), pure=False, **options)
        except (OSError, RuntimeError, ValueError) as error:
            wish.fail(self._gone(error))
            return
        wish.tasks.append(task)
        # The library runs these callbacks in one thread: they must not wait for what other callbacks bring.
        task.add_done_callback(lambda done: self._carry(wish, self._ended, wish, settle, done))

    def _carry(self, wish: _Wish, function: Callable[..., None], *arguments: object) -> None:
        def carried() -> None:
            try:
                function(*arguments)
            except BaseException as error:  # noqa: BLE001 - the future's owner must get the error
                wish.fail(error)

        with suppress(RuntimeError):  # closed: the future has failed already
            self._carriers.submit(carried)

    def _ended(self, wish: _Wish, settle: Callable[[_Wish, object], None], task: _DaskFuture) -> None:
        try:
            result = task.result()
        except SoakwatchError as error:
            wish.fail(error)
        except BaseException as error:  # noqa: BLE001 - of the job, or dask's own, whose classes are not imported
            wish.fail(self._translated(wish, error))
        else:
            settle(wish, result)

    def _settle(self, wish: _Wish, result: object) -> None:
        wish.succeed(result)

    def _translated(self, wish: _Wish, error: BaseException) -> BaseException:
        name = type(error).__name__
        if name == "KilledWorker":
            worker = getattr(getattr(error, "last_worker", None), "address", "unknown")
            deaths = int(getattr(error, "allowed_failures", 0)) + 1
            return JobLostError(f"{wish.label} has no result: {deaths} workers died while they had it, last {worker}")
        if name in {"FutureCancelledError", "FuturesCancelledError", "CancelledError", "CommClosedError"}:
            return self._gone(error)
        return error

    def _gone(self, error: BaseException) -> ClusterError:
        reason = getattr(error, "reason", type(error).__name__)
        return ClusterError(f"the scheduler at {self._address} is gone ({reason}): start it, then repeat the command")

    # --- files to a worker -------------------------------------------------------------------------------------

    def _begin_on_files(self, wish: _Wish, payload: bytes, files: tuple[Path, ...]) -> None:
        sums = tuple(sum_of(file, file.name) for file in files)
        if not self._shared:
            self._send(wish, payload, files, sums)
            return

        def seen(_: _Wish, result: object) -> None:
            if isinstance(result, there.NotHere):
                self._shared = False
                self._send(wish, payload, files, sums)
            else:
                wish.succeed(result)

        self._task(wish, seen, there.work_here, payload, self._versions, str(files[0].parent), sums)

    def _send(self, wish: _Wish, payload: bytes, files: tuple[Path, ...], sums: tuple[FileSum, ...]) -> None:
        pieces: list[list[_DaskFuture]] = []
        for file, expected in zip(files, sums, strict=True):
            with file.open("rb") as opened:
                # A task each, not scattered data: if a worker dies, the scheduler can provide them again.
                pieces.append(
                    [
                        self._client.submit(there.piece, opened.read(length), key=_key(wish), pure=False)
                        for _, length in chunks(expected.size)
                    ]
                )
        wish.tasks.extend(task for of_file in pieces for task in of_file)
        self._task(wish, self._settle, there.work_on_files, payload, self._versions, sums, pieces)

    # --- files from a worker -----------------------------------------------------------------------------------

    def _settle_into(self, folder: Path, wish: _Wish, result: object) -> None:
        if not isinstance(result, there.Written):
            wish.fail(JobLostError(f"{wish.label} was lost: the worker that had begun it died"))
            return
        coming = folder.with_name(f".{folder.name}.coming")
        shutil.rmtree(coming, ignore_errors=True)
        make_private_folder(coming)
        for expected in result.files:
            self._fetch(wish, result, expected, place_of(coming, expected.name))
        if folder.exists():
            folder.rmdir()
        coming.rename(folder)
        _sync(folder.parent)
        with suppress(Exception):  # it lies in the worker's folder, which is deleted with the worker
            self._client.run(there.forget, result.place, workers=[result.address])
        if result.failure is not None:
            wish.fail(result.failure)
        else:
            wish.succeed(result.result)

    def _fetch(self, wish: _Wish, sent: there.Written, expected: FileSum, file: Path) -> None:
        for _ in range(_READS):
            if written(file, expected, self._pieces(wish, sent, expected)):
                return
        raise JobLostError(
            f"{wish.label} is over, but {expected.name} came from {sent.address} with other bytes, {_READS} times"
        )

    def _pieces(self, wish: _Wish, sent: there.Written, expected: FileSum) -> Iterator[bytes]:
        name = str(place_of(Path(sent.place), expected.name))
        for begin, length in chunks(expected.size):
            try:
                # ``run`` works alongside the worker's jobs: a job that begins now must not delay the record of the last
                # one.
                answers = self._client.run(there.read_piece, name, begin, length, workers=[sent.address])
                data = cast("bytes", answers[sent.address])
            except Exception as error:  # noqa: BLE001 - the library's errors, whose classes are not imported
                raise JobLostError(
                    f"{wish.label} is over, but its worker {sent.address} was gone before {expected.name} had come"
                    f" ({type(error).__name__})"
                ) from None
            yield data


def _security(address: str) -> object:
    """The TLS settings from dask's own configuration. Raises ClusterError."""
    security_of = importlib.import_module("distributed.security").Security
    security = security_of(require_encryption=True)
    lacking = [
        name
        for name, value in (
            ("CA_FILE", security.tls_ca_file),
            ("CLIENT__CERT", security.tls_client_cert),
            ("CLIENT__KEY", security.tls_client_key),
        )
        if not value
    ]
    if lacking:
        raise ClusterError(
            f"{address} needs certificates: name them in {', '.join(f'{_TLS}{name}' for name in lacking)},"
            " or in dask's configuration below distributed.comm.tls"
        )
    for file in (security.tls_ca_file, security.tls_client_cert, security.tls_client_key):
        if "\n" not in str(file) and not os.access(file, os.R_OK):
            raise ClusterError(f"{file} cannot be read: dask's configuration names it for TLS")
    return cast("object", security)


def _pickled(label: str, function: Callable[..., object], argument: object) -> bytes:
    try:
        return pickle.dumps((function, (argument,)))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ClusterError(f"{label} cannot be sent to a worker: {error}") from None


def _key(wish: _Wish) -> str:
    return f"soakwatch-{''.join(c if c.isalnum() else '-' for c in wish.label)[:60]}-{uuid.uuid4().hex}"


def _sync(folder: Path) -> None:
    """Make a rename in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
