"""Results that are remembered: for how long, how many, and which not."""

from __future__ import annotations

import threading
import tracemalloc
from types import MappingProxyType

import pytest

from kubeauthn import errors
from kubeauthn._core.authentication import fetch_limits
from kubeauthn._core.authentication.result_cache import ResultCache, ResultTable
from kubeauthn._core.authentication.verdict import Authenticated, UserInfo
from kubeauthn.server.cache import CachedResults

NOW = 1_800_000_000.0
FAR = NOW + 1e6


def table(lifetime: float = 10, most: int = 3, most_bytes: int = 1000) -> ResultTable:
    return ResultTable(lifetime, most, most_bytes)


def found(kept: ResultTable, key: bytes, now: float = NOW) -> bytes | None:
    entry = kept.get(key, now)
    return None if entry is None else entry[1]


def a_user(name: str = "jane", expires_at: float = FAR, **fields: object) -> Authenticated:
    return Authenticated(UserInfo(name, **fields), "https://issuer.example", expires_at)  # type: ignore[arg-type]


# -- one table ------------------------------------------------------------------------------------


def test_a_result_lives_for_its_lifetime_and_not_a_moment_longer():
    kept = table()
    kept.put(b"\0", b"v", NOW, FAR)
    assert found(kept, b"\0", NOW) == b"v"
    assert found(kept, b"\0", NOW + 9.99) == b"v"
    assert found(kept, b"\0", NOW + 10) is None


def test_what_was_stored_in_one_rush_does_not_end_in_one():
    kept = table(most=256)
    keys = [bytes([number]) for number in range(256)]
    for key in keys:
        kept.put(key, b"v", NOW, FAR)
    ended = [sum(found(kept, key, NOW + seconds) is None for key in keys) for seconds in (7.5, 8, 8.5, 9, 9.5, 10)]
    assert ended == [0, 51, 102, 153, 204, 256]


def test_never_past_the_end_of_the_token():
    kept = table()
    kept.put(b"k", b"v", NOW, NOW + 3)
    assert found(kept, b"k", NOW + 2.99) == b"v"
    assert found(kept, b"k", NOW + 3) is None


@pytest.mark.parametrize("ends", [NOW, NOW - 1, float("-inf"), float("nan")])
def test_what_is_over_at_once_is_not_kept(ends: float):
    kept = table()
    assert not kept.put(b"k", b"v", NOW, ends)
    assert len(kept) == 0


def test_what_was_stored_before_the_clock_was_set_back_is_not_used():
    kept = table()
    kept.put(b"\0", b"v", NOW, FAR)
    assert found(kept, b"\0", NOW - 1) is None


def test_the_oldest_goes_when_there_are_too_many():
    kept = table(most=3)
    for key in (b"1", b"2", b"3", b"4"):
        kept.put(key, b"v", NOW, FAR)
    assert len(kept) == 3
    assert [found(kept, key) for key in (b"1", b"2", b"3", b"4")] == [None, b"v", b"v", b"v"]


def test_the_oldest_go_when_they_are_too_large_together():
    kept = table(most=100, most_bytes=100)
    for key in (b"1", b"2", b"3", b"4"):
        kept.put(key, b"v" * 40, NOW, FAR)
    assert len(kept) == 2
    assert found(kept, b"4") is not None


def test_one_that_is_too_large_is_not_kept_and_pushes_nothing_out():
    kept = table(most_bytes=1 << 30)
    kept.put(b"1", b"v", NOW, FAR)
    assert not kept.put(b"2", b"v" * (fetch_limits.RESULT_BYTES + 1), NOW, FAR)
    assert found(kept, b"1") == b"v"


def test_a_newer_result_replaces_the_older_and_is_counted_once():
    kept = table(most=100, most_bytes=100)
    for _ in range(50):
        kept.put(b"k", b"v" * 60, NOW, FAR)
    kept.put(b"other", b"v" * 40, NOW, FAR)
    assert len(kept) == 2


