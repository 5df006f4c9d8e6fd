// Transcript and recording together: a click on a time plays from there, and the passage being heard is marked.

export function joinRecording() {
  const audio = document.querySelector("audio");
  const times = [...document.querySelectorAll(".time")];
  if (!audio || times.length === 0 || audio.dataset.joined) return;
  audio.dataset.joined = "yes";
  for (const time of times) time.addEventListener("click", () => play(audio, Number(time.dataset.start)));
  audio.addEventListener("timeupdate", () => mark(times, audio.currentTime));
}

function play(audio, seconds) {
  audio.currentTime = seconds;
  audio.play();
}

function mark(times, now) {
  const heard = times.findLast((time) => Number(time.dataset.start) <= now + 0.05);
  for (const time of times) time.parentElement.toggleAttribute("aria-current", time === heard);
}
