"""From options to one replica of the model, loaded and ready to be stepped."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from inference.engine import device
from inference.engine.engine import Engine
from inference.engine.llama import Context, Model
from inference.memory import free
from inference.options import Options

from .chat_template import ChatTemplate
from .intake import Intake

logger = logging.getLogger(__name__)

GPU_LONE_CHUNK = 512
CPU_LONE_CHUNK = 128


@dataclass(frozen=True, slots=True)
class Replica:
    engine: Engine
    intake: Intake
    about: dict[str, Any]  # what does not change of the worker's live picture
    on_gpu: bool

    @classmethod
    def load(cls, options: Options, worker_id: str, on_trial: Callable[[str], None]) -> Replica:
        """Raises ModelError or TemplateFailure when it cannot be loaded. `on_trial`: see Engine."""
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
        n_ctx_seq = min(n_cells, model.n_ctx_train)
        engine = Engine(
            context,
            n_cells=n_cells,
            n_slots=options.parallel,
            n_ctx_seq=n_ctx_seq,
            lone_chunk=GPU_LONE_CHUNK if model.on_gpu else CPU_LONE_CHUNK,
            preempt_ram=options.preempt_ram << 20 if options.preempt_ram > 0 else options.preempt_ram,
            cache_ram=_cache_ram(options),
            rotate_after=options.rotate_after,
            context_shift=options.context_shift,
            preempt_every=options.preempt_every,
            on_trial=on_trial,
        )
        template = ChatTemplate(model.chat_template, bos=model.bos, eos=model.eos)
        path = os.fsencode(options.model).decode(errors="replace")  # bytes that are no text can be in it
        about = {
            "worker": worker_id,
            "started_at": time.time(),
            "state": "ready",
            "model": {
                "alias": options.alias or os.path.basename(path),
                "path": path,
                "desc": model.desc,
                "size": model.size,
                "n_params": model.n_params,
                "n_vocab": model.n_vocab,
                "n_ctx_train": model.n_ctx_train,
                "chat_template": template.source,
            },
            "device": device.name(model.on_gpu),
            "n_ctx": n_cells,
            "n_ctx_seq": n_ctx_seq,
            "swap": engine.swap,
            "context_shift": engine.context_shift,
            "exact": options.exact,
        }
        return cls(engine, Intake(model, template, n_ctx_seq), about, model.on_gpu)


def _cache_ram(options: Options) -> int:
    """Bytes for computed prompts, now that the model is loaded; -1: no bound."""
    if not options.cache_prompt:
        return 0
    if options.cache_ram < 0:
        return -1
    wanted, there = options.cache_ram << 20, free()
    return wanted if there is None else min(wanted, there // 2)
