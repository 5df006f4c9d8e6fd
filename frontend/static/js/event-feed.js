// A server-sent events connection that is there while the page is looked at, and comes back whatever happens.
//
// It reads with fetch, since EventSource cannot go on behind the last event once it was closed (a hidden page, another
// tab's turn), cannot tell a quiet connection from a dead one (a laptop that slept), and gives up after an error answer.

import { EventBlocks } from "./event-blocks.js";
import { inTurn } from "./turns.js";

const SILENCE_MS = 40_000; // the server says something every 15 s
const LOOK_MS = 5000;
const AGAIN_MS = 1000;
const LONGEST_MS = 15_000;

export class EventFeed {
  // `handlers`: a function of the data for each name of event; `opened` is called each time a connection is there.
  constructor(url, handlers, { opened = () => {}, connection = () => {} } = {}) {
    this.url = url;
    this.handlers = handlers;
    this.opened = opened;
    this.connection = connection;
    this.lastId = "";
    this.failures = 0;
    this.ended = false;
    this.present = new AbortController();
    document.addEventListener("visibilitychange", () => this.again());
    addEventListener("online", () => this.again());
    addEventListener("offline", () => this.connection("offline"));
    this.run();
  }

  async run() {
    while (!this.ended) {
      await looked();
      this.present = new AbortController();
      const { signal } = this.present;
      const lost = await inTurn(signal, () => this.listen(signal), () => this.again()).catch(() => !signal.aborted);
      if (lost) await this.pause(signal);
    }
  }

  // Leave what there is and begin anew, where the reader still looks, behind the last event.
  again() {
    this.present.abort();
  }

  end() {
    this.ended = true;
    this.again();
  }

  // True when the connection was lost, false when it was left.
  async listen(signal) {
    this.heardAt = Date.now();
    const watch = setInterval(() => Date.now() - this.heardAt > SILENCE_MS && this.again(), LOOK_MS);
    try {
      await this.read(signal);
    } finally {
      clearInterval(watch);
    }
    return !signal.aborted;
  }

  async read(signal) {
    const position = this.lastId ? { "last-event-id": this.lastId } : {};
    const response = await fetch(this.url, { signal, headers: { accept: "text/event-stream", ...position } });
    if (!response.ok) throw new Error(`${response.status} from ${this.url}`);
    this.connection("live");
    this.opened();
    const blocks = new EventBlocks();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      this.heardAt = Date.now();
      this.failures = 0;
      for (const event of blocks.take(part.value)) this.take(event);
    }
  }

  take({ event, id, data }) {
    if (this.ended) return;
    this.lastId = id ?? this.lastId;
    try {
      this.handlers[event]?.(JSON.parse(data));
    } catch (error) {
      reportError(error);
    }
  }

  // Longer after each failure and never the same for all readers of a server that has just come back.
  async pause(signal) {
    this.connection(navigator.onLine ? "lost" : "offline");
    const most = Math.min(LONGEST_MS, AGAIN_MS * 2 ** this.failures++);
    await new Promise((resolve) => {
      setTimeout(resolve, most * (0.5 + Math.random() / 2));
      signal.addEventListener("abort", resolve);
    });
  }
}

function looked() {
  if (!document.hidden) return Promise.resolve();
  return new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true })).then(looked);
}
