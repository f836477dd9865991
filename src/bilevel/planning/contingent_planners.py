"""The planners that make contingent policies; each one's module is imported at its first use."""

from __future__ import annotations

from collections.abc import Mapping

from bilevel.planning.contingent import ContingentPlanner, PolicyResult
from bilevel.symbolic.domain import Domain, Problem


def _fond(domain: Domain, problem: Problem, time_limit: float) -> PolicyResult:
    from bilevel.planning.fond import fond

    return fond(domain, problem, time_limit)


def _pr2(domain: Domain, problem: Problem, time_limit: float) -> PolicyResult:
    from bilevel.planning.pr2 import pr2

    return pr2(domain, problem, time_limit)


CONTINGENT_PLANNERS: Mapping[str, ContingentPlanner] = {"fond": _fond, "pr2": _pr2}
