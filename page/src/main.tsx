import { render } from "preact";
import { App } from "./app";
import * as engine from "./engine";
import "./style.css";

// For the console, and for tests that compare the page's own arithmetic with Python's.
Object.assign(globalThis, { plainrisk: engine });

if (typeof document !== "undefined") {
  const text = document.getElementById("payload")!.textContent!;
  render(<App payload={JSON.parse(text)} />, document.getElementById("app")!);
}
