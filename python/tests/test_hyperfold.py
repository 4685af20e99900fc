"""The package against the program: HYPERFOLD_BIN, or hyperfold on the PATH. `python -m unittest discover python/tests`."""

import json
import os
import pathlib
import sysconfig
import tempfile
import unittest
from unittest import mock

import pandas as pd

import hyperfold
from hyperfold import _run

HERE = pathlib.Path(__file__).resolve().parent
SWEEP = {
    "name": "small",
    "base": {
        "cluster": {"gpus": 8, "gpus_per_server": 1, "nics_per_server": 1},
        "workload": {"kind": "traffic", "pattern": "incast", "fan_in": 4, "bytes": 20000},
        "output": {"flows": True, "links": True, "rtt": True},
    },
    "axes": {"transport.cc": ["dcqcn", "hpcc"], "topology.link_gbps": [100, 200], "transport.pfc": [True, False]},
}


class RunAndRead(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def test_a_dict_runs_and_its_tables_have_types(self):
        run = hyperfold.run(SWEEP, self.root / "o", jobs=1, engine="cpu")
        self.assertEqual((run.name, run.axes), ("small", ["transport.cc", "topology.link_gbps", "transport.pfc"]))
        self.assertEqual(len(run.results), 8)
        types = run.results.dtypes.astype(str)
        expected = {"exp_id": "UInt64", "transport.cc": "string", "topology.link_gbps": "Float64", "transport.pfc": "boolean", "makespan_ns": "Float64", "status": "string", "ecn_marks": "UInt64"}
        self.assertEqual({name: types[name] for name in expected}, expected)
        self.assertTrue(run.results["iteration_time_ns"].isna().all(), "traffic has no iterations")
        self.assertEqual(run.flows.dtypes.astype(str).to_dict()["fct_ns"], "Float64")
        self.assertEqual(len(run.flows), 8 * 4)
        self.assertEqual(set(run.stats["exp_id"]), set(range(8)))
        self.assertTrue(run.links["link"].str.contains("host0->leaf0").any())
        self.assertTrue((run.rtt["rtt_ns"] > 0).all())
        # Numbers are those of the CSV file.
        csv = pd.read_csv(self.root / "o" / "results.csv")
        self.assertEqual(csv["makespan_ns"].tolist(), run.results["makespan_ns"].tolist())
        again = hyperfold.read(self.root / "o")
        pd.testing.assert_frame_equal(again.results, run.results)

    def test_options_and_overrides_reach_the_program(self):
        run = hyperfold.run(SWEEP, self.root / "o", set={"workload.bytes": 1000, "topology.kind": "clos", "output.flows": False}, limit=2)
        self.assertEqual((len(run.results), run.flows), (2, None))
        self.assertIn('kind = "clos"', run.manifest["sweep"])

    def test_a_refusal_is_the_programs_message(self):
        with self.assertRaisesRegex(hyperfold.HyperfoldError, r"payload_byte") as raised:
            hyperfold.run({**SWEEP, "base": {**SWEEP["base"], "transport": {"payload_byte": 1}}}, self.root / "o")
        self.assertEqual(raised.exception.code, 2)
        self.assertFalse((self.root / "o").exists())

    def test_failed_experiments_raise_unless_they_are_allowed(self):
        late = {"limits.sim_ns": 1000}
        with self.assertRaises(hyperfold.HyperfoldError) as raised:
            hyperfold.run(SWEEP, self.root / "a", set=late)
        self.assertEqual((raised.exception.code, raised.exception.out), (1, self.root / "a"))
        run = hyperfold.run(SWEEP, self.root / "b", set=late, allow_failed=True)
        self.assertEqual(set(run.results["status"]), {"failed"})

    def test_what_is_no_folder_and_no_program_is_said(self):
        with self.assertRaisesRegex(FileNotFoundError, "no manifest.json"):
            hyperfold.read(self.root)
        with mock.patch.dict(os.environ, {"HYPERFOLD_BIN": "no-such-program"}):
            with self.assertRaisesRegex(FileNotFoundError, "no-such-program"):
                hyperfold.run(SWEEP, self.root / "o")


class FindsTheProgram(unittest.TestCase):
    """Programs in four folders; each is found when those that come before it are gone."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def program(self, folder, mode=0o755):
        path = self.root / folder / ("hyperfold.exe" if os.name == "nt" else "hyperfold")
        path.parent.mkdir(parents=True)
        path.write_text("")
        path.chmod(mode)
        return path

    def test_a_named_one_comes_before_those_of_the_environment_and_of_the_path(self):
        named, here, user, beside, on_path = map(self.program, ("named", "env", "user", "site/bin", "path"))
        folders = {sysconfig.get_preferred_scheme("user"): user.parent}
        stand_ins = (
            mock.patch.dict(os.environ, {"HYPERFOLD_BIN": str(named), "PATH": str(on_path.parent)}),
            mock.patch.object(sysconfig, "get_path", lambda name, scheme=None: str(folders.get(scheme, here.parent))),
            mock.patch.object(_run, "__file__", str(self.root / "site" / "hyperfold" / "_run.py")),
        )
        with stand_ins[0], stand_ins[1], stand_ins[2]:
            self.assertEqual(_run._program(), str(named))
            named.unlink()
            with self.assertRaisesRegex(FileNotFoundError, "HYPERFOLD_BIN names"):
                _run._program()
            del os.environ["HYPERFOLD_BIN"]
            for program in (here, user, beside, on_path):
                self.assertEqual(os.path.normcase(_run._program()), os.path.normcase(program))
                program.unlink()
            with self.assertRaisesRegex(FileNotFoundError, "on the PATH"):
                _run._program()

    @unittest.skipIf(os.name == "nt", "Windows has no such permission")
    def test_a_file_that_cannot_be_run_is_not_taken(self):
        self.program("env", mode=0o644)
        on_path = self.program("path")
        environment = {"HYPERFOLD_BIN": "", "PATH": str(on_path.parent)}
        with mock.patch.dict(os.environ, environment), mock.patch.object(sysconfig, "get_path", lambda *_: str(self.root / "env")):
            self.assertEqual(_run._program(), str(on_path))


class Notebooks(unittest.TestCase):
    def test_every_notebook_runs_and_is_stored_without_outputs(self):
        notebooks = sorted((HERE.parents[1] / "docs" / "notebooks").glob("*.ipynb"))
        self.assertTrue(notebooks)
        for path in notebooks:
            cells = [c for c in json.loads(path.read_text(encoding="utf-8"))["cells"] if c["cell_type"] == "code"]
            self.assertTrue(all(c["outputs"] == [] and c["execution_count"] is None for c in cells), path.name)
            names, before = {"__name__": "__main__"}, os.getcwd()
            with tempfile.TemporaryDirectory() as folder, self.subTest(path.name):
                os.chdir(folder)
                try:
                    for number, cell in enumerate(cells):
                        exec(compile("".join(cell["source"]), f"{path.name}, cell {number}", "exec"), names)
                finally:
                    os.chdir(before)


if __name__ == "__main__":
    unittest.main()
