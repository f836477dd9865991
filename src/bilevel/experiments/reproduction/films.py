"""Films: an episode of a policy to look at, with a timeline that says, step by step, what was done and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from bilevel.experiments.evaluation import MakePolicy, run_episode
from bilevel.experiments.methods import find_contender
from bilevel.experiments.reproduction.settings import BISON, find_variant
from bilevel.experiments.reproduction.timeline import Beat, Fired, Timeline
from bilevel.policies.narration import DRAWN, LINES_BELOW, STEPS_PER_SECOND, Decision, rules_of
from bilevel.policies.policies import WatchedPolicy
from bilevel.policies.rollout import Episode, Moment, rollout
from bilevel.rules.explanation.formats import explain_match
from bilevel.rules.matching import Match
from bilevel.rules.rule_policy import RulePolicy
from bilevel.seeds import evaluation_seed
from bilevel.symbolic.domain import Action, Facts
from bilevel.tabletop.tabletop import SUCCESS, Tabletop
from bilevel.tabletop.tasks import find_task
from bilevel.video import Video

FILMED = 4  # objects: enough for several goals, and few enough for a film of half a minute
LONGEST = 3000  # steps; an episode that takes longer is not shown to its end
TRIED = 10  # episodes, in search of one worth looking at
FILM_STEPS_PER_SECOND = STEPS_PER_SECOND / 2  # half of what really happens; a sentence takes a while to read
SURPRISE = "teleport"  # the kind of event that noisy worlds have and others have not


@dataclass(frozen=True)
class Look:
    """How a film is drawn and stored: small, since a page holds one for each task."""

    width: int = 480  # pixels
    quality: str = "large"  # of the pictures before they are made smaller
    encoder: Mapping[str, str] = field(default_factory=lambda: {"crf": "29", "preset": "medium", "threads": "1"})


LOOK = Look()


def make_film(
    policy: Path | None, task: str, objects: int, seed: int, video: Path, variant: str = BISON, look: Look = LOOK
) -> Timeline:
    """Run a policy for one episode and write a film of it with captions; `BadInput` where nothing can be drawn.

    The seed is that of the world, as `bilevel run` takes it.
    """
    known, make_policy = find_task(task), _maker(policy, task, variant)
    environment = known.make(objects, render_mode="rgb_array", quality=look.quality)
    with closing(environment):
        environment.render()  # where that is impossible, it is said before a file is begun
        recorder = TimelineRecorder(make_policy(known, environment))
        pictures_per_second = FILM_STEPS_PER_SECOND / DRAWN
        with Video(video, pictures_per_second, width=look.width, encoder=look.encoder) as film:
            episode, pictures = _shoot(environment, recorder, seed, film)
    return Timeline(
        task=task,
        entrant=variant,
        objects=objects,
        seed=seed,
        outcome=episode.outcome,
        steps=episode.steps,
        steps_per_second=FILM_STEPS_PER_SECOND,
        pictures_per_second=pictures_per_second,
        seconds=pictures / pictures_per_second,
        beats=recorder.beats,
    )


def _shoot(environment: Tabletop, recorder: TimelineRecorder, seed: int, film: Video) -> tuple[Episode, int]:
    """Draw an episode, and its end for a second; how it went, and how many pictures there are.

    A step that is not drawn is shown with the next one that is.
    """
    pictures = 0

    def watch(moment: Moment) -> None:
        nonlocal pictures
        recorder(moment)
        if moment.info["events"]:
            environment.save()  # things that nature has put elsewhere are drawn there from now on, not one step later
        if (recorder.steps - 1) % DRAWN == 0:
            film.add(environment.render(), recorder.caption, LINES_BELOW)
            pictures += 1

    episode = rollout(environment, recorder.policy, seed, watch=watch, stop=lambda: recorder.steps >= LONGEST)
    recorder.end(episode)
    last, held = environment.render(), round(film.fps)
    for _ in range(held):
        film.add(last, episode.outcome, LINES_BELOW)
    return episode, pictures + held


class TimelineRecorder:
    """Watches a policy along an episode, and keeps a beat of each step at which something is new."""

    def __init__(self, policy: WatchedPolicy) -> None:
        self.policy = policy
        self.beats: list[Beat] = []
        self.steps = 0
        self.caption = ""  # what is being done, and why
        self._seen: tuple[Action | None, Facts, Facts] | None = None  # the action, the state, the goal

    def __call__(self, moment: Moment) -> None:
        action, state, goal = seen = self.policy.action, self.policy.state, self.policy.labels.goal(moment.observation)
        if seen != self._seen or moment.info["events"]:
            rules = rules_of(self.policy)
            match = rules.explain(state, goal) if rules and action else None
            self._add(action, _fired(rules, match), state, goal, moment.info["events"])
            self.caption = Decision(self.steps, action, match).caption() if action else ""
            self._seen = seen
        self.steps += 1

    def end(self, episode: Episode) -> None:
        """Add what was seen last, whether or not it is new."""
        labels, seen = self.policy.labels, episode.observation
        self._add(None, None, labels.state(seen), labels.goal(seen), episode.info["events"])

    def _add(self, action: Action | None, rule: Fired | None, state: Facts, goal: Facts, events: Sequence[str]) -> None:
        _, before, _ = self._seen or (None, state, goal)  # at the beginning, nothing changes
        self.beats.append(
            Beat(
                step=self.steps,
                action=str(action) if action else None,
                rule=rule,
                appeared=_texts(state - before),
                vanished=_texts(before - state),
                goals_left=_texts(goal - state),
                events=list(events),
            )
        )


def _fired(rules: RulePolicy | None, match: Match | None) -> Fired | None:
    if rules is None or match is None:
        return None
    number = rules.rules.index(match.rule) + 1
    return Fired(number, str(match.rule), dict(sorted(match.binding.items())), explain_match(match))


def _texts(facts: Facts) -> list[str]:
    return [str(fact) for fact in sorted(facts)]


def interesting_seed(policy: Path | None, task: str, objects: int = FILMED) -> int:
    """Return the seed of the first episode of an evaluation that is worth a film.

    That is one that succeeds, in a noisy world in spite of a surprise. Where there is none among the first few, it is
    the first that succeeds, or else the first.
    """
    known, make_policy = find_task(task), _maker(policy, task, BISON)
    succeeded: list[int] = []
    with closing(known.make(objects)) as environment:
        acting = make_policy(known, environment)
        for seed in (evaluation_seed(0, episode) for episode in range(TRIED)):
            run = run_episode(environment, acting, seed)
            if run.outcome == SUCCESS and run.steps <= LONGEST:
                if not known.noisy or SURPRISE in run.events:
                    return seed
                succeeded.append(seed)
    return [*succeeded, evaluation_seed(0, 0)][0]


def _maker(policy: Path | None, task: str, variant: str) -> MakePolicy:
    contender = find_contender(find_variant(variant).method, policy)
    contender.check_domain(find_task(task))
    assert contender.make is not None, "rows of the table act in worlds"
    return contender.make
