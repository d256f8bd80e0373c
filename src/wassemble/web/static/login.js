// A login link carries the token behind the "#", which browsers never send to a server.
"use strict";
function enter() {
  const token = decodeURIComponent(location.hash.slice(1));
  if (!token) return;
  history.replaceState(null, "", location.pathname + location.search);
  const form = document.getElementById("login");
  form.elements.token.value = token;
  form.requestSubmit();
}
window.addEventListener("hashchange", enter);
enter();
