"""The traces for use without a replay set."""

from tests.bench.simulated.load.own_traces import own_traces


def test_bodies_of_functions_stand_where_they_stood():
    traces = own_traces()
    assert len(traces) > 100
    assert len({trace.id for trace in traces}) == len(traces)
    for trace in traces[::20]:
        compile(trace.before + trace.approach + trace.target + trace.suffix, trace.path, "exec")
        assert trace.target == trace.target.strip()
        assert "\n" in trace.target
        assert trace.approach.startswith("\n")


def test_other_files_of_the_folder_are_open():
    traces = own_traces()[::20]
    assert any(trace.open_buffers for trace in traces)
    for trace in traces:
        folder = trace.path.rpartition("/")[0]
        assert all(buffer.path.rpartition("/")[0] == folder for buffer in trace.open_buffers)
        assert trace.path not in [buffer.path for buffer in trace.open_buffers]
