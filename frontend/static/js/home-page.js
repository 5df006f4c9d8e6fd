// The home page: a clear word about a wrong address before it is sent, and the list as it changes.

import { EventFeed } from "./event-feed.js";
import { FileField } from "./file-field.js";
import { refresh } from "./fragments.js";
import { t } from "./texts.js";

const form = document.getElementById("subscribe");
const address = document.getElementById("url");
const problem = document.getElementById("url-problem");

form.addEventListener("submit", (event) => {
  if (files.chosen) return sendFile(event);
  const wrong = problemOf(address.value.trim());
  tell(wrong);
  if (!wrong) return;
  event.preventDefault();
  address.focus();
});

const files = new FileField(document.getElementById("upload"));

// A file is sent first; what it can be subscribed to by then goes into the form as an address does.
async function sendFile(event) {
  event.preventDefault();
  const button = form.querySelector("[type=submit]");
  button.disabled = true;
  tell("");
  try {
    address.value = await files.send();
    form.submit();
  } catch (error) {
    tell(error.message);
    button.disabled = false;
  }
}

address.addEventListener("input", () => tell(""));

function problemOf(text) {
  if (text === "") return t("address.empty");
  const parsed = URL.canParse(text) ? new URL(text) : null;
  return parsed && /^https?:$/.test(parsed.protocol) ? "" : t("address.wrong");
}

function tell(words) {
  problem.textContent = words;
  problem.hidden = words === "";
  if (words) address.setAttribute("aria-invalid", "true");
  else address.removeAttribute("aria-invalid");
}

let due = false;

// Several changes at once are one look at the list.
function refreshSoon() {
  if (due) return;
  due = true;
  setTimeout(() => {
    due = false;
    refresh(["summaries"]).catch(() => false);
  }, 300);
}

function show(summary) {
  const card = document.querySelector(`[data-summary="${CSS.escape(summary.id)}"]`);
  if (!card) return refreshSoon();
  card.dataset.state = summary.state;
  card.querySelector("[data-state-text]").textContent = t(`state.${summary.state}`);
  card.querySelector(".summary-link").textContent = summary.title || summary.url;
  const underWay = ["transcribing", "writing"].includes(summary.state);
  card.querySelector("[data-progress-text]").textContent = underWay ? `, ${summary.progress} %` : "";
  const reason = card.querySelector("[data-reason-text]");
  reason.textContent = summary.reason ? t(`reason.${summary.reason.code}`, summary.reason) : "";
  reason.hidden = !summary.reason;
}

let openedBefore = false;

// What was removed while there was no connection is not told afterwards.
function opened() {
  if (openedBefore) refreshSoon();
  openedBefore = true;
}

new EventFeed("/api/events", { summary: show, removed: refreshSoon }, { opened });