def test_one_that_was_put_again_is_no_longer_the_oldest():
    kept = table(most=3)
    for key in (b"1", b"2", b"3", b"1", b"4"):
        kept.put(key, b"v", NOW, FAR)
    assert [found(kept, key) for key in (b"1", b"2", b"3", b"4")] == [b"v", None, b"v", b"v"]


def test_what_has_ended_goes_away_as_others_come():
    kept = table(most=1000)
    for number in range(100):
        kept.put(b"%d" % number, b"v", NOW, FAR)
    for number in range(100):
        kept.put(b"later %d" % number, b"v", NOW + 20, FAR)
    assert len(kept) == 100


def test_a_table_for_nothing_keeps_nothing():
    assert not table(most=0).put(b"k", b"v", NOW, FAR)


# -- the cache ------------------------------------------------------------------------------------


def test_a_user_comes_back_as_it_was():
    cache = CachedResults()
    user = a_user(uid="7", groups=("a", "b"), extra=MappingProxyType({"example.com/x": ("1", "2")}))
    cache.remember("token", user, NOW, cache.generation)
    for _ in range(3):
        again = cache.find("token", NOW)
        assert again == user
        assert isinstance(again, Authenticated)
        assert type(again.user) is UserInfo
        with pytest.raises(TypeError):
            again.user.extra["example.com/x"] = ("changed",)  # type: ignore[index]
    assert cache.find("another", NOW) is None


def test_a_refusal_comes_back_as_a_new_error_of_its_class():
    cache = CachedResults()
    error = errors.ClaimRefused("why", public_message="p", rule="jwt[0].x", issuer="https://i", hint="h")
    cache.remember("token", error, NOW, cache.generation)
    again = cache.find("token", NOW)
    assert type(again) is errors.ClaimRefused
    assert again is not error
    assert (str(again), vars(again)) == (str(error), vars(error))
    assert again is not cache.find("token", NOW)


def test_successes_live_ten_seconds_and_refusals_two():
    cache = CachedResults()
    cache.remember("good", a_user(), NOW, cache.generation)
    cache.remember("bad", errors.UserRefused("why"), NOW, cache.generation)
    assert cache.find("good", NOW + 7.5) is not None  # or a little longer, by its key
    assert cache.find("good", NOW + 10) is None
    assert cache.find("bad", NOW + 1.5) is not None
    assert cache.find("bad", NOW + 2) is None


def test_a_success_that_is_kept_at_hand_ends_with_its_token():
    cache = CachedResults()
    cache.remember("good", a_user(expires_at=NOW + 4), NOW, cache.generation)
    for second in (0.0, 1.0, 3.9):
        assert cache.find("good", NOW + second) is not None
    assert cache.find("good", NOW + 4) is None
    assert cache.find("good", NOW - 20) is None


def test_a_refusal_ends_when_its_reason_would_change():
    from base64 import urlsafe_b64encode

    payload = urlsafe_b64encode(b'{"exp": %d}' % int(NOW + 1)).decode().rstrip("=")
    cache = CachedResults()
    cache.remember(f"e30.{payload}.x", errors.UserRefused("why"), NOW, cache.generation)
    assert cache.find(f"e30.{payload}.x", NOW + 0.9) is not None
    assert cache.find(f"e30.{payload}.x", NOW + 1) is None


def unknown_key() -> errors.SignatureRefused:
    error = errors.SignatureRefused("no such key")
    error.newer_keys_may_help = True
    return error


@pytest.mark.parametrize("error", [errors.KeysUnavailable("x"), errors.ClaimUnavailable("x"), unknown_key()])
def test_what_is_about_the_world_and_not_the_token_is_not_remembered(error: errors.TokenError):
    cache = CachedResults()
    cache.remember("token", error, NOW, cache.generation)
    assert len(cache) == 0


def test_an_error_of_somebody_elses_class_is_not_remembered():
    class Stranger(errors.TokenError):
        """Not one of ours."""

    cache = CachedResults()
    cache.remember("token", Stranger("x"), NOW, cache.generation)
    assert len(cache) == 0


