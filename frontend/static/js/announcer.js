// What a screen reader is told: one polite message at a time, never more often than every few seconds.

const QUIET_MS = 6000;
const element = document.getElementById("announcer");
let waiting = [];
let timer = null;

export function announce(message) {
  waiting.push(message);
  if (timer === null) speak();
}

function speak() {
  if (waiting.length === 0) {
    timer = null;
    return;
  }
  element.textContent = waiting.join(" ");
  waiting = [];
  timer = setTimeout(speak, QUIET_MS);
}
