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
from collections.abc import Callable
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
from patchq.llm.chat import AT_ONCE, Chat, Stop
from patchq.llm.prompts import ShownFile, Task
from patchq.llm.request import Query, Reply, Request, RequestedFile

_LOG = logging.getLogger("patchq")
# Codes of refusals that no other answer would mend.
_NOT_THE_MODELS = ("llm.", "fault.", "worktree.", "target.", "depends.", "path.denied")


class RequestDesk:
    """The requests of one process that a model is asked for.

    `ring` is called, from any thread, when an answer is there; `stop` cuts all questions short.
    `asked` has those that wait for an answer, or for `answered`, by their tokens.
    """

    def __init__(self, stop: Stop, ring: Callable[[], None] = lambda: None) -> None:
        self._stop, self._ring = stop, ring
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="ask")
        self.asked: dict[str, tuple[Claim, Future[Reply]]] = {}

    def take(self, claim: Claim, session: Session) -> None:
        """Begin to ask, unless the claim is being asked for already."""
        known = self.asked.get(claim.token)
        reply = known[1] if known else self._begun(claim, session)
        self.asked[claim.token] = claim, reply
        if not known:
            reply.add_done_callback(lambda done: None if done.cancelled() else self._ring())

    def _begun(self, claim: Claim, session: Session) -> Future[Reply]:
        asked = request.read(claim.data)
        query = asked if isinstance(asked, tuple) else query_of(session, asked)
        if not isinstance(query, Query):
            generation = Generation(problems=query)
        elif session.config.llm.model:
            return self._pool.submit(_reply, query, Chat(session.config.llm, self._stop))
        else:
            generation = Generation(problems=(_NOT_CONFIGURED,), prompt=request.by_hand(query))
        reply = Future[Reply]()
        reply.set_result((None, generation))
        return reply

    def answered(self, session: Session, wait: float = 0.0) -> list[Claim]:
        """Return the requests that came back, as claims to decide on; they are on disk by then.

        `wait` is how many seconds to wait for the first.
        """
        replies = [reply for _, reply in self.asked.values()]
        futures.wait(replies, wait, futures.FIRST_COMPLETED)
        claims: list[Claim] = []
        for token, (claim, reply) in list(self.asked.items()):
            if self._stop.is_set:
                break  # what was cut short is asked again by the next start
            if reply.done():
                data, generation = reply.result()
                body = claim.data if data is None else data
                claims.append(session.queue.answer(claim, body, generation))
                del self.asked[token]
        return claims

    def refused(self, report: Report, session: Session) -> None:
        """Send the retry prompt to the model if another answer may help.

        At most `llm.auto_retry` retries are made.
        """
        llm = session.config.llm
        if (
            not report.attempts
            or any(error.code.startswith(_NOT_THE_MODELS) for error in report.errors)
            or not llm.model
            or self._stop.is_set
            or _tried(session, report, llm.auto_retry) >= llm.auto_retry
        ):
            return
        claim = session.queue.adopt(request.write(Request(retries=report.id)), report.id + REQUEST)
        _LOG.info("the retry prompt of %s is sent on", report.id, extra={"batch": report.id})
        self.take(replace(claim, request=True), session)

    def close(self) -> None:
        """Ask no more; unanswered requests stay claimed, for the next start."""
        self._stop.set()
        self._pool.shutdown(cancel_futures=True)


def _reply(query: Query, model: Chat) -> Reply:
    try:
        return request.ask(query, model)
    except Exception as error:
        _LOG.error("asking failed: %s", error, exc_info=error)
        what = f"patchq failed on this request ({type(error).__name__})"
        hint = "ask for something else, and report the defect with the log's traceback"
        return None, Generation(problems=(Problem("fault.crashed", what, hint),))


_NOT_CONFIGURED = Problem(
    "llm.not_configured",
    "no model can be asked: `llm.model` is not set",
    "send the prompt by hand, and drop the answer into the inbox; or set `llm.model`",
)