def test_clearing_forgets_everything_also_what_was_kept_at_hand():
    cache = CachedResults()
    cache.remember("good", a_user(), NOW, cache.generation)
    cache.remember("bad", errors.UserRefused("why"), NOW, cache.generation)
    assert cache.find("good", NOW) is not None
    cache.clear()
    assert cache.find("good", NOW) is None
    assert cache.find("bad", NOW) is None
    assert len(cache) == 0


def test_what_was_decided_before_clearing_is_not_remembered_after_it():
    cache = CachedResults()
    generation = cache.generation
    cache.clear()
    cache.remember("good", a_user(), NOW, generation)
    assert cache.find("good", NOW) is None


def test_garbage_does_not_push_out_good_tokens():
    cache = CachedResults(ResultCache(failures=ResultTable(2, 100, 1 << 20)))
    cache.remember("good", a_user(), NOW, cache.generation)
    for number in range(1000):
        cache.remember(f"garbage {number}", errors.MalformedToken("x"), NOW, cache.generation)
    assert cache.find("good", NOW) is not None
    assert len(cache) == 101


def test_those_kept_at_hand_are_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fetch_limits, "HOT_RESULTS", 10)
    cache = CachedResults()
    for number in range(100):
        cache.remember(f"token {number}", a_user(f"user {number}"), NOW, cache.generation)
    for number in range(100):
        assert cache.find(f"token {number}", NOW) is not None
    assert len(cache._hot) <= 10


def test_a_huge_token_is_neither_hashed_nor_remembered():
    cache = CachedResults()
    huge = "x" * (100 << 20)
    cache.remember(huge, a_user(), NOW, cache.generation)
    assert cache.find(huge, NOW) is None
    assert len(cache) == 0


def test_no_token_is_kept():
    """What is kept is a hash that only this process can make."""
    one, other = CachedResults(), CachedResults()
    for cache in (one, other):
        cache.remember("SECRET", a_user(), NOW, cache.generation)
        assert cache.find("SECRET", NOW) is not None
    keys = [set(cache._cache.successes._entries) | set(cache._hot) for cache in (one, other)]
    assert not keys[0] & keys[1]
    assert not any(b"SECRET" in key for key in keys[0])


def test_a_thousand_bytes_are_enough_for_a_result_of_usual_size():
    """A hundred thousand of them in a hundred megabytes; bench/server_memory.py fills it to the brim."""
    tracemalloc.start()
    try:
        cache = CachedResults()
        before = tracemalloc.get_traced_memory()[0]
        for number in range(5000):
            groups = tuple(f"oidc:team-{number}-{group}" for group in range(8))
            extra = {"authentication.kubernetes.io/credential-id": (f"JTI={number:032x}",)}
            user = a_user(f"https://issuer.example#{number}", uid=f"{number:036d}", groups=groups, extra=extra)
            cache.remember(f"token {number}", user, NOW, cache.generation)
        used = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert len(cache) == 5000
    assert used / 5000 < 1000


def test_texts_of_any_script_are_tokens_too():
    cache = CachedResults()
    cache.remember("\ud800é", a_user("ü\u0000"), NOW, cache.generation)
    again = cache.find("\ud800é", NOW)
    assert isinstance(again, Authenticated)
    assert again.user.username == "ü\u0000"


def test_threads_may_share_it():
    cache = CachedResults(ResultCache(successes=ResultTable(10, 50, 1 << 20)))
    wrong: list[object] = []

    def work(number: int) -> None:
        for turn in range(300):
            name = f"{(number + turn) % 80}"
            cache.remember(name, a_user(name), NOW, cache.generation)
            result = cache.find(name, NOW)
            if isinstance(result, Authenticated) and result.user.username != name:
                wrong.append(result)
            if turn % 50 == 0:
                cache.clear()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(cache) <= 50
