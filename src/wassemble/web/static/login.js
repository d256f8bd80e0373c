// A login link carries the token behind the "#", which browsers never send to a server.
"use strict";
const token = decodeURIComponent(location.hash.slice(1));
if (token) {
  history.replaceState(null, "", location.pathname + location.search);
  const form = document.getElementById("login");
  form.elements.token.value = token;
  form.requestSubmit();
}
