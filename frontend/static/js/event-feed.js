// A server-sent events connection that is there while the page is looked at, and comes back whatever happens.
//
// The browser reconnects by itself and says where it was; only after an answer that is an error is a new connection
// made, which knows nothing of the old one. `restarted` is called then: everything comes again from the start.

const AGAIN_MS = 3000;

export class EventFeed {
  constructor(url, handlers, { restarted = () => {}, connection = () => {} } = {}) {
    this.url = url;
    this.handlers = handlers;
    this.restarted = restarted;
    this.connection = connection;
    this.source = null;
    this.ended = false;
    document.addEventListener("visibilitychange", () => (document.hidden ? this.close() : this.open()));
    addEventListener("online", () => this.online());
    addEventListener("offline", () => this.connection("offline"));
    if (!document.hidden) this.open();
  }

  open() {
    if (this.ended || this.source) return;
    const source = new EventSource(this.url);
    let fresh = true;
    this.source = source;
    source.onopen = () => this.connection("live");
    source.onerror = () => this.lost(source);
    for (const [name, handle] of Object.entries(this.handlers)) {
      source.addEventListener(name, (event) => {
        if (fresh) this.restarted();
        fresh = false;
        this.connection("live");
        handle(JSON.parse(event.data));
      });
    }
  }

  online() {
    if (this.source) this.connection(this.source.readyState === EventSource.OPEN ? "live" : "lost");
    else this.open();
  }

  lost(source) {
    this.connection(navigator.onLine ? "lost" : "offline");
    if (source.readyState !== EventSource.CLOSED) return;
    this.close();
    setTimeout(() => document.hidden || this.open(), AGAIN_MS);
  }

  close() {
    this.source?.close();
    this.source = null;
  }

  end() {
    this.ended = true;
    this.close();
  }
}
