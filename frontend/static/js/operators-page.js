// The operators' pages look again every few seconds while they are looked at, until what they show has ended.

import { refresh } from "./fragments.js";

const EVERY_MS = 3000;
const state = document.querySelector('[data-fragment="state"]');

async function look() {
  if (!document.hidden) await refresh().catch(() => false);
  setTimeout(look, EVERY_MS);
}

if (state === null || "live" in state.dataset) setTimeout(look, EVERY_MS);
