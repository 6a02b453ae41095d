import { prepare, risk, type Payload } from "./engine";

export function App({ payload }: { payload: Payload }) {
  const model = prepare(payload);
  return <main>{risk(model, model.typical)}</main>;
}
