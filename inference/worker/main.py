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

from inference.broker import connect, occupancy
from inference.broker.control import ControlReader
from inference.broker.jobs import JobReader
from inference.broker.listeners import LOOK_EVERY_S, Listeners
from inference.broker.publisher import Publisher
from inference.engine.engine import Engine
from inference.engine.llama import Context, Model, ModelError
from inference.engine.sequence import Sequence
from inference.messages import (
    TERMINAL,
    Event,
    Failed,
    Finished,
    Job,
    Preempted,
    Resumed,
    Timings,
    Token,
    sibling_ids,
)
from inference.options import Options
from inference.tasks import end

from .chat_template import ChatTemplate, TemplateFailure
from .decode_thread import DecodeThread
from .intake import Intake, Refused
from .siblings import Siblings
from .snapshot import Snapshots

logger = logging.getLogger(__name__)

CANNOT_START = 78  # EX_CONFIG: the reason was printed, a restart would not help
LONG_TEXT = 20_000  # characters from which tokenising leaves the asyncio thread
# Tokens, and nothing else, gather so long after some were published: fifteen messages a second read as a
# steady stream, and each message spared is a millisecond of CPU, which a decode step on the CPU feels.
GPU_GATHER_S = 0.04
CPU_GATHER_S = 0.064
GPU_LONE_CHUNK = 512
CPU_LONE_CHUNK = 128


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


CANCELLED_UNSEEN = Finished(
    stop_type="cancelled",
    stopping_word="",
    text="",
    prompt_tokens=0,
    completion_tokens=0,
    truncated=False,
    slot=-1,
    timings=Timings(),
    parks=0,
    parked_s=0.0,
    ttft_s=0.0,
)  # of a job whose client had left before it was read


def _length(body: Any) -> int:
    """About how many characters and tokens there are in a job's body."""
    if isinstance(body, str):
        return len(body)
    if isinstance(body, dict):
        return sum(map(_length, body.values()))
    return sum(map(_length, body)) if isinstance(body, list) else 1


def _told(event: Preempted | Resumed) -> str:
    """A park or a resume in the words of the worker's log."""
    if isinstance(event, Resumed):
        return f"resumed in slot {event.slot} after {event.waited:.1f} s"
    if not event.cells:
        return f"parked before its prompt began ({event.cause})"
    where = f"{event.bytes / 2**20:.1f} MiB of RAM" if event.method == "swap" else "to be recomputed"
    return f"parked from slot {event.slot} ({event.cause}): {event.cells} cells, {where}"


