import { type Inputs, useEffect } from "preact/hooks";

const PAUSE = 350; // milliseconds without a change before a screen reader speaks, or a search starts

/** Do something once its inputs have stood still for a moment. */
export function useLater(work: () => void, inputs: Inputs): void {
  useEffect(() => {
    const timer = setTimeout(work, PAUSE);
    return () => clearTimeout(timer);
  }, inputs);
}