def _tried(session: Session, report: Report, most: int) -> int:
    """Return the number of refused answers before this one, at most so many."""
    count, before = 0, report.retry.of
    while before and count < most:
        earlier = session.queue.load(before)
        if earlier is None or not earlier.attempts or earlier.state != "rejected":
            break
        before, count = earlier.retry.of, count + 1
    return count


# ---------------------------------------------------------------- what is asked


def query_of(session: Session, asked: Request) -> Query | tuple[Problem, ...]:
    """Return the query of a request, with its files at its base; or the problem with it."""
    try:
        if asked.mode == "auto" and session.config.mode != "auto":
            message = "the request says `mode: auto`, and the configuration lets people review"
            raise _wrong("value", message, "leave `mode` out, or say `review`")
        return _query(session, asked) if asked.retries is None else _again(session, asked)
    except EditRefused as refused:
        return (refused.problem,)


def _wrong(key: str, message: str, hint: str) -> EditRefused:
    return EditRefused(ErrorProblem(f"frontmatter.{key}", message, hint))


def _query(session: Session, asked: Request) -> Query:
    target = asked.target or session.target
    base = session.repo.resolve_commit(asked.base) if asked.base else session.branches.tip(target)
    if base is None:
        key, value = ("base", asked.base) if asked.base else ("target", target)
        raise _wrong(key, f"there is no commit {value!r} to show files of", f"correct `{key}`")
    tree = session.repo.tree(base)
    files = [_shown(session, tree, file) for file in asked.files]
    tests = [_shown(session, tree, RequestedFile(path=path), there=True) for path in asked.tests]
    if secrecy.in_text(asked.reference, ""):
        message = "the reference holds a secret, which is not sent"
        raise _wrong("value", message, "take the secret out of it")
    task = Task(
        asked.task,
        tuple(files),
        base,
        asked.form,
        tuple(tests),
        session.config.large_file,
        asked.reference,
    )
    return Query(
        task,
        "",
        base,
        asked.target,
        asked.retries,
        asked.mode,
        max_attempts=session.config.llm.max_attempts,
        known=frozenset(file.path for file in (*files, *tests) if file.text is not None),
    )


def _shown(session: Session, tree: Tree, file: RequestedFile, *, there: bool = False) -> ShownFile:
    r"""Return the file to show, with `\n` for line ends; without text if it may be made.

    A path that no response may touch is shown to no model: raises `EditRefused`.
    """
    path, text = file.path, None
    if tree.entry(path) is None and not there:
        check_new(tree, path, session.rules)
    else:
        data, _ = existing(tree, path, session.rules)
        check_text(path, data, session.rules)
        try:
            text = data.decode("utf-8-sig").replace("\r\n", "\n")
        except UnicodeDecodeError as error:
            message = f"{path} is not UTF-8 (byte {error.start})"
            raise EditRefused(
                ErrorProblem("file.encoding", message, "leave this file out", path=path)
            ) from None
    return ShownFile(path, text, file.line)


def _again(session: Session, asked: Request) -> Query:
    id = asked.retries or ""
    report, body = session.queue.load(id), session.queue.body(id)
    prompt = report.retry.prompt if report is not None else None
    if report is None or body is None or prompt is None:
        raise _wrong(
            "value", f"there is no refused response {id!r} to ask for again", "see `patchq log`"
        )
    response = body.decode("utf-8", "replace")
    found = any(problem.code == "edit.secret" for problem in report.problems)
    if found or secrecy.in_text(response, ""):
        message = f"the response {id} holds a secret, which is not sent"
        raise _wrong("value", message, "ask for the change anew")
    text = (
        "You were asked to change files of a repository. This was your response:\n\n"
        f"{fence(response)}\n\n{prompt}"
    )
    return Query(
        None,
        text,
        report.base.commit if report.base else None,
        report.target,
        id,
        asked.mode or ("review" if report.mode == "review" else None),
        max_attempts=session.config.llm.max_attempts,
    )
