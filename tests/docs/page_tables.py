"""What makes the commands of the pages small, what of them is not run, and why."""

from __future__ import annotations

from collections.abc import Mapping

# By page, what is replaced in commands and programs, so that they take seconds. Numbers that they print then differ.
BRIEF = {"(bilevel learn )": r"\1--epochs 1 --dagger-rounds 0 "}
SMALLER: Mapping[str, Mapping[str, str]] = {
    "domains.md": BRIEF,
    "own_environment.md": {
        "--episodes 100 --output build/scrap$": "--episodes 40 --output build/scrap",
        "(bilevel learn )": r"\1--epochs 40 --dagger-rounds 0 ",
        "--objects 1,3,9 --episodes 100": "--objects 1,3,9 --episodes 2",
        "objects=3, episodes=100": "objects=3, episodes=40",
        r'"build/policy", task=task\)': '"build/brief", task=task, config=BRIEF)',
    },
    "ten_minutes.md": {
        "(bilevel check )": r"\1--seeds 1 ",
        "--episodes 60": "--episodes 4",
        "--objects 1,3,8 --episodes 20": "--objects 1 --episodes 1",
    }
    | BRIEF,
    "first_policy.md": {
        "--episodes 30 ": "--episodes 4 ",
        "--episodes 10 ": "--episodes 1 ",
        "gacha --objects 5": "gacha --objects 1",
        "objects=5": "objects=1",
        "(--objects 3,6 --env-args)": r"--episodes 1 \1",
    }
    | BRIEF,
    "failures.md": {"--episodes 30 ": "--episodes 4 ", "(bilevel learn )": r"\1--epochs 1 "},
    "import.md": {
        "--epochs 30 ": "--epochs 20 ",
        "--objects 3,9 --episodes 20": "--objects 3,9 --episodes 1",
        r'"build/in-python", task=task\)': '"build/in-python", task=task, config=BRIEF)',
    },
    "methods.md": {
        "--episodes 200 ": "--episodes 4 ",
        "(bilevel evaluate )": r"\1--objects 1 --episodes 1 ",
    }
    | BRIEF,
    "perception.md": {
        "--objects 3,10 ": "",
        "(bilevel evaluate )": r"\1--objects 1 --episodes 1 ",
    },
    "verification.md": {"(colour.pddl .* block=)4": r"\g<1>3"},
    "policies.md": {
        "--objects 1-3,10 --episodes 5 ": "--objects 1-3 --episodes 1 ",
        "--objects 10 --noise": "--objects 1 --episodes 1 --noise",
        "--objects 10 --episode 3 ": "--objects 3 --episode 0 ",
        r"objects=\[3, 10\], episodes=5": "objects=[1, 2], episodes=1",
        r'"build/policy", task=task\)': '"build/brief", task=task, config=BRIEF)',
        'network=Flat, preset="paper"': "network=Flat, config=BRIEF",
    }
    | BRIEF,
    "guide.md": {"--objects 100000 ": "--objects 1000 "},
    "README.md": {
        "--episodes 100 ": "--episodes 40 ",
        "(bilevel learn )": r"\1--epochs 20 --dagger-rounds 0 ",
        "--objects 8 --explain": "--objects 2 --explain",
        "--objects 1-8 ": "--objects 1 --episodes 1 ",
    },
    "reproduction.md": {"(bilevel report )": r"\1--page-only "},
    "tasks.md": {"--learn-domain ": "--learn-domain --epochs 1 --dagger-rounds 0 "},
}
NEEDS = {"import.md": "ogbench", "ten_minutes.md": "ogbench"}  # somebody else's package, which need not be there

MAY_LACK = ("dropped: ",)  # lines that something smaller may not print

# Pages whose numbers depend on the version of a simulator: they are compared without them.
SIMULATED = {
    "perception.md",
    "demonstrations.md",
    "domains.md",
    "import.md",
    "policies.md",
    "worlds.md",
    "first_policy.md",
    "ten_minutes.md",
}
# Pages on which the package's own policy for this task takes the place of one that was trained briefly.
PRETRAINED = {"policies.md": "blocks", "first_policy.md": "blocks", "methods.md": "blocks"}
# The same on every page: one process, no pictures and no live page, which have tests of their own. What is printed
# stays the same.
EVERYWHERE = {
    r"(--workers |workers=)\d+": r"\g<1>1",
    r" --(?:video|sheet|size)(?: [^-\s]\S*)?": "",
    r" --(?:view|names)\b": "",
}

# Commands whose answer may be no, as the page says.
MAY_SAY_NO = (
    "--rules build/two.rules",
    "--memoryless",
    "verify build/printed.rules",
    "verify build/blocks.rules .* place=4$",
    "--max-states 20",
    "domain check scrapyard.pddl",
    "bilevel run blocks --policy build/edited",
    "run --replay build/before.jsonl",
)

NOT_RUN: Mapping[str, str] = {
    "^bilevel reproduce": "an experiment of hours",
    "^bilevel benchmark hard": "an experiment of hours",
    "^bilevel report build/hard": "what an experiment of hours has found",
    "^bilevel vla": "a model of gigabytes, to be downloaded",
    "--method smolvla": "a model of gigabytes, to be downloaded",
}

# Programs of others than the command line that are run; of all other programs only the options are checked.
PROGRAMS = ("examples/own_world/recorded.py", "examples/ogbench/recorded_play.py")

OTHER_PROGRAMS: Mapping[str, str] = {
    "source": "a virtual environment's own file",
    "ray": "a cluster",
    "hf": "a download",
    "git": "a download",
    "apt-get": "the system's packages",
    "docker": "a container",
    "python setup.py": "a compiler",
}

ELSEWHERE = {"lerobot": "LeRobot needs other versions than ours"}

ILLUSTRATIONS: Mapping[str, str] = {
    "h_g⁰ = ": "a formula",
    "     0  pick(block1)\n": "an episode of one policy; what happens to it is the noise's doing",
    "no rules: a planner decides": "the gallery's words for a policy without rules",
    "  2447  pick(block1, box)\n": "an episode of an undertrained policy",
    "no action after 170 steps\n": "the gallery's: a failure that has a test of its own",
    "step limit after 4,096 steps\n": "the gallery's: a failure of a policy that is trained for it",
    "step limit after 6,144 steps\n": "the gallery's: a failure that takes long",
    "step limit after 20,480 steps\n": "the gallery's: a failure that takes long",
    "move(hall, kitchen)": "four actions, whose regression the page explains",
}
