"""Why no rule applies: golden answers, and agreement with every binding tried one by one."""

from __future__ import annotations

from itertools import product

from hypothesis import assume, given
from hypothesis import strategies as st

from bilevel.rules.matching import best_matches
from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import parse_rules
from bilevel.rules.why_not import nearest, why_not
from bilevel.symbolic.domain import Atom, Domain, Facts, Parameter, Predicate
from bilevel.symbolic.semantics import substitute

BLOCKS = parse_rules(
    """
    variables: ?x - block, ?l - place
    1: holding(?x) & clear(?l) & goal at(?x, ?l) -> place(?x, ?l)
    2: clear(?x) & clear(?l) & gripper-free() & goal at(?x, ?l) -> pick(?x)
    """
)


def predicate(name: str, *types: str) -> Predicate:
    return Predicate(name, tuple(Parameter(f"?{i}", kind) for i, kind in enumerate(types)))


def domain(*predicates: Predicate) -> Domain:
    return Domain("test", {p.name: p for p in predicates}, {}, {"block": "item", "place": "item"})


DOMAIN = domain(
    predicate("at", "block", "place"),
    predicate("holding", "block"),
    predicate("clear", "item"),
    predicate("gripper-free"),
)
OBJECTS = {"block1": "block", "block2": "block", "place1": "place", "place2": "place"}


def facts(text: str) -> Facts:
    """The facts of a text such as `at(a, b) & free()`."""
    return frozenset(parse_rules(f"1: {text} -> a()")[0].state_condition) if text else frozenset()


def test_the_block_in_the_gripper_is_closer_than_any_other() -> None:
    state = facts("holding(block2) & clear(place1) & clear(block1)")
    goal = facts("at(block1, place1) & at(block2, place2)")
    assert why_not(BLOCKS, DOMAIN, state, goal, OBJECTS) == (
        "rule 1 place(block2, place2): clear(place2) does not hold\nrule 2 pick(block1): gripper-free() does not hold"
    )


def test_achieved_goals_and_goals_nobody_speaks_about() -> None:
    at = facts("at(block1, place1)")
    assert why_not(BLOCKS, DOMAIN, at, at, OBJECTS) == "every goal is achieved already"
    assert why_not((), DOMAIN, facts(""), at, OBJECTS) == "there are no rules"
    clear = facts("clear(block1) & clear(block2)")
    assert why_not(BLOCKS, DOMAIN, at, at | clear, OBJECTS, limit=1) == (
        "no rule speaks about an unachieved goal: clear(block1) (and 1 more)"
    )


def test_absent_facts_inequalities_types_and_unbound_variables() -> None:
    ferry = domain(
        predicate("at-ferry", "place"),
        predicate("at", "block", "place"),
        predicate("on", "block"),
        predicate("clear", "item"),
    )
    types = "variables: ?x - block, ?a - place, ?b - place\n"
    goal = facts("on(block1)")

    def reason(rule: str, state: str, objects: dict[str, str] = OBJECTS) -> str:
        return why_not(parse_rules(types + rule), ferry, facts(state), goal, objects)

    sail = "1: at-ferry(?a) & not at-ferry(?b) & goal on(?x) -> sail(?a, ?b)"
    assert reason(sail, "at-ferry(place1) & at-ferry(place2)") == (
        "rule 1 sail(place1, place2): at-ferry(place2) holds but must be absent"
    )
    assert reason(sail, "at-ferry(place1)", {"place1": "place"}).endswith("sail(place1, ?b): no place is left for ?b")
    differ = "1: at-ferry(?a) & at(?x, ?b) & ?a != ?b & goal on(?x) -> wait()"
    assert reason(differ, "at-ferry(place1) & at(block1, place1)") == "rule 1 wait(): ?a and ?b are both place1"
    assert reason("1: at(?x, ?a) & goal on(?x) -> go(?a)", "at(block2, place1)") == (
        "rule 1 go(?a): no fact matches at(block1, ?a)"
    )
    assert reason("1: goal on(?x) -> go(?a)", "", {"block1": "block"}).endswith("no place is left for ?a")
    assert reason("variables: ?m - block\n1: clear(?m) & goal on(?x) -> go()", "clear(place1)").endswith(
        "rule 1 go(): no fact matches clear(?m) with ?m a block"
    )
    assert reason("1: goal on(?x) -> go(?a)", "", {}).endswith("no place is left for ?a")


def test_a_state_with_many_facts_still_gets_its_answer() -> None:
    count = 20_000
    objects = {f"b{i:05}": "block" for i in range(count)} | {f"p{i:05}": "place" for i in range(count)}
    goal = frozenset(Atom("at", (f"b{i:05}", f"p{i:05}")) for i in range(count))
    state = frozenset(Atom("clear", (name,)) for name in objects if name != "p19999") | facts("holding(b19999)")
    assert why_not(BLOCKS, DOMAIN, state, goal, objects, limit=1) == (
        "rule 1 place(b19999, p19999): clear(p19999) does not hold"
    )


SMALL = domain(predicate("p", "object"), predicate("q", "object", "object"), predicate("r"))
TERMS = ("?x", "?y", "a")


def atoms(terms: tuple[str, ...]) -> st.SearchStrategy[Atom]:
    term = st.sampled_from(terms)
    return (
        st.builds(Atom, st.just("p"), st.tuples(term))
        | st.builds(Atom, st.just("q"), st.tuples(term, term))
        | st.just(Atom("r"))
    )


@given(
    st.frozensets(atoms(TERMS), max_size=4),
    st.frozensets(atoms(TERMS), max_size=2),
    st.frozensets(atoms(("a", "b", "c")), max_size=8),
    st.frozensets(atoms(("a", "b", "c")), max_size=4),
)
def test_no_binding_comes_closer(conditions: Facts, goals: Facts, state: Facts, goal: Facts) -> None:
    text = " & ".join([*map(str, sorted(conditions)), *(f"goal {g}" for g in sorted(goals))])
    (rule,) = parse_rules(f"1: {text} -> act()")
    objects = dict.fromkeys("abc", "object")
    assume(not best_matches([rule], SMALL, state, goal, objects))
    (miss,) = nearest([rule], SMALL, state, goal, objects)
    counts = [unmet(rule, values, state, goal) for values in product("abc", repeat=len(rule.variables))]
    assert (miss.unmet_goals, len(miss.missing)) == min((goals, facts + goals) for facts, goals in counts)


def unmet(rule: Rule, values: tuple[str, ...], state: Facts, goal: Facts) -> tuple[int, int]:
    """How many facts and goals the rule lacks when its variables have these values."""
    binding = dict(zip((v.name for v in rule.variables), values, strict=True))
    return (
        sum(substitute(atom, binding) not in state for atom in rule.state_condition),
        sum(substitute(atom, binding) not in goal - state for atom in rule.goal_condition),
    )
