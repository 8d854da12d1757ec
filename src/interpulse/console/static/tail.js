// Live messages from a stream of events, with a count of those that the broker leaves out.
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
  const texts = counts.filter(([count]) => count).map(([count, noun]) => `${count.toLocaleString("en")} ${noun}`);
  return texts.length ? `${texts.join(" and ")} arrived too fast and are not shown` : "";
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
      const report = JSON.parse(message.data);
      messages += report.left_out;
      entries += report.entries_left_out;
      for (const item of report.messages) list.prepend(row(item));
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
