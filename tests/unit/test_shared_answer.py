"""Many ask at once, and there is one question: but nobody is told of a time before he asked."""

from __future__ import annotations

import asyncio

import pytest

from kubeauthn.server.shared_answer import SharedAnswer


class Counter:
    """Answers how often it was asked, when it is let."""

    def __init__(self) -> None:
        self.asked = 0
        self.may = asyncio.Semaphore(0)

    async def __call__(self) -> int:
        self.asked += 1
        number = self.asked
        await self.may.acquire()
        return number


def test_who_asks_while_a_question_is_under_way_shares_the_next_one() -> None:
    async def scene() -> tuple[list[int], int]:
        counter = Counter()
        shared = SharedAnswer(counter)
        first = asyncio.create_task(shared.get())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert counter.asked == 1
        many = [asyncio.create_task(shared.get()) for _ in range(1000)]
        await asyncio.sleep(0)
        many[0].cancel()  # who goes away ends nothing for the others
        for _ in range(2):
            counter.may.release()
        answers = await asyncio.gather(first, *many[1:])
        counter.may.release()
        return [*answers, await shared.get()], counter.asked

    answers, asked = asyncio.run(scene())
    assert answers == [1, *[2] * 999, 3]
    assert asked == 3


def test_an_error_is_for_all_who_waited_and_for_nobody_after_them() -> None:
    async def scene() -> list[object]:
        fails = [True]

        async def ask() -> str:
            await asyncio.sleep(0)
            if fails.pop():
                raise TimeoutError
            return "answer"

        shared = SharedAnswer(ask)
        before = await asyncio.gather(shared.get(), shared.get(), return_exceptions=True)
        fails.append(False)
        return [*(type(one) for one in before), await shared.get()]

    assert asyncio.run(scene()) == [TimeoutError, TimeoutError, "answer"]


def test_who_is_alone_asks_at_once() -> None:
    async def scene() -> None:
        counter = Counter()
        counter.may.release()
        assert await SharedAnswer(counter).get() == 1
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await SharedAnswer(counter).get()

    asyncio.run(scene())
