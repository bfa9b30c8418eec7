"""The order of steps: what is read must be there, and must not be overwritten yet.

Memory that is assigned to has versions. A step that reads one comes after the step that writes it and before the step
that writes the next. Where that is impossible, because the reader also needs the next version, it gets a copy of its
own. Where one kernel would read a version at other places than it overwrites, its value goes through a temporary.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from ..fusion.step import ELSEWHERE, Step, is_kernel, stored_through
from ..graph.storage import Storage
from ..ops import Ops
from ..subgraph.graph import Graph
from ..subgraph.node import Node, update_of


def allocate(graph: Graph) -> None:
    """Gives every realised node its memory."""
    for node in graph.nodes:
        if node.reason and node.storage is None:
            give_storage(node)


def give_storage(node: Node) -> None:
    """Memory for a realised node: its target's for an ASSIGN, a part of its source's for a BUFFER_VIEW."""
    if node.op is Ops.ASSIGN:
        node.storage = node.srcs[0][0].storage
    elif node.op is Ops.BUFFER_VIEW:
        source = node.srcs[0][0].storage
        assert source is not None
        node.storage = Storage(node.device, node.size, node.dtype, root=source.root)
    else:
        node.storage = Storage(node.device, node.size, node.dtype)


class Ordering:
    """Steps with their dependencies.

    Attributes:
      steps: in execution order, once :meth:`run` was called.
      before: for each step those that must come before it.
      after: for each step those that must come after it.
      hazards: for a step that reads a version of memory and the step that overwrites it: which versions. A copy of
        the version can take the place of this order.
      firm: pairs of steps in an order that nothing can replace: the second reads what the first writes, or both write
        one memory.
    """

    def __init__(self, graph: Graph, steps: list[Step]) -> None:
        self.graph, self.steps = graph, steps
        self.writers: dict[Storage, list[Node]] = {}
        for node in graph.nodes:
            if node.op is Ops.ASSIGN:
                self.writers.setdefault(_memory(node), []).append(node)
        for chain in self.writers.values():
            chain.sort(key=lambda node: node.arg)
        self.maker: dict[Node, Step] = {}
        for step in steps:
            for root in step.roots:
                self.maker[root] = step
        self.before: dict[Step, dict[Step, None]] = {}
        self.after: dict[Step, dict[Step, None]] = {}
        self.hazards: dict[tuple[Step, Step], dict[Node, None]] = {}
        self.firm: set[tuple[Step, Step]] = set()

    def run(self) -> None:
        """Orders the steps; adds copies and temporaries where the order alone does not do."""
        if self.writers:
            for step in list(self.steps):
                for root in list(step.roots):
                    if root.op is Ops.ASSIGN and not writes_where_it_reads(step, root):
                        self._detour(step, root)
        for step in self.steps:
            self.before[step], self.after[step] = {}, {}
        for step in self.steps:
            self._link(step)
        self._sort()

    def overwriter(self, node: Node) -> Node | None:
        """The ASSIGN that ends the version of memory that a realised node is."""
        chain = self.writers.get(_memory(node))
        if chain is None:
            return None
        while node.op is Ops.BUFFER_VIEW:
            node = node.srcs[0][0]
        place = chain.index(node) + 1 if node.op is Ops.ASSIGN else 0
        return chain[place] if place < len(chain) else None

    def _edge(self, first: Step, second: Step) -> None:
        if first is not second:
            self.before[second][first] = None
            self.after[first][second] = None

    def _link(self, step: Step) -> None:
        for node in step.inputs:
            maker = self.maker.get(node)
            if maker is not None:
                self._edge(maker, step)
                self.firm.add((maker, step))
            if self.writers and node in step.places:
                writer = self.overwriter(node)
                if writer is not None and (end := self.maker[writer]) is not step:
                    self._edge(step, end)
                    self.hazards.setdefault((step, end), {})[node] = None
        if self.writers:
            for root in step.roots:
                following = self.overwriter(root)
                if following is not None:
                    self._edge(step, self.maker[following])
                    self.firm.add((step, self.maker[following]))

    def _detour(self, step: Step, root: Node) -> None:
        """Lets ``step`` compute into a temporary, and a step of its own put that where ``root`` wants it."""
        assert step.roots == [root]
        target, value = root.srcs
        shape = value[0].shape if value[1] is None else value[1].shape
        temporary = Node(Ops.CONTIGUOUS, root.device, root.dtype, shape, (value,), None, root.origin)
        temporary.reason = "the value reads the memory that it goes to, at other places"
        self.graph.add(temporary)
        give_storage(temporary)
        step.roots = [temporary]
        step.inputs.pop(target[0], None)
        if target[0] in step.places:
            step.inputs[target[0]] = None
        root.srcs = (target, (temporary, None))
        store = Step(root)
        store.inputs = {target[0]: None, temporary: None}
        store.places = {temporary: {None}}
        store.computed = 1
        self.maker[temporary], self.maker[root] = step, store
        self.steps.append(store)

    def _sort(self) -> None:
        waiting = {step: len(self.before[step]) for step in self.steps}
        ready = [(step.position, n, step) for n, step in enumerate(self.steps) if not waiting[step]]
        heapify(ready)
        done: list[Step] = []
        serial = len(self.steps)
        while len(done) < len(self.steps):
            if not ready:
                copy = self._break_cycle({step for step, count in waiting.items() if count})
                waiting[copy] = len(self.before[copy])
                for step in self.steps:
                    if waiting[step] > 0:
                        waiting[step] = sum(1 for s in self.before[step] if waiting[s] >= 0)
                ready = [(s.position, n, s) for n, s in enumerate(self.steps) if waiting[s] == 0]
                heapify(ready)
                continue
            _, _, step = heappop(ready)
            waiting[step] = -1
            done.append(step)
            for follower in self.after[step]:
                waiting[follower] -= 1
                if not waiting[follower]:
                    serial += 1
                    heappush(ready, (follower.position, serial, follower))
        for position, step in enumerate(done):
            step.position = position
        self.steps = done

    def _break_cycle(self, stuck: set[Step]) -> Step:
        """Copies a version of memory for the readers that cannot come before the step that overwrites it."""
        for (reader, writer), nodes in list(self.hazards.items()):
            if (reader, writer) in self.firm:
                continue  # the writer depends on the reader for another reason: a copy would not break the cycle
            if reader not in stuck or writer not in stuck or not self._reaches(writer, reader, stuck):
                continue
            node = next(iter(nodes))
            copy = Node(Ops.CONTIGUOUS, node.device, node.dtype, node.shape, ((node, None),), None, node.origin)
            copy.reason = "a copy of memory that is overwritten before its last reader can run"
            self.graph.add(copy)
            give_storage(copy)
            step = Step(copy)
            step.position = writer.position
            step.inputs[node] = None
            step.places[node] = {None}
            step.computed = 1
            self.steps.append(step)
            self.maker[copy] = step
            self.before[step], self.after[step] = {}, {}
            for other in dict.fromkeys([reader, *self._late_readers(node, writer, stuck)]):
                others = self.hazards.get((other, writer), {})
                others.pop(node, None)
                if not others:  # else the order is still needed for what it reads besides
                    self.hazards.pop((other, writer), None)
                    self.before[writer].pop(other, None)
                    self.after[other].pop(writer, None)
                other.inputs.pop(node)
                other.inputs[copy] = None
                other.swaps[node] = copy
                other.places[copy] = other.places.pop(node)
                self._edge(step, other)
                self.firm.add((step, other))
            self._link(step)
            return step
        raise AssertionError("a cycle without a version of memory to copy")

    def _late_readers(self, node: Node, writer: Step, stuck: set[Step]) -> list[Step]:
        return [
            reader for (reader, end), nodes in self.hazards.items()
            if end is writer and node in nodes and (reader, end) not in self.firm
            and reader in stuck and self._reaches(writer, reader, stuck)
        ]  # fmt: skip

    def _reaches(self, first: Step, last: Step, within: set[Step]) -> bool:
        seen, stack = {first}, [first]
        while stack:
            for step in self.after[stack.pop()]:
                if step is last:
                    return True
                if step in within and step not in seen:
                    seen.add(step)
                    stack.append(step)
        return False


def _memory(node: Node) -> Storage:
    assert node.storage is not None
    return node.storage.root


def writes_where_it_reads(step: Step, root: Node) -> bool:
    """Whether ``step`` reads the memory that the ASSIGN ``root`` overwrites only where it is about to write."""
    if not is_kernel(root):
        return True
    through = stored_through(root) if update_of(root) is None else ELSEWHERE
    for node, places in step.places.items():
        if node.storage is not None and node.storage.root is _memory(root):
            if through is ELSEWHERE or node.storage is not root.storage or node in step.nested:
                return False
            if any(p is not through for p in places):
                return False
    return True
