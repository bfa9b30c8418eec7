// Search runs in a web worker, which browsers refuse to a page that was opened from a file: there, this class takes
// the worker's place. It runs the worker's script in a hidden frame. The theme looks for it by its name.
"use strict"

class IFrameWorker extends EventTarget {
  constructor(url) {
    super()
    this.frame = document.createElement("iframe")
    this.frame.hidden = true
    this.frame.addEventListener("answer", ({ detail }) =>
      this.dispatchEvent(new MessageEvent("message", { data: detail }))
    )
    // In the frame, what the script posts goes to the frame's element instead of to the frame itself.
    this.frame.srcdoc = `<script>
      postMessage = data => frameElement.dispatchEvent(new parent.CustomEvent("answer", { detail: data }))
    </script><script src="${new URL(url, document.baseURI)}"></script>`
    this.loaded = new Promise(resolve => this.frame.addEventListener("load", resolve, { once: true }))
    document.body.append(this.frame)
  }

  async postMessage(data) {
    await this.loaded
    const frame = this.frame.contentWindow
    frame.dispatchEvent(new frame.MessageEvent("message", { data }))
  }

  terminate() {
    this.frame.remove()
  }
}

if (location.protocol === "file:") {
  window.IFrameWorker = IFrameWorker
  window.Worker = IFrameWorker
}
