// Python in a worker: loaded at the first program, then kept.
import { loadPyodide } from "../try/pyodide.mjs";

const RUNTIME = new URL("../try/", import.meta.url);
let page = null; // docs/try/page.py, in Python

async function load() {
  postMessage({ state: "fetching Python (23 MB, once)" });
  const python = await loadPyodide({ indexURL: RUNTIME.href });
  const about = await (await fetch(new URL("built.json", RUNTIME))).json();
  postMessage({ state: "loading NumPy and the library" });
  const silent = { messageCallback: () => {}, checkIntegrity: false };
  await python.loadPackage(new URL(about.wheel, RUNTIME).href, silent);
  const library = await (await fetch(new URL("library.zip", RUNTIME))).arrayBuffer();
  python.unpackArchive(library, "zip", { extractDir: about.packages });
  const print = { batched: (line) => postMessage({ line }) };
  python.setStdout(print);
  python.setStderr(print);
  const found = python.pyimport("page");
  found.prepare();
  return found;
}

onmessage = async ({ data }) => {
  try {
    page ??= await load();
    postMessage({ state: "running" });
    const started = performance.now();
    const isRight = page.run(data);
    const seconds = ((performance.now() - started) / 1000).toFixed(1);
    postMessage({ isDone: true, state: `${isRight ? "done" : "failed"} in ${seconds} s` });
  } catch (error) {
    page = null;
    postMessage({ line: String(error), isDone: true, state: "Python could not go on" });
  }
};
