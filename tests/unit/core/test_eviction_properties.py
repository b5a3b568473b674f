"""What holds for the eviction of pods, whatever happens in whatever order."""

from hypothesis import given, settings

from taintkeeper.core.eviction_states import State
from taintkeeper.core.messages import Evict
from tests.unit.core.eviction_world import Step, World, stories

often = settings(max_examples=300, derandomize=True, deadline=None)
sometimes = settings(max_examples=100, derandomize=True, deadline=None)


@often
@given(story=stories)
def test_at_any_time_each_pod_is_evicted_once_and_counted_where_it_is(story: list[Step]) -> None:
    """A step between states that the table does not have would raise."""
    World().play(story)


@often
@given(story=stories)
def test_once_the_api_is_well_every_pod_that_is_due_leaves(story: list[Step]) -> None:
    world = World()
    world.play(story)
    world.settle()
    bench = world.bench
    world.look(len(bench.posts()))
    assert {track.state for track in list(bench.engine.queue.tracks)} <= {State.LEAVING, State.SKIPPED}
    for found in bench.pods.values():
        taints = bench.nodes[found.node].taints if found.node in bench.nodes else ()
        if taints and not (found.deleting or found.terminal):
            assert {taint.key for taint in taints} == {"bar"}, "only what tolerates its taints for ever may be left"
            assert found.tolerations


@sometimes
@given(story=stories)
def test_a_restart_at_any_time_computes_the_same_deadlines(story: list[Step]) -> None:
    world = World()
    world.play([step for step in story if step[0] != "fresh"])
    bench = world.bench
    before = {track.pod.ref: track.deadline for track in list(bench.engine.queue.tracks) if track.wanted}
    bench.restart()
    assert {track.pod.ref: track.deadline for track in list(bench.engine.queue.tracks)} == before


@sometimes
@given(story=stories)
def test_the_same_story_has_the_same_end(story: list[Step]) -> None:
    first, second = World(), World()
    first.play(story)
    second.play(story)
    assert first.bench.log == second.bench.log


@sometimes
@given(story=stories)
def test_nothing_is_posted_while_knowledge_is_stale(story: list[Step]) -> None:
    world, fresh = World(), True
    for step in story:
        posted = len(world.bench.of(Evict))
        world.do(step)
        fresh = step[1] if step[0] == "fresh" else fresh or step[0] == "restart"
        assert fresh or len(world.bench.of(Evict)) == posted
