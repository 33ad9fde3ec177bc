// Small helps; every page works without them.
"use strict";

const SECONDS = 4;

// A deployment that is in progress: take the new state from the page itself.
async function watch() {
  const old = document.querySelector("#live[data-live]");
  if (!old) return;
  let fresh = null;
  try {
    const answer = await fetch(location.href, { credentials: "same-origin", redirect: "manual" });
    if (answer.type === "opaqueredirect") return; // the login has ended: the next click leads to the sign-in
    // too many requests, or the service is busy: the next look is in time
    if (answer.status !== 429 && answer.status !== 503) {
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      fresh = page.querySelector("#live");
      if (!fresh) { location.reload(); return; }
    }
  } catch {
    // the service is away
  }
  if (fresh) replace(old, fresh);
  setTimeout(watch, SECONDS * 1000);
}

// Keep what nobody changed, so that screen readers, focus and the place in the log stay.
function replace(old, fresh) {
  if (old.innerHTML === fresh.innerHTML && old.hasAttribute("data-live") === fresh.hasAttribute("data-live")) return;
  const log = document.getElementById("log");
  const atEnd = !log || log.scrollTop + log.clientHeight >= log.scrollHeight - 5;
  const place = log ? log.scrollTop : 0;
  const focused = document.activeElement ? document.activeElement.id : "";
  const status = old.querySelector("#status");
  const next = fresh.querySelector("#status");
  if (status.innerHTML !== next.innerHTML) status.replaceChildren(...[...next.childNodes].map((one) => one.cloneNode(true)));
  next.replaceWith(status);
  old.replaceWith(document.adoptNode(fresh));
  const now = document.getElementById("log");
  showEnds();
  if (now) now.scrollTop = atEnd ? now.scrollHeight : place;
  if (focused && document.getElementById(focused)) document.getElementById(focused).focus();
}

// What was printed last is at the end.
function showEnds() {
  document.querySelectorAll("pre.end").forEach((one) => { one.scrollTop = one.scrollHeight; });
}

// Choices that depend on another field: only those that go with it are offered.
function depend(list) {
  const parent = document.getElementById(list.dataset.parent);
  if (!parent) return;
  const all = [...list.options];
  const choose = () => {
    const fits = (one) => !one.dataset.of || JSON.parse(one.dataset.of).includes(parent.value);
    const before = list.value;
    list.replaceChildren(...all.filter(fits));
    list.value = before;
    if (list.selectedIndex < 0) list.selectedIndex = 0;
  };
  parent.addEventListener("change", choose);
  choose();
}

// A link to a field in a closed part of the form.
function reveal() {
  const found = location.hash ? document.getElementById(location.hash.slice(1)) : null;
  const part = found ? found.closest("details") : null;
  if (part) part.open = true;
  if (found && /^(INPUT|SELECT|TEXTAREA)$/.test(found.tagName)) found.focus();
}

document.querySelectorAll("select[data-parent]").forEach(depend);
document.querySelectorAll("[data-focus]").forEach((one) => one.focus());
document.querySelectorAll("form[data-once]").forEach((form) => {
  form.addEventListener("submit", () => {
    const button = form.querySelector("button[type=submit]");
    setTimeout(() => { button.disabled = true; });
    addEventListener("pageshow", () => { button.disabled = false; });
  });
});
showEnds();
addEventListener("hashchange", reveal);
reveal();
setTimeout(watch, SECONDS * 1000);
