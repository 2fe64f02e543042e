from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Any, Awaitable, Callable

logger = logging.getLogger(__name__)


@dataclass
class Job:
    name: str
    payload: dict[str, Any]
    attempts: int = 0
    errors: list[str] = field(default_factory=list)


class WorkerPool:
    """Runs jobs with a bounded number of workers and retries each a few times."""

    def __init__(self, handler: Callable[[Job], Awaitable[None]], size: int = 4) -> None:
        self._handler = handler
        self._queue: asyncio.Queue[Job | None] = asyncio.Queue(maxsize=1000)
        self._tasks = [asyncio.create_task(self._run(i)) for i in range(size)]

    async def submit(self, job: Job) -> None:
        await self._queue.put(job)

    async def _run(self, index: int) -> None:
        while (job := await self._queue.get()) is not None:
            try:
                await self._handler(job)
            except Exception as exc:  # noqa: BLE001
                job.attempts += 1
                job.errors.append(f"{type(exc).__name__}: {exc}")
                if job.attempts < 3:
                    await asyncio.sleep(2 ** job.attempts * 0.1)
                    await self._queue.put(job)
                else:
                    logger.error("worker %d gave up on %s: %s", index, job.name, job.errors[-1])
            finally:
                self._queue.task_done()
