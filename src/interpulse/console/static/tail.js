// Messages as they come, from a stream of events. What the broker leaves out is counted.
"use strict";

const MESSAGES_MAX = 200;

function row(message) {
  const item = document.createElement("li");
  const link = document.createElement("a");
  link.href = message.url;
  link.className = "name";
  link.textContent = message.id;
  const about = document.createElement("span");
  about.className = "quiet";
  about.textContent = ` ${new Date(message.time_ms).toISOString()}${message.key === null ? "" : ` ${message.key}`}`;
  const content = document.createElement("pre");
  content.className = "content";
  content.textContent = message.problem || message.content;
  item.append(link, about, content);
  return item;
}

function leftOutText(messages, entries) {
  const counts = [[messages, "messages"], [entries, "entries with any number of messages"]];
  const told = counts.filter(([count]) => count).map(([count, noun]) => `${count.toLocaleString("en")} ${noun}`);
  return told.length ? `${told.join(" and ")} came too fast and are not shown` : "";
}

function follow(section) {
  const [state, list, leftOut] = ["state", "messages", "left-out"].map((name) => section.querySelector(`[data-${name}]`));
  const button = section.querySelector("[data-follow]");
  let source = null;
  let [messages, entries] = [0, 0];
  const stop = () => {
    source?.close();
    source = null;
    state.textContent = "not followed";
    button.textContent = "Follow";
  };
  button.addEventListener("click", () => {
    if (source) return stop();
    source = new EventSource(section.dataset.tail);
    button.textContent = "Stop";
    state.textContent = "waiting for messages";
    source.onmessage = (message) => {
      const told = JSON.parse(message.data);
      messages += told.left_out;
      entries += told.entries_left_out;
      for (const each of told.messages) list.prepend(row(each));
      while (list.childElementCount > MESSAGES_MAX) list.lastElementChild.remove();
      state.textContent = "live";
      leftOut.textContent = leftOutText(messages, entries);
    };
    source.onerror = () => {
      if (source.readyState === EventSource.CLOSED) stop();
      else state.textContent = "waiting for the broker";
    };
  });
  window.addEventListener("pagehide", stop);
}

document.querySelectorAll("[data-tail]").forEach(follow);
