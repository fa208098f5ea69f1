"""Whether decisions stand in the log as they were published: each carries the hash of the one before. Pure."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import Final

from sluice.chain import BEGINNING, PREVIOUS_HEADER, link, numbers_are
from sluice.codec import DECISIONS, EPOCH_HEADER, UnreadableRecordError, find_header
from sluice.decisions import Decision, Fence
from sluice.kafka import Received
from sluice.values import Epoch

#: So many of the last hashes are kept: what an owner that was fenced off says late is never older.
_KNOWN_MAX: Final = 10_000
_HEADERS: Final = ("ce_id", "ce_type", "ce_subject", "ce_time")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that no scheduler has written so."""

    offset: int
    seq: int  # 0: of no decision that is known
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Linked:
    """A decision, and its place in the chain."""

    seq: int
    offset: int
    epoch: Epoch
    previous: str
    hash: str
    #: What its hash would be if it carried what it should.
    mended: str
    is_fence: bool


@dataclass(slots=True)
class Verifier:
    """Takes the decisions of one cell, in the log's order."""

    cell: str
    findings: list[Finding] = field(default_factory=list)
    decisions: int = 0
    statuses: int = 0
    unchained: int = 0  # decisions of versions without chain
    #: What owners that were fenced off may have said late: nobody acts upon it.
    late: list[Finding] = field(default_factory=list)
    passed_over: int = 0  # numbers that were never published
    _first_offset: int | None = None  # of all records; a log whose first one is there is whole
    _last: _Linked | None = None
    _known: OrderedDict[int, _Linked] = field(default_factory=OrderedDict)
    _missing: dict[int, int] = field(default_factory=dict)  # by seq, the finding
    _doubles: list[Finding] = field(default_factory=list)  # late words, or not: what follows tells

    @property
    def seq(self) -> int:
        """Of the last decision; 0 if there is none."""
        return self._last.seq if self._last else 0

    @property
    def hash(self) -> str:
        return self._last.hash if self._last else BEGINNING

    def take(self, received: Received) -> None:
        if self._first_offset is None:
            self._first_offset = received.offset
        try:
            decision = DECISIONS.decode(received.headers, received.value)
            epoch = Epoch.parse(find_header(received.headers, EPOCH_HEADER) or "")
        except (UnreadableRecordError, ValueError) as error:
            self._find(received.offset, 0, f"a record that can't be read: {error}")
            return
        if decision.cell != self.cell:
            self._find(received.offset, 0, f"a record of cell {decision.cell}")
        elif not decision.seq:
            self.statuses += 1
        else:
            self._check_headers(received, decision)
            self._take(self._link(received, decision, epoch))

    def finish(self) -> None:
        """Nothing follows."""
        self.findings += self._doubles
        self._doubles = []

    def anchor(self, *, published: int, next_seq: int, chain: str) -> None:
        """Compare with the ledger: it knows below which seq all is published, and the hash of its last one."""
        if self.seq < published - 1:
            first = self.seq + 1
            self._find(
                -1,
                first,
                f"{numbers_are(first, published - 1)} missing at the end: the ledger has published them",
            )
        elif next_seq - 1 in self._known and self._known[next_seq - 1].hash != chain:
            self._find(
                -1,
                next_seq - 1,
                f"the chain ends in another hash than the ledger's: #{next_seq - 1} was edited, or all hashes behind "
                "an edit were made anew",
            )

    def _find(self, offset: int, seq: int, what: str) -> None:
        self.findings.append(Finding(offset=offset, seq=seq, what=what))

    def _check_headers(self, received: Received, decision: Decision) -> None:
        written = DECISIONS.encode(decision, source="")
        wrong = [
            name
            for name in _HEADERS
            if find_header(received.headers, name) != find_header(written.headers, name)
        ]
        if received.key != written.key:
            wrong.insert(0, "its key")
        if wrong:
            self._find(
                received.offset,
                decision.seq,
                f"#{decision.seq} was edited: {', '.join(wrong)} and its record differ",
            )

    def _link(self, received: Received, decision: Decision, epoch: Epoch) -> _Linked:
        previous = find_header(received.headers, PREVIOUS_HEADER) or ""
        ce_type, value = DECISIONS.ce_type(decision.type), received.value or b""
        expected = self.hash
        return _Linked(
            seq=decision.seq,
            offset=received.offset,
            epoch=epoch,
            previous=previous,
            hash=link(previous or expected, ce_type, value),
            mended=link(expected, ce_type, value),
            is_fence=isinstance(decision, Fence),
        )

    def _take(self, found: _Linked) -> None:
        last = self._last
        if last is None or (not last.previous and not self._known):
            self._begin(found)
        elif found.epoch < last.epoch:
            self._take_late(found)
        elif self._is_known(found):
            what = f"#{found.seq} stands twice: again at offset {found.offset}"
            self._doubles.append(Finding(offset=found.offset, seq=found.seq, what=what))
        elif found.previous == last.hash:
            self._follow(found, last)
        elif found.is_fence and found.epoch > last.epoch and self._is_hash(found.previous):
            self._fork(found)
        elif found.seq <= last.seq:
            self._take_out_of_order(found)
        else:
            self._break(found, last)

    def _begin(self, found: _Linked) -> None:
        """The log begins here, or the chain does, behind decisions of a version without."""
        if not found.previous:
            self.unchained += 1
            self._last = found
            return
        if found.previous != BEGINNING:
            if self._last is not None:
                what = f"decisions before #{found.seq} have lost the hashes that they carried"
                self._find(found.offset, found.seq, what)
            elif self._first_offset == 0:
                self._find(found.offset, found.seq, f"decisions before #{found.seq} are missing")
        self._go_on(found)

    def _go_on(self, found: _Linked) -> None:
        if self._doubles:
            if self._last is not None and found.epoch > self._last.epoch:
                self.late += self._doubles
            else:
                self.findings += self._doubles
            self._doubles = []
        self.decisions += 1
        self._last = found
        self._known[found.seq] = found
        if len(self._known) > _KNOWN_MAX:
            self._known.popitem(last=False)

    def _follow(self, found: _Linked, last: _Linked) -> None:
        between = found.seq - last.seq - 1
        if between and not (found.is_fence and found.epoch > last.epoch and between > 0):
            self._find(found.offset, found.seq, f"#{found.seq} follows #{last.seq}: the number is wrong")
        elif between:
            self.passed_over += between
        self._go_on(found)

    def _fork(self, found: _Linked) -> None:
        """A rebuild that had not seen what the owner before it was still publishing."""
        while next(reversed(self._known.values())).hash != found.previous:
            _, void = self._known.popitem()
            self.decisions -= 1
            self._hear_late(void)
        self._go_on(found)

    def _take_late(self, found: _Linked) -> None:
        if found.seq in self._missing:
            self._take_out_of_order(found)
        else:
            self._hear_late(found)

    def _hear_late(self, found: _Linked) -> None:
        what = f"#{found.seq} of epoch {found.epoch} came late, if its owner wrote it: it counts for nobody"
        self.late.append(Finding(offset=found.offset, seq=found.seq, what=what))

    def _is_known(self, found: _Linked) -> bool:
        return found.seq in self._known and self._known[found.seq].hash == found.hash

    def _is_hash(self, text: str) -> bool:
        return any(known.hash == text for known in self._known.values())

    def _take_out_of_order(self, found: _Linked) -> None:
        at = self._missing.pop(found.seq, None)
        if at is None:
            self._find(found.offset, found.seq, f"a second #{found.seq}, with other bytes")
            return
        what = f"#{found.seq} is out of order: it stands behind #{self.seq}"
        self.findings[at] = replace(self.findings[at], offset=found.offset, seq=found.seq, what=what)
        self.decisions += 1

    def _break(self, found: _Linked, last: _Linked) -> None:
        if not found.previous:
            self._find(found.offset, found.seq, f"#{found.seq} has lost the hash that it carried")
        elif found.seq > last.seq + 1:
            for seq in range(last.seq + 1, found.seq):
                self._missing[seq] = len(self.findings)
                self._find(found.offset, seq, f"#{seq} is missing: #{found.seq} follows #{last.seq}")
        elif found.previous == last.mended:
            self.findings[-1] = replace(
                self.findings[-1],
                offset=last.offset,
                seq=last.seq,
                what=f"#{last.seq} carries an edited hash",
            )
        else:
            what = f"#{last.seq} was edited: it is not the one whose hash #{found.seq} carries"
            self._find(last.offset, last.seq, what)
        self._go_on(found)
