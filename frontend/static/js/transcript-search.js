// Finding words in the transcript: lines without them are put away, and in the others they are marked.

import { announce } from "./announcer.js";
import { t } from "./texts.js";

export function searchTranscript() {
  const place = document.querySelector("[data-search]");
  if (!place || !place.hidden) return;
  place.hidden = false;
  const lines = [...document.querySelectorAll(".segments li span")].map((span) => ({ span, text: span.textContent }));
  place.querySelector("input").addEventListener("input", ({ target }) => {
    const found = lines.filter((line) => show(line, target.value.trim())).length;
    const told = target.value.trim() ? t("lines_found", { count: found }) : "";
    place.querySelector("output").textContent = told;
    if (told) announce(told);
  });
}

function show({ span, text }, wanted) {
  const parts = wanted ? text.split(new RegExp(`(${escaped(wanted)})`, "iu")) : [text];
  span.replaceChildren(...parts.map((part, at) => (at % 2 ? marked(part) : part)));
  span.parentElement.hidden = Boolean(wanted) && parts.length === 1;
  return parts.length > 1;
}

function marked(words) {
  const mark = document.createElement("mark");
  mark.textContent = words;
  return mark;
}

function escaped(words) {
  return words.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
}
