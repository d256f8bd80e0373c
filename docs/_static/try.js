// The box of the page that fuses in the browser: an editor, a button, and what the program prints.
// Programs run in a worker (try-worker.js), so that the page answers while they do.

const RUNTIME = new URL("../try/", import.meta.url);
const SERVE = "Serve the folder of the site, python -m http.server -d site, and open it from there.";
const NOT_BUILT =
  "This copy of the site was built without Python for browsers. Where there are npm and a network, " +
  "make site fetches it.";

const box = document.getElementById("try");
const programs = [...document.querySelectorAll(".highlight-python pre")].map((block) => ({
  title: block.closest("section").querySelector("h2").firstChild.textContent.trim(),
  text: block.textContent.trimEnd() + "\n",
  block: block.closest(".highlight-python"),
}));

let worker = null; // at work or ready
let isRunning = false;

const editor = make("textarea", { id: "try-program", spellcheck: false, wrap: "off" });
editor.setAttribute("autocapitalize", "off");
editor.setAttribute("aria-label", "Program");
const choice = make("select", { id: "try-choice" });
const button = make("button", { id: "try-run", type: "button", textContent: "Run" });
const state = make("span", { id: "try-state" });
state.setAttribute("role", "status");
const output = make("pre", { id: "try-output", tabIndex: 0 });
output.setAttribute("role", "log");
output.setAttribute("aria-label", "What the program prints");

function make(name, properties) {
  return Object.assign(document.createElement(name), properties);
}

function show(place) {
  choice.selectedIndex = place;
  editor.value = programs[place].text;
  editor.rows = editor.value.split("\n").length;
}

function start() {
  worker = new Worker(new URL("try-worker.js", import.meta.url), { type: "module" });
  worker.onmessage = ({ data }) => {
    if (data.state !== undefined) state.textContent = data.state;
    if (data.line !== undefined) output.textContent += data.line + "\n";
    if (data.isDone) settle(data.state);
  };
  worker.onerror = (event) => {
    stop(`Python could not be started: ${event.message || "a file of it is missing"}`);
  };
}

function run() {
  output.textContent = "";
  if (worker === null) start();
  isRunning = true;
  button.textContent = "Stop";
  state.textContent = "running";
  worker.postMessage(editor.value);
}

function settle(words) {
  isRunning = false;
  button.textContent = "Run";
  state.textContent = words;
}

// A program cannot be asked to stop: its Python goes, and the next run starts another.
function stop(words) {
  worker?.terminate();
  worker = null;
  settle(words);
}

async function open() {
  let isBuilt = false;
  try {
    isBuilt = (await fetch(new URL("built.json", RUNTIME))).ok;
  } catch {
    // as from a file
  }
  if (!isBuilt) {
    const isFile = location.protocol === "file:";
    const why = isFile ? `A page that is opened as a file can fetch nothing. ${SERVE}` : NOT_BUILT;
    box.replaceChildren(make("p", { className: "try-note", textContent: why }));
    return;
  }
  for (const program of programs) choice.append(make("option", { textContent: program.title }));
  choice.onchange = () => show(choice.selectedIndex);
  button.onclick = () => (isRunning ? stop("stopped") : run());
  editor.onkeydown = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !isRunning) {
      event.preventDefault();
      run();
    }
  };
  const label = make("label", { textContent: "Program " });
  label.append(choice);
  const bar = make("div", { className: "try-bar" });
  bar.append(label, button, state);
  box.replaceChildren(bar, editor, output);
  programs.forEach((program, place) => {
    const own = make("button", { className: "try-own", type: "button" });
    own.textContent = "Run it in the box";
    own.onclick = () => {
      if (isRunning) stop("");
      show(place);
      box.scrollIntoView();
      run();
    };
    program.block.after(own);
  });
  show(0);
}

open();
