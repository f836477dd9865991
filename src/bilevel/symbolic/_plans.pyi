from collections.abc import Iterator, Mapping

from bilevel.symbolic.packed import PackedActions

class Lines(Iterator[bytes]):
    def __init__(self, actions: PackedActions, ends: Mapping[int, str]) -> None: ...
    def __next__(self) -> bytes: ...
