// Which tabs may hold a connection now. Browsers open six to one host over HTTP/1.1, and pages must still load beside
// the open ones: all tabs together have four places, and where more want one, each has it for seconds, in turn.
//
// A place is a lock of the browser's, so a tab that dies leaves none taken. Without locks (plain HTTP from another
// machine) there are no turns: then only hidden tabs do without a connection.

const PLACES = ["feed-1", "feed-2", "feed-3", "feed-4"];
const TURN_MS = 3000;

// Runs `work` once there is a place; `giveWay` is called when another tab has waited for it. Rejects if `signal` comes.
export async function inTurn(signal, work, giveWay) {
  if (!navigator.locks) return work();
  const place = await leastWanted();
  return navigator.locks.request(place, { signal }, () => hold(place, work, giveWay));
}

async function leastWanted() {
  const { held, pending } = await navigator.locks.query();
  const wanted = (place) => [...held, ...pending].filter(({ name }) => name === place).length;
  return PLACES.reduce((best, place) => (wanted(place) < wanted(best) ? place : best));
}

async function hold(place, work, giveWay) {
  const turn = setInterval(async () => (await isAwaited(place)) && giveWay(), TURN_MS);
  try {
    return await work();
  } finally {
    clearInterval(turn);
  }
}

async function isAwaited(place) {
  const { pending } = await navigator.locks.query();
  return pending.some(({ name }) => name === place);
}
