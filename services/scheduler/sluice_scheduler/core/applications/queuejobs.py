"""QueueJobs: Sluice makes their pods itself, as one more client of the same queues.

A pod is made when its job is admitted and wants one more, and waits at its gate like any other. What ends is
counted by index: one that has succeeded is done, one that failed or was taken back is made again.

Pods that could not be admitted are not made: beyond those that something is reserved for, only a few stand at
their gates at a time. When half of them have been let in, as many are made anew. So one pod is always in line
to say that the job wants more, and a job of 16,000 in a cluster with room for 8 has 12. The few grow with
what the job holds (half as many again), because each lot takes a round trip through the API server.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Final, Literal

from sluice.decisions import CreatePod
from sluice.events import JobFacts, OutcomeEvent, WorkloadFacts

from sluice_scheduler.core.applications.evict import evict_pod
from sluice_scheduler.core.state.application import Application
from sluice_scheduler.core.state.books import PodSetBook
from sluice_scheduler.core.state.kinship import members_of
from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.stored.accounts import JobRecord, Pod, Workload

#: Back-off grows no longer than this.
BACKOFF_MAX_MS: Final = 6 * 60_000
#: After a pod could not be made.
RETRY_MS: Final = 5_000
#: So many pods of a job stand at their gates with nothing reserved for them: half as many as it holds, within
#: these bounds. One would do to keep its place in line; a few are let in together when room comes.
AHEAD_MIN: Final = 4
AHEAD_MAX: Final = 100
#: So many of a job's pods are asked for and not seen yet, at the most: others want to have some made, too.
ASKED_FOR_MAX: Final = 100
#: So many pods are made in one step, of all jobs.
MADE_MAX: Final = 200


def run_jobs(state: State) -> None:
    """Make the pods that admitted jobs want now, as many as a step can bear; the next record's makes the rest."""
    jobs, state.jobs = state.jobs, {}
    left = MADE_MAX
    for key in sorted(jobs):
        app = jobs[key]
        if not left:
            state.jobs[key] = app
            state.pass_due = True
        elif app.workload is not None:
            left -= _run(state, app, app.workload, left)


def resume_jobs(state: State) -> None:
    """With a tick, jobs whose back-off is over go on: by what their accounts say, so that a worker that takes
    over just before that tick does not hurry."""
    over = [key for key, until_ms in state.resting.items() if until_ms <= state.cell.time_ms]
    for key in [key for key in over if not state.is_aside(key)]:
        del state.resting[key]
        workload = state.workloads.get(key)
        if workload is not None:
            workload.job.resume_ms = 0
            workload.unclaimed_ms = state.now_ms  # before, no pod of it could come
            state.workload_changed(workload)


def _rest(state: State, workload: Workload, pause_ms: int) -> None:
    """Make no pod of a job for so long."""
    if pause_ms:
        workload.job.resume_ms = state.resting[workload.key] = state.now_ms + pause_ms
    else:
        workload.job.resume_ms = 0
        state.resting.pop(workload.key, None)


def _run(state: State, app: Application, workload: Workload, most: int) -> int:
    """How many pods were made of it."""
    job, facts = workload.job, workload.facts
    if not workload.admitted or facts.finished or facts.problem or not state.is_live(workload.cluster):
        return 0
    [pod_set] = facts.pod_sets
    completions = pod_set.completions or 0
    left = completions - job.successes
    if left <= 0:
        _end(state, workload, "Finished", f"{completions} pods have succeeded")
        return 0
    if job.resume_ms:
        return 0
    book, size = app.book(pod_set.name), min(pod_set.count, left)
    makes = min(_may_make(book, job), most)
    there = len(book.holding) + len(book.waiting) + len(job.asked_for)
    if there == size or (there < size and not makes):
        return 0  # most often
    return _resize(state, workload, size=size, makes=makes)