class Worker:
    """One model replica. Raises ModelError when it cannot be loaded."""

    def __init__(self, options: Options) -> None:
        self.id = os.environ.get("BERTH_WORKER_ID") or f"{socket.gethostname()}-1"
        model = Model(options.model, options.gpu_layers)
        n_cells = options.ctx_size or model.n_ctx_train
        context = Context(
            model,
            n_ctx=n_cells,
            n_seq_max=options.parallel,
            n_batch=options.batch_size,
            n_ubatch=options.ubatch_size,
            n_threads=options.threads,
            flash_attn=options.flash_attn,
            cache_type_k=options.cache_type_k,
            cache_type_v=options.cache_type_v,
            exact=options.exact,
        )
        if options.context_shift and not context.can_shift:
            logger.warning("this model's KV cache cannot be shifted: --context-shift is ignored")
        self._n_ctx_seq = min(n_cells, model.n_ctx_train)
        self._engine = Engine(
            context,
            n_cells=n_cells,
            n_slots=options.parallel,
            n_ctx_seq=self._n_ctx_seq,
            lone_chunk=GPU_LONE_CHUNK if model.on_gpu else CPU_LONE_CHUNK,
            preempt_ram=options.preempt_ram << 20 if options.preempt_ram > 0 else options.preempt_ram,
            rotate_after=options.rotate_after,
            context_shift=options.context_shift,
            preempt_every=options.preempt_every,
        )
        self._gather_s = GPU_GATHER_S if model.on_gpu else CPU_GATHER_S
        template = ChatTemplate(model.chat_template, bos=model.bos, eos=model.eos)
        self._intake = Intake(model, template, self._n_ctx_seq)
        self._about: dict[str, Any] = {
            "worker": self.id,
            "started_at": time.time(),
            "state": "ready",
            "model": {
                "alias": options.alias or os.path.basename(options.model),
                "path": options.model,
                "desc": model.desc,
                "size": model.size,
                "n_params": model.n_params,
                "n_vocab": model.n_vocab,
                "n_ctx_train": model.n_ctx_train,
                "chat_template": template.source,
            },
            "n_ctx": n_cells,
            "n_ctx_seq": self._n_ctx_seq,
            "swap": context.swap,
            "context_shift": self._engine.context_shift,
            "exact": options.exact,
        }
        self._numbers: dict[str, int] = {}  # the last sequence number of each generation that runs here
        self._siblings = Siblings()
        self._cancelled: OrderedDict[str, None] = OrderedDict()  # cancelled before their job was read
        self._jobs = JobReader(self.id)
        self._control = ControlReader()
        self._publisher = Publisher(self.id)
        self._listeners = Listeners()

    async def run(self) -> int:
        """Serve until SIGTERM or SIGINT (0), or until the decode thread dies (1)."""
        loop = asyncio.get_running_loop()
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        self._thread = DecodeThread(self._engine, Snapshots(self._engine), loop)
        await self._put_picture()
        await self._fail_abandoned()
        self._thread.start()
        logger.info("ready: %s, %d cells, %d slots", self._about["model"]["alias"], self._about["n_ctx"],
                    self._engine.n_slots)  # fmt: skip
        tasks = [
            asyncio.create_task(forever())
            for forever in (
                self._take_jobs,
                self._obey,
                self._publish,
                self._show,
                self._cancel_deserted,
            )
        ]
        watched = [asyncio.create_task(stop.wait()), asyncio.create_task(self._thread.ended.wait()), *tasks]
        await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
        await end(watched)
        for task in watched:
            if not task.cancelled() and (error := task.exception()):
                logger.error("The worker stops after an error", exc_info=error)
        self._thread.stop()
        with contextlib.suppress(Exception):
            async with asyncio.timeout(2):
                await self._leave()
                await connect.close()
        return 0 if stop.is_set() else 1

    # --- what runs side by side -------------------------------------------------------------------

    async def _take_jobs(self) -> None:
        while True:
            for job in await self._jobs.read():
                await self._take(job)

    async def _take(self, job: Job) -> None:
        taken = await self._consider(job)
        # From here to the hand-over nothing is awaited: a cancel finds the job before it or after it.
        if job.id in self._cancelled:
            del self._cancelled[job.id]
            taken = [(CANCELLED_UNSEEN, None)]
        ids = sibling_ids(job.id, len(taken))
        self._siblings.add(job.id, ids)
        if job.reply_to:
            self._listeners.add(job.id, job.reply_to)
        for id, (event, _) in zip(ids, taken, strict=True):
            if job.reply_to:
                self._publisher.route(id, job.reply_to)
            self._numbers[id] = 0
            self._thread.tell(id, event)
        for _, seq in taken:
            if seq is not None:
                self._thread.add(seq)

    async def _consider(self, job: Job) -> list[tuple[Event, Sequence | None]]:
        """The first event of each generation of a job, and the sequence to run; a job that is refused, or
        is no generation, has one event."""
        try:
            long = _length(job.body) > LONG_TEXT
            if job.kind == "generate":
                if long:
                    return [*await asyncio.to_thread(self._intake.generations, job)]
                return [*self._intake.generations(job)]
            if long:
                return [(await asyncio.to_thread(self._intake.answer, job), None)]
            return [(self._intake.answer(job), None)]
        except Refused as refused:
            return [(refused.failed, None)]
        except Exception:
            logger.exception("Could not take job %s", job.id)
            return [(Failed(500, "server_error", "the worker could not read this request"), None)]

    async def _obey(self) -> None:
        while True:
            for command in await self._control.read():
                if command.kind == "cancel":
                    running = self._siblings.of(command.id)
                    for id in running:
                        self._thread.cancel(id)
                    if not running:
                        self._cancelled[command.id] = None
                        while len(self._cancelled) > 1000:
                            self._cancelled.popitem(last=False)
                elif command.kind == "follow":
                    self._publisher.route(command.id, command.group)
                elif command.worker == self.id:
                    self._thread.obey(command)

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
        batch, over = [], []
        for generation, event in events:
            number = self._numbers.get(generation, 0) + 1
            self._numbers[generation] = number
            batch.append((generation, number, event))
            if isinstance(event, Preempted | Resumed):
                logger.info("%s %s", generation, _told(event))
            elif isinstance(event, TERMINAL):
                del self._numbers[generation]
                if job_id := self._siblings.end(generation):
                    over.append(job_id)
                    self._listeners.discard(job_id)
        await self._publisher.publish(batch, over)
        if over:
            await self._jobs.ack(over)

    async def _cancel_deserted(self) -> None:
        """End what is generated for a web process that died; its clients are gone with it."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            for job_id in await self._listeners.deserted():
                self._listeners.discard(job_id)
                logger.warning("%s is cancelled: the web process that asked for it is gone", job_id)
                for id in self._siblings.of(job_id):
                    self._thread.cancel(id)

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

    # --- beginnings and ends ----------------------------------------------------------------------

    async def _fail_abandoned(self) -> None:
        """What this worker's predecessor was running when it died is told so, and closed."""
        message = "the worker died while it ran this request; send it again"
        for job, last in await self._jobs.abandoned():
            if not last[job.id]:  # never accepted: told once, as a refusal is
                last = {job.id: 0}
            self._siblings.add(job.id, last)
            for id in last if job.reply_to else ():
                self._publisher.route(id, job.reply_to)
            self._numbers |= last
            await self._send([(id, Failed(503, "unavailable_error", message)) for id in last])

    async def _leave(self) -> None:
        """Tell everybody who still waits, and go out of sight."""
        await self._put_picture(state="stopping")
        message = "the worker was stopped while it ran this request; send it again"
        failed = Failed(503, "unavailable_error", message)
        await self._send([*self._thread.take_events(), *((i, failed) for i in list(self._numbers))])
