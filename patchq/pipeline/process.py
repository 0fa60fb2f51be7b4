"""The story: what happens to one response, from its bytes to a verdict that can land.

response -> envelope -> target and base -> parse -> resolve, conflicts, plan -> candidate commit.
Afterwards, for many responses at once, `checking.check` asks the hooks and `land.land` makes the
verdicts true.  A refusal at any stage ends in the same report as a success; nothing has been
written by then but unreachable objects.
"""

from __future__ import annotations

from patchq.model.errors import Fault, disk_fault
from patchq.pipeline import base, mode, stages
from patchq.pipeline.draft import Draft, Refusal, Settled
from patchq.pipeline.overrides import WHOLE, Choice
from patchq.pipeline.world import Tips, World
from patchq.queue import Claim
from patchq.report import logs


def process(claim: Claim, world: World, tips: Tips, choice: Choice = WHOLE) -> Draft:
    """Decide on one response, with `tips` as the branches will be when it lands.

    Returns the draft of its verdict: `state` is what it will be once the commit has landed.
    """
    draft = Draft(claim, world, choice)
    with logs.about(claim.id or claim.source.name):
        try:
            envelope = stages.open_envelope(draft)
            stages.choose_target(draft, tips)
            stages.recognise(draft)
            stages.await_dependencies(draft)
            tree = base.choose(draft)
            parsed = stages.parse(draft, envelope, tree)
            parsed, plan = stages.resolve(draft, parsed, tree)
            plan = base.carry(draft, parsed, plan)
            stages.check_results(draft, plan)
            mode.choose_mode(draft, plan)
            stages.commit(draft, plan, parsed.prose)
        except Refusal as refusal:
            draft.problems += refusal.problems
            draft.state = "rejected"
        except Settled:
            pass  # the draft says how
        except Fault:
            raise
        except Exception as error:
            if isinstance(error, OSError) and (broken := disk_fault(error)):
                raise broken from error
            stages.crashed(draft, error)
    return draft
