// A file that is sent before its form: with a bar that says how far it is, which fetch cannot tell.

import { t } from "./texts.js";

export class FileField {
  constructor(element) {
    this.input = element.querySelector("input");
    this.bar = element.querySelector("progress");
    element.hidden = false;
  }

  get chosen() {
    return this.input.files.length > 0;
  }

  // The address that the file can be subscribed to by. Rejects with words for people.
  send() {
    const [file] = this.input.files;
    const request = new XMLHttpRequest();
    request.open("POST", `/api/uploads?name=${encodeURIComponent(file.name)}`);
    request.setRequestHeader("content-type", "application/octet-stream");
    request.responseType = "json";
    this.bar.hidden = false;
    request.upload.addEventListener("progress", ({ loaded, total }) => (this.bar.value = loaded / total));
    return new Promise((resolve, reject) => {
      request.addEventListener("error", () => this.fail(reject, t("file.failed")));
      request.addEventListener("load", () =>
        request.status === 201
          ? resolve(request.response.url)
          : this.fail(reject, request.response?.detail ?? t("file.failed")),
      );
      request.send(file);
    });
  }

  fail(reject, words) {
    this.bar.hidden = true;
    reject(new Error(words));
  }
}
