import { mount } from "svelte";
import App from "./App.svelte";
import "./app.css";
import { messages } from "./i18n";
import { setState, State } from "./state.svelte";
import type { Core } from "./data/types";
import { readPart } from "./data/unpack";

async function start(): Promise<void> {
  const target = document.getElementById("app")!;
  try {
    const { values, arrays } = (await readPart<Core>("core"))!;
    const { shares, main, places, distances } = arrays as Record<string, never>;
    setState(new State(values, shares, main, places, distances));
    mount(App, { target });
    document.documentElement.dataset.ready = String(Math.round(performance.now()));
  } catch (error) {
    const note = document.createElement("p");
    note.textContent = typeof DecompressionStream === "undefined" ? messages.en.oldBrowser : `${messages.en.failed}: ${error}`;
    target.append(note);
    throw error;
  }
}

void start();
