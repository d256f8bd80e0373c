// Opening files: a kernel asks for a file only if it needs one.
"use strict";
(() => {
  for (const each of document.querySelectorAll("[data-without-script]")) each.hidden = true;
  const kernel = document.getElementById("kernel");
  if (!kernel) return;
  const field = document.getElementById("kernel-file-field");
  const file = document.getElementById("kernel-file");
  function update() {
    const needsFile = kernel.selectedOptions[0].dataset.needsFile !== undefined;
    field.hidden = !needsFile;
    file.required = needsFile;
    file.disabled = !needsFile;
  }
  kernel.addEventListener("change", update);
  update();
})();
