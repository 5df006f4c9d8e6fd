// <time data-form="moment|ago|left"> in the reader's own zone and words; the relative ones are kept up to date.

import { t } from "./texts.js";

const moment = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

export function span(seconds) {
  if (seconds < 60) return t("seconds", { count: Math.round(seconds) });
  if (seconds < 3600) return t("minutes", { count: Math.round(seconds / 60) });
  if (seconds < 48 * 3600) return t("hours", { count: Math.round(seconds / 3600) });
  return t("days", { count: Math.round(seconds / 86400) });
}

export function timeElement(iso, form) {
  const element = document.createElement("time");
  element.dateTime = iso;
  element.dataset.form = form;
  write(element);
  return element;
}

function write(element) {
  const text = wording(new Date(element.dateTime), element.dataset.form);
  if (element.textContent !== text) element.textContent = text;
}

function wording(instant, form) {
  const seconds = (Date.now() - instant) / 1000;
  if (form === "ago") return seconds < 1.5 ? t("now") : t("ago", { span: span(seconds) });
  if (form === "elapsed") return span(Math.max(0, seconds));
  if (form === "left") return seconds > -0.5 ? t("moment") : span(-seconds);
  return moment.format(instant);
}

export function writeTimes(within = document) {
  within.querySelectorAll("time[data-form]").forEach(write);
}

export function keepTimes() {
  writeTimes();
  setInterval(() => document.hidden || writeTimes(), 1000);
}
