// One summary: its steps, why it waits, its text as it is written.

import { announce } from "./announcer.js";
import { EventFeed } from "./event-feed.js";
import { refreshAtLast } from "./fragments.js";
import { GrowingText } from "./growing-text.js";
import { joinRecording } from "./recording.js";
import { t } from "./texts.js";
import { timeElement } from "./times.js";
import { searchTranscript } from "./transcript-search.js";

const ENDED = ["completed", "failed", "canceled"];
const article = document.getElementById("summary");
const connection = document.getElementById("connection");

joinRecording();
searchTranscript();
if ("live" in article.dataset) follow();

function follow() {
  const text = new GrowingText(document.getElementById("text"));
  let round = Number(article.dataset.round);
  const feed = new EventFeed(
    `/api/summaries/${encodeURIComponent(article.dataset.summary)}/events`,
    {
      state: (record) => {
        if (record.round !== round) text.reset();
        round = record.round;
        show(record);
      },
      text: ({ t: piece }) => text.add(piece),
      reset: () => text.reset(),
      done: (record) => {
        feed.end();
        finish(record, text);
      },
    },
    { connection: showConnection },
  );
}

async function finish(record, text) {
  show(record);
  text.finish(record.html);
  connection.hidden = true;
  document.getElementById("failure").hidden = record.state !== "failed";
  document.querySelector("[data-error]").textContent = record.error ?? "";
  await refreshAtLast(["after"]);
  joinRecording();
  searchTranscript();
}

function show(record) {
  if (article.dataset.state !== record.state) announce(t(`state.${record.state}`));
  article.dataset.state = record.state;
  document.getElementById("title").textContent = record.title || record.url;
  article.querySelector("[data-state-text]").textContent = t(`state.${record.state}`);
  record.steps.forEach((step) => showStep(step, record.step));
  showProgress(record);
  showReason(record.reason);
}

function showStep(step, current) {
  const item = document.querySelector(`[data-step="${step.name}"]`);
  if (!item) return;
  item.dataset.status = step.status;
  item.querySelector("[data-step-status]").textContent = t(`step_status.${step.status}`);
  if (step.name === current) item.setAttribute("aria-current", "step");
  else item.removeAttribute("aria-current");
}

function showProgress(record) {
  const bar = document.getElementById("progress");
  bar.hidden = ENDED.includes(record.state);
  bar.value = record.progress;
}

function showReason(reason) {
  const box = document.getElementById("reason");
  box.hidden = !reason;
  if (!reason) return;
  box.querySelector("[data-reason-text]").textContent = t(`reason.${reason.code}`, reason);
  put(box.querySelector("[data-reason-since]"), t("since"), reason.since, "elapsed");
  put(box.querySelector("[data-reason-until]"), t("until"), reason.until, "left");
}

function put(place, words, instant, form) {
  place.replaceChildren();
  if (instant) place.append(`${words} `, timeElement(instant, form));
}

function showConnection(state) {
  if (connection.dataset.state === state) return;
  connection.dataset.state = state;
  connection.hidden = false;
  connection.textContent = t(`connection.${state}`);
}
