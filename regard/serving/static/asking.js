// Questions to the service: the address is that of this file, so that a prefix before every path does no harm. Where the
// service wants a key, the browser has asked for it before it got the page, and sends it along by itself.

const BASE = new URL("..", import.meta.url);

export function address(path) {
  return new URL(path, BASE).href;
}

// The answer, once it is known to be one. Without fields it is a GET.
async function answered(path, fields, signal) {
  const options = { signal };
  if (fields !== undefined) {
    options.method = "POST";
    options.headers = { "Content-Type": "application/json" };
    options.body = JSON.stringify(fields);
  }
  let answer;
  try {
    answer = await fetch(address(path), options);
  } catch (error) {
    throw error.name === "AbortError" ? error : new Error("The service does not answer.");
  }
  if (answer.ok) return answer;
  const said = await answer.json().catch(() => ({}));
  throw new Error(said.error || `The service says ${answer.status}.`);
}

export async function ask(path, fields, signal) {
  return (await answered(path, fields, signal)).json();
}

// Server-sent events of a POST, until the one that says that it is whole: { kind, data } each.
export async function* events(path, fields, signal) {
  const answer = await answered(path, fields, signal);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "", whole = false;
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done && whole) return;
      if (done) throw new Error("The answer broke off.");
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop();
      for (const block of blocks) {
        const lines = block.split("\n");
        const field = (name) => lines.find((line) => line.startsWith(`${name}: `)).slice(name.length + 2);
        const [kind, data] = [field("event"), JSON.parse(field("data"))];
        if (kind === "error") throw new Error(data.error);
        if (kind === "end") whole = true;
        else yield { kind, data };
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

// A form with a file, and how much of it is sent: fetch cannot tell. `stop` hears how to give it up.
export function send(path, form, { progress, stop }) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", address(path));
    request.upload.addEventListener("progress", (event) => {
      if (event.lengthComputable) progress(event.loaded / event.total);
    });
    request.addEventListener("load", () => {
      let said = {};
      try { said = JSON.parse(request.responseText); } catch { /* not ours */ }
      if (request.status === 200) resolve(said);
      else reject(new Error(said.error || `The service says ${request.status}.`));
    });
    request.addEventListener("error", () => reject(new Error("The service does not answer, or takes no such file.")));
    request.addEventListener("abort", () => reject(new Error("Stopped.")));
    stop(() => request.abort());
    request.send(form);
  });
}
