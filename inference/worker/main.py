"""The worker process: a decode thread that owns the model, an asyncio thread that talks to Redis."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import socket
import sys
import time
from collections import OrderedDict
from typing import Any

from inference.broker import connect, control, log, occupancy
from inference.broker.connect import patiently
from inference.broker.control import Command, ControlReader
from inference.broker.job_reader import Claimed, JobReader
from inference.broker.lease import RENEW_EVERY_S, Fenced, Lease
from inference.broker.listeners import LOOK_EVERY_S
from inference.broker.publisher import Publisher
from inference.engine.llama import ModelError
from inference.messages import Answer, Event, Job, Token, sibling_ids
from inference.options import Options
from inference.tasks import end

from . import takeover
from .books import Books
from .chat_template import TemplateFailure
from .decode_thread import DecodeThread
from .history import History
from .reception import CANCELLED_UNSEEN, Reception
from .replica import Replica
from .snapshot import Snapshots

logger = logging.getLogger(__name__)

CLAIM_EVERY_S = 2.0  # between two looks for jobs of workers that are gone
CANNOT_START = 78  # EX_CONFIG: the reason was printed, a restart would not help
# Tokens, and nothing else, gather so long after some were published: fifteen messages a second read as a
# steady stream, and each message spared is a millisecond of CPU, which a decode step on the CPU feels.
GPU_GATHER_S = 0.04
CPU_GATHER_S = 0.064


def run(options: Options) -> int:
    """Run a worker until it is told to stop; the exit code. 78: it cannot start, and said why in one line."""
    try:
        worker = Worker(options)
    except (ModelError, TemplateFailure) as error:
        print(f"cannot load the model {options.model}: {error}", file=sys.stderr, flush=True)
        return CANNOT_START
    # Whoever holds the GIL when a decode step ends keeps the whole batch waiting: 5 ms would be felt.
    sys.setswitchinterval(0.0005)
    gc.freeze()
    return asyncio.run(worker.run())


class Worker:
    """One model replica. Raises ModelError or TemplateFailure when it cannot be loaded."""

    def __init__(self, options: Options) -> None:
        self.id = os.environ.get("BERTH_WORKER_ID") or f"{socket.gethostname()}-1"
        replica = Replica.load(options, self.id, lambda id: self._lease.suspect_sync(id))
        self._engine, self._intake, self._about = replica.engine, replica.intake, replica.about
        self._gather_s = GPU_GATHER_S if replica.on_gpu else CPU_GATHER_S
        self._history = History(self.id)
        self._cancelled: OrderedDict[str, None] = OrderedDict()  # cancelled before their job was read
        self._control = ControlReader()
        self._long: asyncio.Queue[Job] = asyncio.Queue()  # jobs that others should not wait for
        self._claim_now = asyncio.Event()
        self._takes_jobs = asyncio.Event()  # unless an operator drains this worker
        self._takes_jobs.set()

    async def run(self) -> int:
        """Serve until SIGTERM or SIGINT (0), or until the decode thread dies or another worker has taken
        over (1)."""
        loop = asyncio.get_running_loop()
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        self._lease = await Lease.acquire(self.id)
        self._jobs = JobReader(self._lease.token)
        self._publisher = Publisher(self.id, self._lease)
        self._books = Books(self._publisher)
        self._reception = Reception(self._intake, self._lease)
        self._thread = DecodeThread(self._engine, Snapshots(self._engine), loop)
        await self._put_picture()
        self._thread.start()
        logger.info("ready: %s, %d cells, %d slots", self._about["model"]["alias"], self._about["n_ctx"],
                    self._engine.n_slots)  # fmt: skip
        tasks = [
            asyncio.create_task(forever())
            for forever in (
                self._keep_lease,
                self._keep_logs,
                self._claim_jobs,
                self._take_jobs,
                self._take_long_jobs,
                self._obey,
                self._publish,
                self._show,
                self._cancel_deserted,
            )
        ]
        watched = [asyncio.create_task(stop.wait()), asyncio.create_task(self._thread.ended.wait()), *tasks]
        await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
        await end(watched)
        self._thread.stop()
        errors = [error for task in watched if not task.cancelled() and (error := task.exception())]
        is_fenced = any(isinstance(error, Fenced) for error in errors)
        if is_fenced:
            logger.error("Another worker has taken over what this one ran, which was not heard of for long")
        for error in errors:
            if not isinstance(error, Fenced):
                logger.error("The worker stops after an error", exc_info=error)
        with contextlib.suppress(Exception):
            async with asyncio.timeout(2):
                if not is_fenced:
                    await self._lease.give_up(in_order=stop.is_set() and not errors)
                    await self._put_picture(state="stopping")
                await connect.close()
        return 0 if stop.is_set() and not errors else 1

    # --- what runs side by side -------------------------------------------------------------------

    async def _take_jobs(self) -> None:
        await self._claim()  # they come first
        while True:
            await self._takes_jobs.wait()
            jobs = await self._jobs.read()
            while jobs and self._takes_jobs.is_set():
                job = jobs.pop(0)
                if job.goes_on:
                    await self._go_on([Claimed(job, "", gone="client")])
                elif self._reception.takes_long(job):
                    self._long.put_nowait(job)
                else:
                    await self._take(job)
            if jobs:  # it has begun to drain while it read
                await self._jobs.leave(jobs)
                await patiently(lambda: control.tell(Command("claim", "")))

    async def _take_long_jobs(self) -> None:
        while True:
            await self._take(await self._long.get())

    async def _take(self, job: Job) -> None:
        taken = await self._reception.consider(job)
        # From here to the hand-over nothing is awaited: a cancel finds the job before it or after it.
        if job.id in self._cancelled:
            del self._cancelled[job.id]
            taken = [(CANCELLED_UNSEEN, None)]
        ids = sibling_ids(job.id, len(taken))
        self._books.open(job, dict.fromkeys(ids, 0))
        for id, (event, _) in zip(ids, taken, strict=True):
            self._thread.tell(id, event)
        for _, seq in taken:
            if seq is not None:
                self._thread.add(seq)

    async def _obey(self) -> None:
        while True:
            for command in await self._control.read():
                if command.kind == "cancel" and not command.reply:
                    if not self._cancel(command.id):
                        self._cancelled[command.id] = None
                        while len(self._cancelled) > 1000:
                            self._cancelled.popitem(last=False)
                elif command.kind == "follow":
                    self._books.follow(command.id, command.group)
                elif command.kind == "claim":
                    self._claim_now.set()
                elif command.worker == self.id and command.kind in ("drain", "undrain"):
                    self._drain(command)
                elif command.worker == self.id:
                    self._thread.obey(command)

    def _cancel(self, id: str) -> bool:
        """End what runs of a job, or the generation of that id; whether there is any."""
        running = self._books.running(id)
        for generation in running:
            self._thread.cancel(generation)
        return bool(running)

    def _drain(self, command: Command) -> None:
        """Take no more jobs, and go on with those that are here; or take jobs again."""
        is_draining = command.kind == "drain"
        if is_draining:
            self._takes_jobs.clear()
        else:
            self._takes_jobs.set()
            self._claim_now.set()
        self._about["state"] = "draining" if is_draining else "ready"
        logger.info("%s jobs are taken, by wish of an operator", "No more" if is_draining else "Again")
        self._thread.has_snapshot.set()  # so that it is seen at once
        self._thread.tell(command.reply, Answer({"worker": self.id, "is_draining": is_draining}))

    async def _publish(self) -> None:
        while True:
            events = await self._thread.events()
            await self._send(events)
            if any(type(event) is Token for _, event in events):
                await self._thread.gather(self._gather_s)

    async def _send(self, events: list[tuple[str, Event]]) -> None:
        """Number the events, write and publish them, and close the books of those that are over.

        One call at a time: what is written out of order would be lost.
        """
        numbered, over = self._books.enter(events)
        await self._publisher.publish(numbered, over)
        if over:
            await self._jobs.ack(over)

    async def _cancel_deserted(self) -> None:
        """End what is generated for a web process that died; its clients are gone with it."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            for job_id in await self._books.deserted():
                logger.warning("%s is cancelled: the web process that asked for it is gone", job_id)
                self._cancel(job_id)

    async def _show(self) -> None:
        """Keep the live picture fresh: at each change of state, and once a second as a heartbeat."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await self._thread.has_snapshot.wait()
            await self._put_picture()

    async def _put_picture(self, **changes: Any) -> None:
        picture = {**self._about, **self._thread.take_snapshot(), "at": time.time(), **changes}
        await occupancy.put(picture)
        await self._history.add(picture)

    # --- leases and takeovers ---------------------------------------------------------------------

    async def _keep_lease(self) -> None:
        """Raises Fenced when it is lost."""
        while True:
            if not await self._lease.renew():
                await self._publisher.restore()
            await asyncio.sleep(RENEW_EVERY_S)

    async def _keep_logs(self) -> None:
        while True:
            await asyncio.sleep(log.RENEW_EVERY_S)
            await self._publisher.keep()

    async def _claim_jobs(self) -> None:
        """Go on with what workers that are gone have left."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLAIM_EVERY_S):
                    await self._claim_now.wait()
            self._claim_now.clear()
            if self._takes_jobs.is_set():
                await self._claim()

    async def _claim(self) -> None:
        if claimed := await self._jobs.claim(self._lease):
            await self._go_on(claimed)

    async def _go_on(self, claimed: list[Claimed]) -> None:
        n_vocab = self._intake.model.n_vocab
        found = [await takeover.look(one, self._reception.consider_again, n_vocab) for one in claimed]
        gone = await control.cancelled()
        # From here to the hand-over nothing is awaited: a cancel finds a job before it or after it.
        gone |= self._cancelled.keys()
        over, lives = [], []
        for left in found:
            if not left.histories:
                over.append(left.job.id)
                continue
            if left.gone:
                logger.warning("%s is taken over: its %s was gone", left.job.id, left.gone)
            self._books.open(left.job, left.numbers)
            for id, history in left.histories.items():
                self._publisher.remember(id, history)
            for id, event in left.told:
                self._thread.tell(id, event)
            lives += left.lives
        self._thread.take_over(lives)
        for left in found:
            for id in gone.intersection([left.job.id, *left.histories]):
                self._cancel(id)
        await self._jobs.ack(over)
