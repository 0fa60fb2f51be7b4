"""The desk: requests go to the model in threads of their own, and come back as responses.

A request is claimed as a response is, and the loop goes on without it.  The files are read in the
loop's thread; the model is asked in a bounded pool, which knows neither the repository nor the
queue.  The answer is recorded beside the claim before anything is decided, so a crash either asks
again or does not ask twice; then the claim takes the way of every other, and its report is the
request's one verdict.

The retry prompt of a refused answer is sent on at most `llm.auto_retry` times, each time as a
request with a claim of its own.  That holds for what a model was asked for by patchq alone: whoever
drops a response reads its report and answers it, and may not want another model to.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from concurrent import futures
from concurrent.futures import Future, ThreadPoolExecutor

from msgspec.structs import replace

from patchq.core.model.names import REQUEST
from patchq.core.model.values import ErrorProblem, Generation, Problem, Tree
from patchq.core.plan.targets import EditRefused, check_new, check_text, existing
from patchq.core.text.quote import fence
from patchq.gate.pipeline.session import Session
from patchq.gate.queue import Claim
from patchq.gate.report import secrecy
from patchq.gate.report.schema import Report
from patchq.llm import request
from patchq.llm.chat import AT_ONCE, Chat
from patchq.llm.client import Model
from patchq.llm.prompts import ShownFile, Task, aimed
from patchq.llm.request import Query, Reply, Request, RequestedFile

_LOG = logging.getLogger("patchq")
# Codes of refusals that no other answer would mend.
_NOT_THE_MODELS = ("llm.", "fault.", "worktree.", "target.", "depends.", "path.denied")


class RequestDesk:
    """The requests of one session that a model is asked for.

    `ring` is called, from any thread, when an answer is there.  `model` takes the place of the
    configured one.  A new configuration is a new `session`.
    """

    def __init__(
        self, session: Session, ring: Callable[[], None] = lambda: None, model: Model | None = None
    ) -> None:
        self.session, self._ring, self._model = session, ring, model
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="ask")
        self._asked: dict[str, tuple[Claim, Future[Reply]]] = {}

    @property
    def open(self) -> int:
        """The number of requests that wait for an answer, or for `answered`."""
        return len(self._asked)

    def take(self, claim: Claim) -> None:
        """Begin to ask, unless the claim is being asked for already."""
        known = self._asked.get(claim.token)
        reply = known[1] if known else self._begun(claim)
        self._asked[claim.token] = claim, reply
        if not known:
            reply.add_done_callback(lambda done: None if done.cancelled() else self._ring())

    def _begun(self, claim: Claim) -> Future[Reply]:
        query, model = prepared(self.session, claim.data), self._the_model()
        if isinstance(query, Query) and model is not None:
            return self._pool.submit(_reply, query, model)
        generation = (
            Generation(problems=(_NOT_CONFIGURED,), prompt=request.by_hand(query))
            if isinstance(query, Query)
            else Generation(problems=query)
        )
        reply = Future[Reply]()
        reply.set_result(Reply(None, generation))
        return reply

    def answered(self, wait: float = 0.0) -> list[Claim]:
        """Return the requests that came back, as claims to decide on; they are on disk by then.

        `wait` is how many seconds to wait for the first.
        """
        replies = [reply for _, reply in self._asked.values()]
        futures.wait(replies, wait, futures.FIRST_COMPLETED)
        claims: list[Claim] = []
        for token, (claim, reply) in list(self._asked.items()):
            if self.session.stop.is_set:
                break  # what was cut short is asked again by the next start
            if reply.done():
                answer = reply.result()
                data = claim.data if answer.data is None else answer.data
                claims.append(self.session.queue.answer(claim, data, answer.generation))
                del self._asked[token]
        return claims

    def refused(self, report: Report) -> None:
        """Send the retry prompt to the model if another answer may help.

        At most `llm.auto_retry` retries are made.
        """
        most = self.session.config.llm.auto_retry
        if (
            not report.attempts
            or any(error.code.startswith(_NOT_THE_MODELS) for error in report.errors)
            or self._the_model() is None
            or self.session.stop.is_set
            or _tried(self.session, report) >= most
        ):
            return
        claim = self.session.queue.adopt(
            request.write(Request(retries=report.id)), report.id + REQUEST
        )
        _LOG.info("the retry prompt of %s is sent on", report.id, extra={"batch": report.id})
        self.take(replace(claim, request=True))

    def close(self) -> None:
        """Ask no more; unanswered requests stay claimed, for the next start."""
        self.session.stop.set()
        self._pool.shutdown(cancel_futures=True)

    def _the_model(self) -> Model | None:
        llm = self.session.config.llm
        return self._model or (Chat(llm, self.session.stop) if llm.model else None)


def _reply(query: Query, model: Model) -> Reply:
    try:
        return request.ask(query, model)
    except Exception as error:
        _LOG.error("asking failed: %s", error, exc_info=error)
        what = f"patchq failed on this request ({type(error).__name__})"
        hint = "ask for something else, and report the defect with the log's traceback"
        return Reply(None, Generation(problems=(Problem("fault.crashed", what, hint),)))


_NOT_CONFIGURED = Problem(
    "llm.not_configured",
    "no model can be asked: `llm.model` is not set",
    "send the prompt by hand, and drop the answer into the inbox; or set `llm.model`",
)


def _tried(session: Session, report: Report) -> int:
    """Return the number of refused answers before this one."""
    count, seen = 0, {report.id}
    while (before := report.retry.of) and before not in seen:
        seen.add(before)
        earlier = session.queue.load(before)
        if earlier is None or not earlier.attempts or earlier.state != "rejected":
            break
        report, count = earlier, count + 1
    return count


# ---------------------------------------------------------------- what is asked


def prepared(session: Session, data: bytes) -> Query | tuple[Problem, ...]:
    """Return the query of a request, with its files at its base; or why there is none."""
    asked = request.read(data)
    if isinstance(asked, tuple):
        return asked
    if asked.mode == "auto" and session.config.mode != "auto":
        message = "the request says `mode: auto`, and the configuration lets people review"
        return (Problem("frontmatter.value", message, "leave `mode` out, or say `review`"),)
    return (
        _again(session, asked.retries, asked)
        if asked.retries is not None
        else query_of(session, asked)
    )


def query_of(session: Session, asked: Request) -> Query | tuple[Problem, ...]:
    target = asked.target or session.target
    base = session.repo.resolve_commit(asked.base) if asked.base else session.branches.tip(target)
    if base is None and asked.base:
        return (
            Problem("frontmatter.base", f"there is no commit {asked.base!r}", "correct `base`"),
        )
    if base is None:
        return (
            Problem("frontmatter.target", f"there is no branch {target!r}", "correct `target`"),
        )
    tree, problems = session.repo.tree(base), list[Problem]()
    files = _files(session, tree, asked.files, problems)
    tests = _files(session, tree, (RequestedFile(path=it) for it in asked.tests), problems)
    problems += [
        Problem(
            "path.not_found", f"there is no file {it.path} in the base", "name a test that exists"
        )
        for it in tests
        if it.text is None
    ]
    if secrecy.in_text(asked.reference, ""):
        message = "the reference holds a secret, which is not sent"
        problems.append(Problem("frontmatter.value", message, "take the secret out of it"))
    if problems:
        return tuple(problems)
    large = session.config.large_file
    task = Task(
        asked.task,
        tuple(aimed(file, asked.task) for file in files),
        base,
        asked.form,
        tuple(tests),
        large.lines,
        large.bytes,
        asked.reference,
    )
    known = frozenset(file.path for file in (*files, *tests) if file.text is not None)
    return Query(
        task,
        "",
        base,
        asked.target,
        asked.retries,
        asked.mode,
        max_attempts=session.config.llm.max_attempts,
        known=known,
    )


def _files(
    session: Session, tree: Tree, files: Iterable[RequestedFile], problems: list[Problem]
) -> list[ShownFile]:
    """Return the files to show; a path that no response may touch is shown to no model."""
    found = []
    for file in files:
        try:
            text = _text(session, tree, file.path)
            found.append(ShownFile(file.path, text, file.line, file.reach))
        except EditRefused as refused:
            problems.append(refused.problem)
    return found


def _text(session: Session, tree: Tree, path: str) -> str | None:
    r"""Return a file's text with `\n` for line ends, if there is one; raises `EditRefused`."""
    if tree.entry(path) is None:
        check_new(tree, path, session.rules)
        return None
    data, _ = existing(tree, path, session.rules)
    check_text(path, data, session.rules)
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        message = f"{path} is not UTF-8 (byte {error.start})"
        raise EditRefused(
            ErrorProblem("file.encoding", message, "leave this file out", path=path)
        ) from None


def _again(session: Session, id: str, asked: Request) -> Query | tuple[Problem, ...]:
    report, body = session.queue.load(id), session.queue.body(id)
    prompt = report.retry.prompt if report is not None else None
    if report is None or body is None or prompt is None:
        message = f"there is no refused response {id!r} to ask for again"
        return (Problem("frontmatter.value", message, "see `patchq log`"),)
    response = body.decode("utf-8", "replace")
    found = any(problem.code == "edit.secret" for problem in report.problems)
    if found or secrecy.in_text(response, ""):
        message = f"the response {id} holds a secret, which is not sent"
        return (Problem("frontmatter.value", message, "ask for the change anew"),)
    base = report.base.commit if report.base else None
    text = (
        "You were asked to change files of a repository. This was your response:\n\n"
        f"{fence(response)}\n\n{prompt}"
    )
    mode = asked.mode or ("review" if report.mode == "review" else None)
    return Query(
        None, text, base, report.target, id, mode, max_attempts=session.config.llm.max_attempts
    )
