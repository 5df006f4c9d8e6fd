// Parts of the page as the server renders them now: elements marked data-fragment are exchanged in place.

import { writeTimes } from "./times.js";

const TRIES = 20;
const AGAIN_MS = 1500;
const pristine = new WeakMap();

for (const element of document.querySelectorAll("[data-fragment]")) pristine.set(element, element.innerHTML);

// Exchange what has changed; parts that the reader is using (focus inside, something unfolded) wait for the next time.
// What is folded under an id can be unfolded again, so it does not wait.
export async function refresh(names = null) {
  const response = await fetch(location.href, { headers: { accept: "text/html" } });
  if (!response.ok || response.redirected) return false;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  for (const fresh of page.querySelectorAll("[data-fragment]")) {
    if (names === null || names.includes(fresh.dataset.fragment)) exchange(fresh);
  }
  return true;
}

// The same for what nobody will ask for again: the site may be away just now.
export async function refreshAtLast(names) {
  for (let tries = 0; tries < TRIES; tries++) {
    if (await refresh(names).catch(() => false)) return;
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
}

function exchange(fresh) {
  const element = document.querySelector(`[data-fragment="${CSS.escape(fresh.dataset.fragment)}"]`);
  if (!element || pristine.get(element) === fresh.innerHTML || inUse(element)) return;
  pristine.set(element, fresh.innerHTML);
  const unfolded = [...element.querySelectorAll("details[open]")].map(({ id }) => id);
  const at = folded(document.activeElement);
  element.replaceChildren(...fresh.childNodes);
  for (const id of unfolded) document.getElementById(id)?.setAttribute("open", "");
  if (at && !at.isConnected) document.getElementById(at.id)?.querySelector("summary").focus();
  writeTimes(element);
}

function inUse(element) {
  const used = element.contains(document.activeElement) && !folded(document.activeElement);
  return used || element.querySelector("details[open]:not([id])") !== null;
}

// The details whose summary this is, where it has an id.
function folded(element) {
  return element?.matches("details[id] > summary") ? element.parentElement : null;
}
