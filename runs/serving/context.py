"""The context of a served graph: plain values that come with a request, and become a stage."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import ClassVar

from langgraph.config import get_config
from langgraph.runtime import get_runtime
from pydantic import PrivateAttr

from dialoom.graphs import Stage

from .programme import Programme
from .request import RequestError, StageRequest


class ServedContext(StageRequest):
    """What a request says of a run. All of it may be left out."""

    programme: ClassVar[Programme]

    _made: Stage | None = PrivateAttr(None)
    _making: asyncio.Lock = PrivateAttr(default_factory=asyncio.Lock)
    _begun_at: int = PrivateAttr(1)

    async def begin(self, step: int) -> Stage:
        """The stage of a thread that begins with this context, at a superstep; the thread will remember both.

        Raises:
            RequestError: Naming what is wrong in the context.
        """
        self._made = await asyncio.to_thread(self.programme.stage, self)
        self._begun_at = step
        if (store := get_runtime().store) is not None:
            said = self.model_dump(mode="json", exclude_unset=True)
            await store.aput(self._memory(), self._thread(), {"said": said, "step": step})
        return self._made

    async def stage(self, step: int) -> Stage:
        """The stage for a node. A run that goes on with a thread takes what it leaves out from the thread's beginning.

        Its steps are those of a run's file, which has no `begin`: so calls have the same places there, and seeds.
        """
        async with self._making:
            if self._made is None:
                self._made = await asyncio.to_thread(self.programme.stage, await self._completed())
        return replace(self._made, step=step - self._begun_at)

    async def _completed(self) -> ServedContext:
        store = get_runtime().store
        begun = None if store is None else await store.aget(self._memory(), self._thread())
        if begun is not None:
            self._begun_at = begun.value["step"]
            return type(self)(**{**begun.value["said"], **self.model_dump(exclude_unset=True)})
        if "scenario" not in self.model_fields_set:
            raise RequestError("nothing is known of how this thread began; say in the context which scenario it holds")
        return self

    def _memory(self) -> tuple[str, ...]:
        return ("dialoom", self.programme.recipe.name)

    @staticmethod
    def _thread() -> str:
        return str(get_config()["configurable"].get("thread_id"))
