"""Reaches: how large the nodes are that a node selector leaves a pod to choose from.

Nodes are told apart by those labels only that some selector asks for: nodes of one pool that are alike in these are one
*class*, and selectors that select the same classes have one *reach*. So a node's change costs what there is of reaches
with its class, and not what there is of selectors, of which a tenant may name as many as there are sets of labels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

from sluice_scheduler.core.fairness.sizes import Size, Sizes

Label: TypeAlias = tuple[str, str]
#: A cluster and a node selector in order of name.
Selected: TypeAlias = tuple[str, tuple[Label, ...]]
#: A cluster and a node's uid.
NodeKey: TypeAlias = tuple[str, str]


class Kinship(NamedTuple):
    """What the nodes of a class have in common: of their labels those that were asked for."""

    cluster: str
    pool: str
    labels: frozenset[Label]


class NodeClass:
    __slots__ = ("kinship", "nodes", "reaches")

    def __init__(self, kinship: Kinship) -> None:
        self.kinship = kinship
        self.nodes: dict[NodeKey, Size] = {}
        self.reaches: dict[Reach, None] = {}  # those that it is in


class Reach:
    __slots__ = ("by_pool", "classes", "selectors")

    def __init__(self, classes: Iterable[NodeClass]) -> None:
        self.classes = dict.fromkeys(classes)
        self.selectors: dict[Selected, None] = {}
        self.by_pool: dict[str, Sizes] = {}
        for each in self.classes:
            each.reaches[self] = None
            for size, count in Counter(each.nodes.values()).items():
                self.add(each.kinship.pool, size, count)

    def add(self, pool: str, size: Size, count: int = 1) -> bool:
        """Whether something may fit now that did not before."""
        return self.by_pool.setdefault(pool, Sizes()).add(size, count)

    def remove(self, pool: str, size: Size) -> bool:
        """Whether something may fit no more."""
        sizes = self.by_pool[pool]
        fits_less = sizes.remove(size)
        if not len(sizes):
            del self.by_pool[pool]
        return fits_less


class Reaches:
    """Of all selectors that were asked for, kept up to date as nodes come and go."""

    def __init__(self) -> None:
        self._nodes: dict[NodeKey, tuple[NodeClass, Mapping[str, str]]] = {}
        self._classes: dict[Kinship, NodeClass] = {}
        self._with_label: dict[
            tuple[str, Label], dict[NodeClass, None]
        ] = {}  # of the labels that were asked for
        #: By cluster and label, so many selectors ask for it. One that nodes have is told apart for good.
        self._asked: Counter[tuple[str, Label]] = Counter()
        self._having: dict[tuple[str, Label], dict[NodeKey, None]] = {}  # the nodes with any label
        self._reach_of: dict[Selected, Reach] = {}
        #: Selectors with which something else may fit than when somebody asked last.
        self._changed: dict[Selected, None] = {}

    @property
    def selectors(self) -> list[Selected]:
        return list(self._reach_of)

    def add(self, node: NodeKey, labels: Mapping[str, str], pool: str, size: Size) -> None:
        cluster = node[0]
        for label in labels.items():
            self._having.setdefault((cluster, label), {})[node] = None
        asked = frozenset(label for label in labels.items() if (cluster, label) in self._asked)
        found = self._class(Kinship(cluster, pool, asked))
        self._nodes[node] = found, labels
        found.nodes[node] = size
        for reach in found.reaches:
            if reach.add(pool, size):
                self._changed.update(reach.selectors)

    def remove(self, node: NodeKey) -> None:
        left, labels = self._nodes.pop(node)
        size = left.nodes.pop(node)
        for reach in left.reaches:
            if reach.remove(left.kinship.pool, size):
                self._changed.update(reach.selectors)
        for label in labels.items():
            place = (node[0], label)
            del self._having[place][node]
            if not self._having[place]:
                del self._having[place]
                self._forget_label(place)

    def of(self, selected: Selected) -> Mapping[str, Sizes]:
        """By pool, how large the nodes are that it selects."""
        reach = self._reach_of.get(selected)
        if reach is None:
            for label in selected[1]:
                self._ask_for((selected[0], label))
            reach = self._reach_of[selected] = self._reach(self._selected_by(selected))
            reach.selectors[selected] = None
        return reach.by_pool

    def forget(self, selected: Selected) -> None:
        """Nobody waits with it any more."""
        reach = self._reach_of.pop(selected, None)
        if reach is None:
            return
        self._leave(reach, selected)
        for label in selected[1]:
            self._asked[(selected[0], label)] -= 1
            self._forget_label((selected[0], label))

    def take_changed(self) -> list[Selected]:
        changed, self._changed = self._changed, {}
        return list(changed)

    # ---- selectors

    def _selected_by(self, selected: Selected) -> list[NodeClass]:
        cluster, selector = selected
        if not selector:
            return [each for each in self._classes.values() if each.kinship.cluster == cluster]
        having = [self._with_label.get((cluster, label), {}) for label in selector]
        return [each for each in min(having, key=len) if all(each in others for others in having)]

    def _reach(self, classes: list[NodeClass]) -> Reach:
        """One that is known, or a new one."""
        wanted = dict.fromkeys(classes)
        known = min((each.reaches for each in classes), key=len, default={})
        return next((reach for reach in known if reach.classes == wanted), None) or Reach(classes)

    def _leave(self, reach: Reach, selected: Selected) -> None:
        del reach.selectors[selected]
        if not reach.selectors:
            for each in reach.classes:
                del each.reaches[reach]

    # ---- labels

    def _ask_for(self, place: tuple[str, Label]) -> None:
        """Nodes with this label are told apart from now on. What was asked for before selects them as it did."""
        is_new = place not in self._asked
        self._asked[place] += 1
        if is_new and place in self._having:
            self._drop_empty()
            self._tell_apart(place)
            self._drop_empty()

    def _tell_apart(self, place: tuple[str, Label]) -> None:
        apart: dict[NodeClass, list[NodeKey]] = {}
        for node in self._having[place]:
            apart.setdefault(self._nodes[node][0], []).append(node)
        for whole, nodes in apart.items():
            labels = whole.kinship.labels | {place[1]}
            part = self._make_class(whole.kinship._replace(labels=labels))
            for reach in whole.reaches:
                part.reaches[reach] = None
                reach.classes[part] = None
            for node in nodes:
                part.nodes[node] = whole.nodes.pop(node)
                self._nodes[node] = part, self._nodes[node][1]

    def _forget_label(self, place: tuple[str, Label]) -> None:
        """If no node has it, and no selector asks for it."""
        if not self._asked.get(place, 1) and place not in self._having:
            del self._asked[place]

    # ---- classes

    def _class(self, kinship: Kinship) -> NodeClass:
        found = self._classes.get(kinship)
        if found is None:
            self._drop_empty()
            found = self._make_class(kinship)
            self._enter_reaches(found)
        return found

    def _make_class(self, kinship: Kinship) -> NodeClass:
        made = self._classes[kinship] = NodeClass(kinship)
        for label in kinship.labels:
            self._with_label.setdefault((kinship.cluster, label), {})[made] = None
        return made

    def _drop_empty(self) -> None:
        """Not at once: a node that is edited goes and comes."""
        for each in [each for each in self._classes.values() if not each.nodes]:
            del self._classes[each.kinship]
            for reach in each.reaches:
                del reach.classes[each]
            for label in each.kinship.labels:
                there = self._with_label[(each.kinship.cluster, label)]
                del there[each]
                if not there:
                    del self._with_label[(each.kinship.cluster, label)]

    def _enter_reaches(self, made: NodeClass) -> None:
        """Of selectors that had one reach, some may select a class that is new, and others not."""
        selecting: dict[Reach, list[Selected]] = {}
        cluster, _, labels = made.kinship
        for selected, reach in self._reach_of.items():
            if selected[0] == cluster and labels.issuperset(selected[1]):
                selecting.setdefault(reach, []).append(selected)
        for reach, selectors in selecting.items():
            wider = reach if len(selectors) == len(reach.selectors) else Reach(reach.classes)
            if wider is not reach:
                for each in selectors:
                    self._leave(reach, each)
                    wider.selectors[each] = None
                    self._reach_of[each] = wider
            wider.classes[made] = None
            made.reaches[wider] = None