def _may_make(book: PodSetBook, job: JobRecord) -> int:
    """How many pods may be made now, however many the job wants."""
    ahead = max(AHEAD_MIN, min(AHEAD_MAX, len(book.holding) // 2))
    idle = len(book.waiting) + len(job.asked_for) - book.reserved
    makes = ahead - idle if idle <= ahead // 2 else 0
    return max(0, min(makes, ASKED_FOR_MAX - len(job.asked_for)))


def _resize(state: State, workload: Workload, *, size: int, makes: int) -> int:
    """Let a job have so many pods, as far as so many may be made now."""
    job = workload.job
    pods = [pod for pod in members_of(state, workload) if not pod.facts.finished]
    taken = {index_of(pod) for pod in pods}
    taken.update(index for index, _ in job.asked_for.values())
    wanted = size - len(taken)
    if wanted < 0:
        _let_go(state, workload, pods, -wanted)
    [pod_set] = workload.facts.pod_sets
    free = (index for index in _left_to_do(job, pod_set.completions or 0) if index not in taken)
    made = list(islice(free, max(0, min(wanted, makes))))
    for index in made:
        _make(state, workload, index)
    return len(made)


def _left_to_do(job: JobRecord, completions: int) -> Iterator[int]:
    """The indexes that are not done."""
    at = 0
    for first, last in job.done:
        yield from range(at, min(first, completions))
        at = last + 1
    yield from range(at, completions)


def _let_go(state: State, workload: Workload, pods: list[Pod], too_many: int) -> None:
    """It was made smaller: those that wait go first, the last before the first."""
    staying = [pod for pod in pods if not pod.evicting]
    staying.sort(key=lambda pod: (pod.phase != "Waiting", -index_of(pod)))
    leaving = len(pods) - len(staying)
    why = f"job {workload.name} was made smaller"
    for pod in staying[: max(0, too_many - leaving)]:
        evict_pod(state, pod, state.cell.time_ms, "Resized", why)


def _make(state: State, workload: Workload, index: int) -> None:
    job = workload.job
    attempt = job.attempts.get(str(index), 0)
    name = f"{workload.name}-{index}-{attempt}"
    decision = state.decide(
        CreatePod(
            **state.stamp(workload.cluster),
            namespace=workload.namespace,
            name=name,
            uid=workload.uid,
            job=workload.name,
            queue=workload.queue,
            index=index,
            reason="Wanted",
            sentence=f"pod {index} of job {workload.name}, attempt {attempt + 1}",
        )
    )
    job.attempts[str(index)] = attempt + 1
    job.asked_for = {**job.asked_for, name: (index, decision.seq)}
    state.making[decision.seq] = workload.key
    job.start_ms = job.start_ms or state.cell.time_ms
    state.workloads.put(workload)


def index_of(pod: Pod) -> int:
    """The index in the name of a pod that Sluice has made. Other pods may have any name: -1."""
    index = pod.name.rpartition("-")[0].rpartition("-")[2]
    return int(index) if index.isdecimal() else -1


def _has_index(workload: Workload, index: int) -> bool:
    """Whether a job makes pods of this index. A pod that somebody else made for it may show any."""
    return any(0 <= index < (each.completions or 0) for each in workload.facts.pod_sets)


def see_pod_of_job(state: State, workload: Workload, pod: Pod) -> None:
    """A pod of a job was seen. An earlier ledger may have made it."""
    job, index = workload.job, str(index_of(pod))
    attempt = pod.name.rpartition("-")[2]
    job.asked_for = {name: asked for name, asked in job.asked_for.items() if name != pod.name}
    job.refusal = ""
    if attempt.isdecimal() and _has_index(workload, int(index)):
        job.attempts[index] = max(job.attempts.get(index, 0), int(attempt) + 1)
    state.workload_changed(workload)


def count_end_of_job(state: State, workload: Workload, pod: Pod) -> None:
    """What a job's pod leaves behind: an index that is done, or a failure."""
    job, limits = workload.job, workload.facts.job
    assert limits is not None, f"{workload.key} is no QueueJob"
    if pod.facts.phase == "Succeeded":
        _count_done(job, index_of(pod))
    elif not pod.evicting and not pod.facts.deleting:
        failed = f"pod {pod.name} failed"
        _count_failure(state, workload, limits, failed)
        if (
            limits.restart_limit is not None
            and job.attempts.get(str(index_of(pod)), 1) > limits.restart_limit
        ):
            again = (
                f"was replaced {limits.restart_limit} times" if limits.restart_limit else "is not replaced"
            )
            _end(state, workload, "Failed", f"{failed}; it {again} (spec.restartLimit)")
    state.workload_changed(workload)


def _count_done(job: JobRecord, index: int) -> None:
    """It is never made again, so it does not matter any more how often it was."""
    job.done = _with_one_more(job.done, index)
    job.attempts.pop(str(index), None)
    job.in_a_row = 0


def _with_one_more(done: tuple[tuple[int, int], ...], index: int) -> tuple[tuple[int, int], ...]:
    """Rows of indexes, with one more: kept one by one, a million that are done would be written with each end."""
    at = bisect_left(done, (index + 1,))
    before, after = done[:at], done[at:]
    first = last = index
    if before and index <= before[-1][1] + 1:
        first, last = before[-1][0], max(index, before[-1][1])
        before = before[:-1]
    if after and last + 1 == after[0][0]:
        last, after = after[0][1], after[1:]
    return (*before, (first, last), *after)


def _count_failure(state: State, workload: Workload, limits: JobFacts, failed: str) -> None:
    job = workload.job
    job.failures, job.in_a_row = job.failures + 1, job.in_a_row + 1
    _rest(state, workload, min(limits.backoff_ms << min(job.in_a_row - 1, 20), BACKOFF_MAX_MS))
    if job.failures > limits.backoff_limit:
        _end(state, workload, "Failed", f"{failed}, and that is failure {job.failures} of the job")


def on_create_pod(state: State, event: OutcomeEvent) -> None:
    """A pod that could not be made is asked for anew, a little later.

    If it was refused, that is a failure of the job, lest one that can have no pods hold its minimum for
    ever; one failure, however many pods were refused at a time.
    """
    workload = state.workloads.get(state.making.pop(event.seq, ""))
    if workload is None or event.result in ("Applied", "AlreadyApplied", "Gone"):
        return
    job, limits = workload.job, workload.facts.job
    job.asked_for = {name: (index, seq) for name, (index, seq) in job.asked_for.items() if seq != event.seq}
    if event.result != "Rejected" or limits is None:
        _rest(state, workload, RETRY_MS)
    elif job.resume_ms <= state.cell.time_ms:
        job.refusal = f"a pod of it could not be made: {event.message}"
        _count_failure(state, workload, limits, job.refusal)
    state.workload_changed(workload)


def _end(state: State, workload: Workload, outcome: Literal["Finished", "Failed"], why: str) -> None:
    job = workload.job
    if job.outcome:
        return
    job.outcome, job.why, job.end_ms = outcome, why, state.cell.time_ms
    workload.facts = ended(workload, workload.facts)
    state.workload_changed(workload)
    for pod in members_of(state, workload):
        if (pod.holds or pod.phase == "Waiting") and not pod.evicting:
            evict_pod(state, pod, state.cell.time_ms, "JobEnded", f"job {workload.name} has ended: {why}")


def ended(workload: Workload, facts: WorkloadFacts) -> WorkloadFacts:
    """A job shows its end only once that is written; it is one from the moment it was decided."""
    if not workload.job.outcome:
        return facts
    return replace(facts, finished=True, failed=workload.job.outcome == "Failed")
