"""`check --online`: whether each issuer publishes what the file says of it."""

from __future__ import annotations

import asyncio

from kubeauthn._core.authentication.provider_document import discovery_address
from kubeauthn._core.jose.key_remarks import key_remarks
from kubeauthn._core.jose.keys import KeySet
from kubeauthn.cli.check_report import ERROR, WARNING, FileReport
from kubeauthn.cli.progress import waiting_for
from kubeauthn.cli.text import escaped, plural
from kubeauthn.errors import EnvironmentFailure, KeySetError
from kubeauthn.server.discovery import Discovery, issuer_documents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kubeauthn._core.authentication.decode import Decoded
    from kubeauthn._core.authentication.model import Issuer
    from kubeauthn._io.async_http import Document
    from kubeauthn.cli.progress import Waiting
    from kubeauthn.cli.world import World
    from kubeauthn.server.discovery import Documents

AT_ONCE = 8
_CERTIFICATE = ("certificate verify failed", "CERTIFICATE_VERIFY_FAILED")


def ask_issuers(report: FileReport, decoded: Decoded, world: World) -> None:
    """Asks all of them, a few at a time, and adds what came to the report, in the order of the file."""
    issuers = [entry.issuer for entry in decoded.configuration.jwt]
    with waiting_for(world, _missing([issuer.url for issuer in issuers])) as waiting:
        asyncio.run(_ask_all(report, decoded, issuers, waiting))


def _missing(urls: list[str]) -> str:
    return escaped(urls[0]) if len(urls) == 1 else f"{plural(len(urls), 'issuer')}, {escaped(urls[0])} first"


async def _ask_all(report: FileReport, decoded: Decoded, issuers: list[Issuer], waiting: Waiting) -> None:
    limit = asyncio.Semaphore(AT_ONCE)
    missing = [issuer.url for issuer in issuers]

    async def ask(issuer: Issuer) -> _Answer:
        async with limit:
            answer = await _Answer.of(issuer)
        missing.remove(issuer.url)
        if missing:
            waiting.so_far(_missing(missing))
        return answer

    for index, answer in enumerate(await asyncio.gather(*map(ask, issuers))):
        answer.add_to(report, decoded, index)


class _Noting:
    """Documents, with a note whether the last one came at all: no answer and a wrong answer are two things."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self.no_answer = False

    async def get(self, url: str, **options: Any) -> Document:
        try:
            return await self._documents.get(url, **options)
        except EnvironmentFailure:
            self.no_answer = True
            raise


class _Answer:
    def __init__(
        self, issuer: Issuer, keys: KeySet | None, failure: str, no_answer: bool, remarks: tuple[str, ...] = ()
    ) -> None:
        self._issuer = issuer
        self._keys = keys
        self._remarks = remarks
        self._failure = failure
        self._no_answer = no_answer

    @classmethod
    async def of(cls, issuer: Issuer) -> _Answer:
        documents = _Noting(issuer_documents(issuer))
        try:
            found = await Discovery(issuer, documents).key_set()
            return cls(issuer, KeySet.from_dict(found.document), "", False, tuple(key_remarks(found.document)))
        except (EnvironmentFailure, KeySetError) as error:
            return cls(issuer, None, str(error), documents.no_answer)

    def add_to(self, report: FileReport, decoded: Decoded, index: int) -> None:
        path = ("jwt", index, "issuer")
        keys = self._keys
        if keys is None:
            self._add_failure(report, decoded, path)
            return
        for remark in self._remarks:
            report.found(WARNING, "skipped-key", (*path, "url"), remark, decoded)
        if not len(keys):
            report.found(ERROR, "online", (*path, "url"), "the issuer publishes no key that can be used", decoded)
            return
        report.answers.append(f"jwt[{index}] {self._issuer.url}: {plural(len(keys), 'key')}")

    def _add_failure(self, report: FileReport, decoded: Decoded, path: tuple[str | int, ...]) -> None:
        issuer = self._issuer
        if any(sign in self._failure for sign in _CERTIFICATE):
            wrong = "certificateAuthority" if issuer.certificate_authority else "url"
            hint = (
                "the server's certificate is not of this CA, or is for another name"
                if issuer.certificate_authority
                else "the server's certificate is not of a public CA: put its CA into certificateAuthority"
            )
            report.found(ERROR, "online", (*path, wrong), self._failure, decoded, hint)
            return
        place = (*path, "discoveryURL" if issuer.discovery_url else "url")
        if self._no_answer:
            hint = f"asked for {discovery_address(issuer)}"
            report.found(ERROR, "unreachable", place, self._failure, decoded, hint)
            return
        hint = ""
        if "issuer did not match" in self._failure:
            hint = "url must be what the issuer calls itself, letter for letter, a slash at the end included"
        elif "answered 404" in self._failure:
            hint = "is there a typing error in the address? it is asked for the document under /.well-known"
        report.found(ERROR, "online", place, self._failure, decoded, hint)
