"""CPU time counts what is computed, by this thread or by programs that are waited for, and not what is waited."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

from bilevel.cpu_time import cpu_seconds
from bilevel.policies.policy import BilevelPolicy, expert_policy
from bilevel.policies.rollout import rollout
from bilevel.tasks.controls import Control
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SceneEnv
from tiny_task import TINY

BUSY = "import time\nwhile time.process_time() < 0.1: pass\nprint(time.process_time())"
NAP = 0.01  # seconds


def compute(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_what_this_thread_computes_counts_and_what_others_do_does_not() -> None:
    began = cpu_seconds()
    compute(0.02)
    assert cpu_seconds() - began >= 0.02
    began, other = cpu_seconds(), threading.Thread(target=compute, args=(0.2,))
    other.start()
    other.join()
    assert cpu_seconds() - began < 0.2


def test_programs_count_that_were_waited_for() -> None:
    began = cpu_seconds()
    taken = float(subprocess.run([sys.executable, "-c", BUSY], capture_output=True, check=True).stdout)
    assert cpu_seconds() - began >= taken


class Sleepy(BilevelPolicy):
    """Waits before each step, as on a machine that is busy with something else."""

    def act(self, scene: Scene) -> Control | None:
        time.sleep(NAP)
        return super().act(scene)


def test_an_episode_is_timed_by_what_it_computes() -> None:
    env = SceneEnv(TINY, 1)
    expert = expert_policy(env)
    assert isinstance(expert, BilevelPolicy)
    policy = Sleepy(expert.labels, expert.high, expert.low)
    run = rollout(env, policy, 1)
    assert 0 < run.seconds.policy < run.steps * NAP
    policy.acts_elsewhere = True
    assert rollout(env, policy, 1).seconds.policy >= run.steps * NAP
