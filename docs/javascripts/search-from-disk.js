// A page that was opened from the disk may start no worker, and the search needs one: a hidden frame takes its place.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      this.inside = new Promise((ready) => {
        frame.addEventListener("load", () => ready(this.start(frame.contentWindow, address)), { once: true });
      });
      document.documentElement.append(frame);
    }

    async start(inside, address) {
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = inside.document.createElement("script");
      script.src = address;
      await new Promise((ready) => {
        script.addEventListener("load", ready);
        inside.document.body.append(script);
      });
      return inside;
    }

    async postMessage(data) {
      (await this.inside).dispatchEvent(new MessageEvent("message", { data }));
    }
  };
}
