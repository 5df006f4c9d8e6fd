// The summary while it is written: text is added at the end, and only the last blocks are drawn again.

import { announce } from "./announcer.js";
import { blocks, render } from "./markdown-light.js";
import { t } from "./texts.js";

export class GrowingText {
  constructor(element) {
    this.element = element;
    this.text = "";
    this.drawn = [];
    this.spoken = 0;
    this.due = false;
  }

  reset() {
    this.text = "";
    this.spoken = 0;
    this.draw();
  }

  add(text) {
    this.text += text;
    this.draw();
    this.speak();
  }

  // The finished text, as the server rendered and cleaned it.
  finish(html) {
    this.text = null;
    delete this.element.dataset.writing;
    this.element.innerHTML = html;
    this.element.hidden = html === "";
  }

  draw() {
    if (this.due) return;
    this.due = true;
    requestAnimationFrame(() => {
      this.due = false;
      if (this.text !== null) this.exchange(blocks(this.text));
    });
  }

  exchange(wanted) {
    if (wanted.length === 0) return this.nothing();
    this.element.toggleAttribute("data-writing", true);
    if (this.drawn.length === 0) this.element.replaceChildren();
    wanted.forEach((block, place) => this.put(place, block));
    while (this.element.children.length > wanted.length) this.element.lastElementChild.remove();
    this.drawn.length = wanted.length;
  }

  put(place, block) {
    const source = `${block.kind}\n${block.lines.join("\n")}`;
    if (this.drawn[place] === source) return;
    this.drawn[place] = source;
    const fresh = render(block);
    const old = this.element.children[place];
    if (old) old.replaceWith(fresh);
    else this.element.append(fresh);
  }

  nothing() {
    this.drawn = [];
    delete this.element.dataset.writing;
    const hint = document.createElement("p");
    hint.className = "nothing";
    hint.textContent = t("text_comes");
    this.element.replaceChildren(hint);
  }

  // Whole sentences only; the announcer spaces them out.
  speak() {
    const end = Math.max(this.text.lastIndexOf(". "), this.text.lastIndexOf("。"), this.text.lastIndexOf("\n"));
    if (end <= this.spoken) return;
    announce(this.text.slice(this.spoken, end + 1).replace(/[#*`>_-]/g, " ").trim());
    this.spoken = end + 1;
  }
}
