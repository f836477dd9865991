"""The first sentences of all commands' help, so that `bilevel --help` imports none of them. A test compares them."""

SUMMARIES = {
    "check": "Say what is wrong with a task, in words, before anything is learned.",
    "collect": "Let a task's expert demonstrate it, and keep the episodes that succeed: a data set.",
    "import": "Make a data set of episodes that somebody else recorded: arrays, Minari's, LeRobot's, robomimic's.",
    "demonstrations check": (
        "Read every file of a data set and name those that are broken, with the reason; exits with 1 if there are any."
    ),
    "demonstrations replay": (
        "Execute a data set's episodes again, from their seeds, and say whether they are the same bit for bit."
    ),
    "demonstrations show": (
        "Say what a data set is, or tell one of its episodes: goals, actions and events, with their steps."
    ),
    "demonstrations export": "Write a data set in another format: as one of Minari's, or of LeRobot's (v3.0).",
    "domain check": "Compare a domain with demonstrations, change by change; exits with 1 if they contradict it.",
    "domain show": "Print a domain in plain English, as PDDL in a uniform layout, or as JSON.",
    "domain learn": (
        "Learn the actions of a domain from demonstrations, and write them as PDDL; needs labels, and no actions."
    ),
    "learn": "Learn a policy from demonstrations: rules that decide and a network that acts, or what a rival needs.",
    "policies": (
        "List the pretrained policies with how often they succeed, or show one policy: its data, settings and rules."
    ),
    "run": "Run a policy for one episode; prints what it does, exits with 1 if it does not succeed.",
    "evaluate": "Run a policy in many episodes that it has not seen, and say how often it succeeds, and why it fails.",
    "compare": (
        "Compare two results of `bilevel evaluate`, episode by episode: which is better, and which episodes changed."
    ),
    "methods": (
        "List the methods that can be compared: what each of them is, how it is learned, and what it lacks here."
    ),
    "reproduce": "Run the whole experiment: collect, train, evaluate and report whatever is not there yet.",
    "benchmark hard": (
        "Measure how far each method gets as one thing after the other is made harder: a curve for each."
    ),
    "benchmark axes": (
        "List the axes of the hard suite: what each makes harder, from which value to which, on which tasks."
    ),
    "report": "Make one page of what `bilevel reproduce` has found: tables, charts, rules, films, and how it was made.",
    "vla set-up": "Make the virtual environment in which LeRobot runs SmolVLA: some gigabytes, fetched by pip.",
    "vla fetch": (
        "Download a published model into Hugging Face's cache: the policy, and its backbone's settings and tokenizer."
    ),
    "vla check": (
        "Say which of the methods smolvla and smolvla-metaworld can be run here, and what is missing for the others."
    ),
    "rules learn": "Learn a rule policy from small problems, or from demonstrations, and write it to a file.",
    "rules complete": (
        "Find where rules run out, plan from there, and put what is learned behind them, until nothing is missing."
    ),
    "rules show": (
        "Print a rule file as text, as a Markdown table, as LaTeX like the paper's appendix, or in plain English."
    ),
    "rules verify": (
        "Check that a policy always solves a problem, whatever nature does, or show a shortest counterexample."
    ),
    "solve": "Solve a problem by rules, without search.",
    "plan": "Plan: a sequence of actions or, where the domain is nondeterministic, a policy for whatever nature does.",
    "validate": (
        "Check that a plan can be carried out and reaches the goal; exits with 1 and says where if it does not."
    ),
    "problem": "Write a random problem of one of the shipped domains, of any size.",
}
