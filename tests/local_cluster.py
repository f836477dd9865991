"""A Ray cluster of two nodes on this machine, which knows of no other one and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SHARED_MEMORY = 80_000_000  # bytes, the least that Ray accepts


@contextmanager
def local_cluster() -> Iterator[Any]:
    """Each node has a core; the cluster has an `address`."""
    from ray import cluster_utils

    node: dict[str, Any] = {"num_cpus": 1, "num_gpus": 0, "object_store_memory": SHARED_MEMORY}
    cluster: Any = cluster_utils.Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    try:
        cluster.add_node(**node)
        yield cluster
    finally:
        cluster.shutdown()
