// The wire format of server-sent events: chunks of text in, whole events out.

export class EventBlocks {
  constructor() {
    this.rest = "";
  }

  // The events that are complete now: [{ event, id, data }]. Comments are none, and what was cut off never becomes one.
  take(chunk) {
    const blocks = (this.rest + chunk).split("\n\n");
    this.rest = blocks.pop();
    return blocks.map(fieldsOf).filter(({ data }) => data !== undefined);
  }
}

function fieldsOf(block) {
  const fields = block.split("\n").map((line) => line.match(/^(\w+): ?(.*)$/));
  return Object.fromEntries(fields.filter(Boolean).map(([, name, value]) => [name, value]));
}
