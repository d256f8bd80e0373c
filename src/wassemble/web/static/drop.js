// Files that are dropped anywhere on a page are sent and opened, beside those that are open.
"use strict";
(() => {
  const hasFiles = (event) => Array.from(event.dataTransfer?.types || []).includes("Files");
  const show = (isOver) => document.body.classList.toggle("dropping", isOver);

  function send(files) {
    const form = document.createElement("form");
    form.method = "post";
    form.action = "/explorer/upload";
    form.enctype = "multipart/form-data";
    form.hidden = true;
    const fields = {csrf: document.querySelector("meta[name=csrf]").content, opened: opened()};
    for (const [name, value] of Object.entries(fields)) {
      form.append(Object.assign(document.createElement("input"), {type: "hidden", name, value}));
    }
    const input = Object.assign(document.createElement("input"), {type: "file", name: "files"});
    input.multiple = true;
    input.files = files;
    form.append(input);
    document.body.append(form);
    form.requestSubmit();
  }

  // What the page has open or chosen already.
  function opened() {
    const chosen = document.getElementById("open-form");
    if (chosen) return `${new URLSearchParams(new FormData(chosen))}`;
    const now = new URLSearchParams(location.search);
    const kept = ["file", "normalize", "kind", "other", "truth", "names", "kernel", "kernel_file"];
    return `${new URLSearchParams(Array.from(now).filter(([name]) => kept.includes(name)))}`;
  }

  document.addEventListener("dragover", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    show(true);
  });
  document.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) show(false);
  });
  document.addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    show(false);
    send(event.dataTransfer.files);
  });
  const input = document.getElementById("upload-files");
  input?.addEventListener("change", () => send(input.files));
})();
