from bilevel.symbolic.domain import Domain
from bilevel.symbolic.packed import PackedProblem

def packed_problem(data: bytes, domain: Domain) -> PackedProblem | None: ...
